"""What chat and completions have in common: sampling, limits, ends, seeds; each with its right value."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from inference.protocol.order import Arrival, Order
from tests.inference.protocol.answering import MODEL, body_of, chat, completion, deltas_of, refusal


def first(body: dict[str, Any]) -> Any:
    """The parameters of both endpoints, which are the same."""
    one, other = completion(body).generations[0].parameters, chat(body).generations[0].parameters
    assert one == other
    return one


@pytest.mark.parametrize(
    ("sent", "name", "value"),
    [
        ({}, "temperature", 1.0),
        ({"temperature": None}, "temperature", 1.0),
        ({"temperature": 0}, "temperature", 0.0),
        ({"temperature": 0.0}, "temperature", 0.0),
        ({"temperature": 2}, "temperature", 2.0),
        ({"top_p": 1}, "top_p", 1.0),
        ({"top_p": 0.25}, "top_p", 0.25),
        ({"top_k": -1}, "top_k", 0),
        ({"top_k": 5}, "top_k", 5),
        ({"top_k": 10**30}, "top_k", MODEL.vocab_size),
        ({"min_p": 0.5}, "min_p", 0.5),
        ({"presence_penalty": -2}, "presence_penalty", -2.0),
        ({"frequency_penalty": 2}, "frequency_penalty", 2.0),
        ({"repetition_penalty": 1.1}, "repetition_penalty", 1.1),
        ({"seed": 0}, "seed", 0),
        ({"seed": 2**63 - 1}, "seed", 2**63 - 1),
        ({"seed": -1}, "seed", 2**63 - 1),
        ({}, "seed", 7),
        ({"logit_bias": {"260": -100, "7": 0.5}}, "logit_bias", {260: -100.0, 7: 0.5}),
    ],
)
def test_a_value_is_taken_as_it_is(sent: dict[str, Any], name: str, value: object) -> None:
    assert getattr(first(sent), name) == value


def test_top_p_of_nothing_takes_the_likeliest() -> None:
    parameters = first({"top_p": 0})
    assert (parameters.top_p, parameters.top_k) == (1.0, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.1),
        ("temperature", "0"),
        ("temperature", "NaN"),
        ("temperature", 10**300),
        ("top_p", 1.1),
        ("top_p", -0.5),
        ("top_k", -2),
        ("min_p", 1.5),
        ("presence_penalty", 2.01),
        ("frequency_penalty", -3),
        ("repetition_penalty", 0),
        ("seed", 2**63 + 1),
        ("seed", 1.0),
        ("n", 0),
        ("n", 17),
        ("logit_bias", {"a": 1}),
        ("logit_bias", {"-1": 1}),
        ("logit_bias", {"261": 1}),
        ("logit_bias", {"٣": 1}),
        ("logit_bias", {"9" * 10_000: 1}),
        ("logit_bias", {"5": 101}),
        ("logit_bias", {"5": "1"}),
        ("logit_bias", {"5": True}),
        ("logit_bias", {"5": 1, "05": 1}),
        ("logit_bias", [1]),
        ("max_tokens", -1),
        ("max_tokens", "5"),
        ("max_tokens", 1.5),
        ("min_tokens", -1),
        ("min_tokens", 6),
        ("stop", ["a", "b", "c", "d", "e"]),
        ("stop", ""),
        ("stop", ["a", ""]),
        ("stop", ["a", 3]),
        ("stop", "x" * 1001),
        ("stop_token_ids", [261]),
        ("stop_token_ids", [-1]),
        ("stop_token_ids", [1.0]),
        ("stop_token_ids", ["5"]),
        ("stop_token_ids", [True]),
        ("cache_salt", "x" * 1001),
        ("stream_options", {"include_usage": True}),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(name: str, value: object) -> None:
    for read in (completion, chat):
        error = refusal(partial(read, {"max_tokens": 5, name: value}))
        assert (error.status, error.param, error.type) == (400, name, "invalid_request_error")
        assert len(error.message) < 400


@pytest.mark.parametrize(
    ("stop", "strings"),
    [(None, ()), ("a", ("a",)), (["a", "b", "c", "d"], ("a", "b", "c", "d")), ([], ()), ("x" * 1000, ("x" * 1000,))],
)
def test_stop_strings(stop: object, strings: tuple[str, ...]) -> None:
    assert completion({"stop": stop}).text.stops.strings == strings


def test_the_tokens_that_end_an_answer() -> None:
    assert completion({}).generations[0].stop_tokens == {0}
    assert chat({}).generations[0].stop_tokens == {0, 4}
    assert chat({"stop_token_ids": [9]}).generations[0].stop_tokens == {0, 4, 9}
    assert chat({"stop_token_ids": [9], "ignore_eos": True}).generations[0].stop_tokens == {9}


def test_a_stream_and_what_it_tells() -> None:
    options = {"include_usage": True, "continuous_usage_stats": True, "include_obfuscation": False}
    order = chat({"stream": True, "stream_options": options})
    assert (order.stream, order.include_usage, order.continuous_usage) == (True, True, True)
    order = chat({"stream": True})
    assert (order.stream, order.include_usage, order.continuous_usage) == (True, False, False)
    assert chat({"stream": False}).stream is False


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"include_usage": 1}, "stream_options.include_usage"),
        ({"include_usages": True}, "stream_options.include_usages"),
    ],
)
def test_options_of_a_stream_are_checked(options: dict[str, Any], param: str) -> None:
    assert refusal(lambda: chat({"stream": True, "stream_options": options})).param == param


def test_who_asks_and_what_keeps_states_apart_go_along() -> None:
    (generation,) = chat({"cache_salt": "s", "min_tokens": 2}).generations
    assert (generation.request_id, generation.tenant, generation.cache_salt) == ("r-1", "acme", "s")
    assert generation.min_tokens == 2


def test_no_two_arrivals_are_alike() -> None:
    arrivals = [Arrival.now(tenant="acme") for _ in range(100)]
    assert len({arrival.unique for arrival in arrivals}) == len({arrival.seed for arrival in arrivals}) == 100
    assert all(0 <= arrival.seed < 2**63 and arrival.request_id == arrival.unique for arrival in arrivals)
    assert Arrival.now(request_id="mine").request_id == "mine"


def draws(order: Order) -> list[int]:
    return [generation.parameters.draw for generation in order.generations]


def test_with_a_seed_every_prompt_is_drawn_for_as_if_it_were_alone() -> None:
    both = completion({"prompt": ["a", "b"], "n": 2, "seed": 3})
    assert draws(both) == [0, 1, 0, 1]
    assert both.generations[2:] == completion({"prompt": "b", "n": 2, "seed": 3}).generations


def test_without_a_seed_no_two_answers_are_drawn_alike() -> None:
    assert draws(completion({"prompt": ["a", "a"], "n": 2})) == [0, 1, 2, 3]


@pytest.mark.parametrize(("prompts", "n", "taken"), [(32, 1, True), (2, 16, True), (33, 1, False), (3, 16, False)])
def test_a_request_asks_for_so_many_answers_at_most(prompts: int, n: int, taken: bool) -> None:
    body = {"prompt": ["a"] * prompts, "n": n}
    if taken:
        assert len(completion(body).generations) == prompts * n
    else:
        error = refusal(lambda: completion(body))
        assert error.param == "n"
        assert "at most 32 answers in all" in error.message


@pytest.mark.parametrize("model", ["tiny", None])
def test_the_model_is_the_one_that_is_served(model: str | None) -> None:
    assert chat({"model": model}).model is MODEL


def test_another_model_is_not_found() -> None:
    error = refusal(lambda: chat({"model": "gpt-5"}))
    assert (error.status, error.param, error.code) == (404, "model", "model_not_found")
    assert '"tiny"' in error.message


def test_temperature_0_is_the_same_every_time() -> None:
    body = {"temperature": 0, "max_tokens": 8, "ignore_eos": True, "return_token_ids": True}
    answers = [body_of(completion(body))["choices"] for _ in range(20)]
    assert answers == [answers[0]] * 20
    other = body_of(completion({**body, "temperature": 1}))["choices"]
    assert other != answers[0]


@pytest.mark.parametrize(
    ("length", "max_tokens", "expected"),
    [(10, 1, 1), (10, 16, 16), (10, 54, 54), (10, 55, 54), (10, 10**12, 54), (63, 1, 1), (63, 16, 1), (1, 63, 63)],
)
def test_max_tokens_is_a_ceiling_and_never_refused(length: int, max_tokens: int, expected: int) -> None:
    (generation,) = completion({"prompt": "x" * length, "max_tokens": max_tokens}).generations
    assert generation.max_tokens == expected


def test_min_tokens_is_cut_with_it() -> None:
    (generation,) = completion({"prompt": "x" * 60, "max_tokens": 10, "min_tokens": 8}).generations
    assert (generation.max_tokens, generation.min_tokens) == (4, 4)


@pytest.mark.parametrize("max_tokens", [0, 1, 16])
@pytest.mark.parametrize("length", [64, 65, 640])
def test_a_prompt_that_leaves_no_room_is_refused_with_both_counts(length: int, max_tokens: int) -> None:
    for prompt in ("x" * length, [6] * length, ["a", "x" * length], [[6], [7] * length]):
        error = refusal(partial(completion, {"prompt": prompt, "max_tokens": max_tokens}))
        assert (error.status, error.param, error.code) == (400, "prompt", "context_length_exceeded")
        assert f"{length} tokens" in error.message
        assert "maximum context length is 64 tokens" in error.message


def test_a_chat_counts_the_tokens_of_its_turns() -> None:
    assert len(chat({"messages": [{"role": "user", "content": "x" * 60}]}).generations[0].prompt) == 63
    error = refusal(lambda: chat({"messages": [{"role": "user", "content": "x" * 61}]}))
    assert (error.param, error.code) == ("messages", "context_length_exceeded")
    assert "has 64 tokens" in error.message


def test_a_text_that_cannot_fit_is_refused_before_it_is_cut_into_tokens() -> None:
    error = refusal(lambda: completion({"prompt": "x" * 10_000_000}))
    assert "has at least 10,000,000 tokens" in error.message


def test_the_text_of_many_answers_is_theirs() -> None:
    order = completion({"prompt": ["ab", "cd"], "n": 2, "seed": 1, "max_tokens": 3, "ignore_eos": True})
    texts = ["".join(d.text for d in deltas_of(order) if d.index == index) for index in range(4)]
    assert [choice["text"] for choice in body_of(order)["choices"]] == texts
    assert len(set(texts)) == 4
