"""`/v1/completions`: prompts in all their forms, echo, scoring."""

from __future__ import annotations

from typing import Any

import pytest

from tests.inference.protocol.answering import body_of, byte_ids, completion, engine, refusal


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("ab", [byte_ids("ab")]),
        (["ab", "é"], [byte_ids("ab"), byte_ids("é")]),
        ([6, 7], [[6, 7]]),
        ([[6, 7], [8]], [[6, 7], [8]]),
        ([3], [[3]]),
        ("", [[0]]),
        ([], [[0]]),
        ([[]], [[0]]),
        (["", "a"], [[0], byte_ids("a")]),
        ("<|user|>", [byte_ids("<|user|>")]),
    ],
)
def test_a_prompt(prompt: object, prompts: list[list[int]]) -> None:
    assert [list(generation.prompt) for generation in completion({"prompt": prompt}).generations] == prompts


@pytest.mark.parametrize(
    "prompt",
    [["a", 1], [1, "a"], ["a", ["b"]], [[1], 2], [[1], "a"], [1.0], [True], [None], [{}], [["a"]], [[1.5]], [[[1]]]],
)
def test_what_is_no_prompt(prompt: object) -> None:
    error = refusal(lambda: completion({"prompt": prompt}))
    assert (error.status, error.param) == (400, "prompt")


@pytest.mark.parametrize("token", [-1, 261, 10**30])
def test_an_id_that_is_none(token: int) -> None:
    error = refusal(lambda: completion({"prompt": [5, token]}))
    assert (error.param, "at 1; each is the id of a token, 0 to 260" in error.message) == ("prompt", True)


def test_a_prompt_is_needed() -> None:
    assert refusal(lambda: completion(b'{"model": "tiny"}')).code == "missing_required_parameter"


@pytest.mark.parametrize("body", [{}, {"max_tokens": None}])
def test_an_answer_has_16_tokens_where_nothing_is_said(body: dict[str, Any]) -> None:
    assert completion(body).generations[0].max_tokens == 16


@pytest.mark.parametrize(("best_of", "n", "taken"), [(1, 1, True), (2, 2, True), (2, 1, False), (1, 2, False)])
def test_best_of_is_n(best_of: int, n: int, taken: bool) -> None:
    if taken:
        assert completion({"best_of": best_of, "n": n}) == completion({"n": n})
    else:
        assert refusal(lambda: completion({"best_of": best_of, "n": n})).param == "best_of"


@pytest.mark.parametrize(("logprobs", "taken"), [(0, True), (3, True), (5, True), (6, False)])
def test_up_to_five_alternatives(logprobs: int, taken: bool) -> None:
    if taken:
        assert completion({"logprobs": logprobs}).generations[0].parameters.logprobs == logprobs
    else:
        error = refusal(lambda: completion({"logprobs": logprobs}))
        assert (error.param, "from 0 to 5" in error.message) == ("logprobs", True)


def test_a_prompt_is_scored() -> None:
    body = body_of(completion({"prompt": "ab", "max_tokens": 0, "echo": True, "logprobs": 1}))
    (choice,) = body["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("ab", "length")
    assert body["usage"]["completion_tokens"] == 0
    logprobs = choice["logprobs"]
    assert (logprobs["tokens"], logprobs["text_offset"]) == (["a", "b"], [0, 1])
    assert logprobs["token_logprobs"][0] is None
    assert logprobs["top_logprobs"][0] is None
    assert logprobs["token_logprobs"][1] <= 0
    assert logprobs["top_logprobs"][1]["b"] == logprobs["token_logprobs"][1]
    assert set(map(len, logprobs.values())) == {2}


def test_a_prompt_that_is_only_read_has_no_text() -> None:
    body = body_of(completion({"prompt": "ab", "max_tokens": 0}))
    assert (body["choices"][0]["text"], body["choices"][0]["finish_reason"]) == ("", "length")
    assert body["usage"] == {
        "prompt_tokens": 2,
        "completion_tokens": 0,
        "total_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


@pytest.mark.parametrize("logprobs", [None, 2])
def test_the_prompt_comes_before_the_answer(logprobs: int | None) -> None:
    body = {"prompt": ["ab", "한"], "n": 2, "max_tokens": 3, "ignore_eos": True, "logprobs": logprobs}
    plain, echoed = (body_of(completion({**body, "echo": echo}))["choices"] for echo in (False, True))
    for without, with_prompt, prompt in zip(plain, echoed, ["ab", "ab", "한", "한"], strict=True):
        assert with_prompt["text"] == prompt + without["text"]
        if logprobs is not None:
            shift = len(prompt.encode())
            for name in ("tokens", "token_logprobs", "top_logprobs"):
                assert with_prompt["logprobs"][name][shift:] == without["logprobs"][name]


def test_only_a_prompt_that_is_shown_with_logprobs_is_scored() -> None:
    assert completion({"echo": True, "logprobs": 0}).generations[0].score_prompt
    for body in ({"echo": True}, {"logprobs": 0}, {}):
        assert not completion(body).generations[0].score_prompt


def test_what_cannot_be_is_told_as_a_number() -> None:
    body = {"prompt": "a", "temperature": 1, "seed": 1, "max_tokens": 2, "ignore_eos": True, "logprobs": 3}
    (choice,) = body_of(completion(body), engine(possible=1))["choices"]
    logprobs = choice["logprobs"]
    assert logprobs["token_logprobs"] == [-9999.0] * 2  # the token beside the only one that is possible
    assert [sorted(top.values()) for top in logprobs["top_logprobs"]] == [[-9999.0, -9999.0, -0.6931471805599453]] * 2


def test_without_alternatives_the_token_alone_is_told() -> None:
    (choice,) = body_of(completion({"logprobs": 0, "max_tokens": 4, "ignore_eos": True}))["choices"]
    logprobs = choice["logprobs"]
    for token, logprob, top in zip(
        logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"], strict=True
    ):
        assert top == {token: logprob}
