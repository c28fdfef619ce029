"""Requests on which other servers went wrong, over HTTP, with their right answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.inference.http.serving import (
    NAME,
    Served,
    completion,
    engine_for,
    events_in,
    said_in,
    serving,
    settings,
    sums,
    text_of,
    tokenizer,
)

CHAT = {"model": NAME, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "temperature": 0}
HALF = -math.log(2)


@pytest.fixture(scope="module")
def small() -> Iterator[Served]:
    """A context of 64 tokens; all but the likeliest token are impossible."""
    said = settings(context=64, grid=64, prefill_tokens=64)
    with serving(said, engine=engine_for(said, possible=1)) as server:
        yield server


def post(served: Served, path: str, body: Any) -> tuple[int, Any]:
    """Status and body, which is strict JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    with served.client() as http:
        answer = http.post(path, json=body)
    return answer.status_code, json.loads(answer.content, parse_constant=refuse)


def is_error(status: int, body: Any, param: str | None = None) -> bool:
    error = body["error"]
    return status == 400 and set(error) == {"message", "type", "param", "code"} and param in (None, error["param"])


class TestUsageInStreams:
    """A chunk with the usage: where it was asked for, once, last, without choices."""

    def stream(self, served: Served, **more: Any) -> tuple[str, list[Any]]:
        with served.client() as http:
            text = http.post("/v1/completions", json=completion("hello", max_tokens=8, stream=True, **more)).text
        return text, events_in(text)

    def test_it_is_not_sent_unasked(self, served: Served) -> None:
        text, events = self.stream(served)
        assert all("usage" not in event and len(event["choices"]) == 1 for event in events)
        assert text.endswith("data: [DONE]\n\n")

    @pytest.mark.parametrize("prompts", ["hello", ["hello", "you"]])
    def test_it_is_the_last_and_that_of_the_whole_answer(self, served: Served, prompts: Any) -> None:
        said = completion(prompts, max_tokens=8)
        status, whole = post(served, "/v1/completions", said)
        with served.client() as http:
            asked = {**said, "stream": True, "stream_options": {"include_usage": True}}
            text = http.post("/v1/completions", json=asked).text
        *others, last = events_in(text)
        assert status == 200
        assert last["choices"] == []
        assert {key: last["usage"][key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")} == {
            key: whole["usage"][key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")
        }
        assert all(event["usage"] is None and event["choices"] for event in others)
        assert text.endswith("\n\ndata: [DONE]\n\n")
        for choice in whole["choices"]:
            assert said_in(others, choice["index"]) == choice["text"]

    def test_without_a_stream_it_is_refused(self, served: Served) -> None:
        said = completion("hello", stream=False, stream_options={"include_usage": True})
        assert is_error(*post(served, "/v1/completions", said), param="stream_options")


class TestLogProbabilities:
    """Minus infinity is no JSON."""

    def test_it_is_told_as_a_number(self, small: Served) -> None:
        status, body = post(small, "/v1/completions", completion("ab", logprobs=3, max_tokens=2))
        said = body["choices"][0]["logprobs"]
        assert status == 200
        assert said["token_logprobs"] == pytest.approx([HALF, HALF])
        for top in said["top_logprobs"]:
            assert sorted(top.values()) == pytest.approx([-9999.0, -9999.0, HALF])

    @pytest.mark.parametrize(("logprobs", "status"), [(0, 200), (5, 200), (6, 400), (-1, 400)])
    def test_how_many_of_a_completion(self, small: Served, logprobs: int, status: int) -> None:
        got, body = post(small, "/v1/completions", completion("ab", logprobs=logprobs, max_tokens=3))
        assert got == status
        if status == 200:
            said = body["choices"][0]["logprobs"]
            assert {len(said[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")} == {3}
            assert {len(top) for top in said["top_logprobs"]} == {max(1, logprobs)}

    @pytest.mark.parametrize(
        ("more", "status"),
        [
            ({"logprobs": True, "top_logprobs": 0}, 200),
            ({"logprobs": True, "top_logprobs": 20}, 200),
            ({"logprobs": True, "top_logprobs": 21}, 400),
            ({"top_logprobs": 2}, 400),
        ],
    )
    def test_how_many_of_a_chat(self, small: Served, more: Mapping[str, Any], status: int) -> None:
        got, body = post(small, "/v1/chat/completions", {**CHAT, **more})
        assert got == status
        if status == 200:
            choice = body["choices"][0]
            content = choice["logprobs"]["content"]
            assert {len(token["top_logprobs"]) for token in content} == {more["top_logprobs"]}
            joined = b"".join(bytes(token["bytes"]) for token in content)
            assert joined.decode("utf-8", "replace") == choice["message"]["content"]


class TestScoring:
    """max_tokens 0 with echo."""

    def test_a_prompt_is_scored(self, served: Served) -> None:
        said = completion("ab", max_tokens=0, echo=True, logprobs=1)
        status, body = post(served, "/v1/completions", said)
        choice = body["choices"][0]
        first, second = tokenizer().encode("ab")
        # Behind the first token the state is that and one more: the second is so many places behind it.
        places = (second - (first + 1)) % tokenizer().vocab_size
        assert status == 200
        assert (choice["text"], choice["finish_reason"]) == ("ab", "length")
        assert body["usage"]["completion_tokens"] == 0
        assert choice["logprobs"]["token_logprobs"] == [None, pytest.approx((places + 1) * HALF)]

    def test_without_echo_nothing_is_said(self, served: Served) -> None:
        status, body = post(served, "/v1/completions", completion("ab", max_tokens=0))
        assert (status, body["choices"][0]["text"], body["usage"]["completion_tokens"]) == (200, "", 0)

    def test_null_is_sixteen(self, served: Served) -> None:
        status, body = post(served, "/v1/completions", completion("ab", max_tokens=None, ignore_eos=True))
        assert (status, body["usage"]["completion_tokens"]) == (200, 16)

    @pytest.mark.parametrize("count", [-1, "5", 1.5, True, [1]])
    def test_what_is_no_count_is_refused(self, served: Served, count: Any) -> None:
        assert is_error(*post(served, "/v1/completions", completion("ab", max_tokens=count)), param="max_tokens")

    def test_a_count_over_the_context_is_a_ceiling(self, served: Served) -> None:
        status, body = post(served, "/v1/completions", completion("ab", max_tokens=10**12, ignore_eos=True))
        assert (status, body["usage"]["total_tokens"]) == (200, 256)


class TestFields:
    """Temperature 0, ranges, and what is not supported."""

    @pytest.mark.parametrize("zero", [0, 0.0])
    def test_zero_is_greedy(self, served: Served, zero: float) -> None:
        texts = {
            post(served, "/v1/completions", {**completion("abc", max_tokens=12), "temperature": zero})[1]["choices"][0][
                "text"
            ]
            for _ in range(20)
        }
        assert texts == {text_of(sums("abc", 12))}

    @pytest.mark.parametrize(
        ("more", "status"),
        [
            ({"temperature": 2}, 200),
            ({"temperature": None}, 200),
            ({"temperature": -0.1}, 400),
            ({"temperature": 2.1}, 400),
            ({"temperature": "0"}, 400),
            ({"temperature": True}, 400),
            ({"top_p": 1}, 200),
            ({"top_p": 1.1}, 400),
            ({"top_p": 0}, 200),
            ({"top_p": -0.1}, 400),
            ({"logit_bias": {"7": 100}}, 200),
            ({"logit_bias": {"x": 100}}, 400),
            ({"tools": [{"type": "function", "function": {"name": "f"}}]}, 400),
            ({"response_format": {"type": "json_schema", "json_schema": {}}}, 400),
            ({"foo": 1}, 400),
        ],
        ids=str,
    )
    def test_what_is_taken(self, served: Served, more: Mapping[str, Any], status: int) -> None:
        got, body = post(served, "/v1/chat/completions", {**CHAT, **more})
        assert got == status, body
        if status == 400:
            assert is_error(got, body)

    def test_a_bias_chooses(self, served: Served) -> None:
        said = completion("abc", max_tokens=3, logit_bias={"80": 100})
        assert post(served, "/v1/completions", said)[1]["choices"][0]["text"] == text_of(
            sums("abc", 3, logit_bias={80: 100.0})
        )


class TestLengths:
    """A context of 64 tokens."""

    @pytest.mark.parametrize("most", [1, 16])
    def test_a_prompt_that_fits_is_answered_as_far_as_the_context_goes(self, small: Served, most: int) -> None:
        for length in (40, 62, 63):
            said = completion([7] * length, max_tokens=most, ignore_eos=True)
            status, body = post(small, "/v1/completions", said)
            assert (status, body["usage"]["completion_tokens"]) == (200, min(most, 64 - length))
            assert body["choices"][0]["text"] == text_of(sums([7] * length, min(most, 64 - length), ends=()))

    @pytest.mark.parametrize("length", [64, 65, 640, 100_000])
    @pytest.mark.parametrize("prompt", ["tokens", "text", "chat"])
    def test_one_that_does_not_is_refused_with_both_counts(self, small: Served, length: int, prompt: str) -> None:
        if prompt == "chat":
            said = {**CHAT, "messages": [{"role": "user", "content": "a" * length}]}
            status, body = post(small, "/v1/chat/completions", said)
        else:
            asked = [7] * length if prompt == "tokens" else "a" * length
            status, body = post(small, "/v1/completions", completion(asked))
        assert is_error(status, body)
        assert body["error"]["code"] == "context_length_exceeded"
        assert "64" in body["error"]["message"]
        if prompt == "tokens":
            assert f"{length:,}" in body["error"]["message"]
