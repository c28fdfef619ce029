"""Whole bodies, read with the types of OpenAI's own client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion

from inference.protocol.bodies import Gathering, error_of, logprobs_of
from inference.scheduling.generation import Reason
from inference.text.answer import Delta, End, TokenText
from tests.inference.protocol.answering import MODEL, body_of, byte_ids, chat, completion, deltas_of
from tests.inference.protocol.shapes import extras

TWO = {"n": 2, "max_tokens": 3, "seed": 2, "ignore_eos": True}


def end(reason: Reason = Reason.STOP, prompt: int = 4, cached: int = 0, generated: int = 2) -> End:
    return End(reason=reason, prompt_tokens=prompt, cached_tokens=cached, generated_tokens=generated)


@pytest.mark.parametrize("body", [{}, TWO, {**TWO, "logprobs": True, "top_logprobs": 3}])
def test_an_answer_to_a_chat_is_what_the_client_reads(body: dict[str, Any]) -> None:
    order = chat({"max_tokens": 4, **body})
    sent = body_of(order)
    read = ChatCompletion.model_validate(sent, strict=True)
    assert extras(read) == []
    assert (read.id, read.object, read.created, read.model) == ("chatcmpl-u", "chat.completion", 1_700_000_000, "tiny")
    assert read.system_fingerprint == "fp"
    assert [choice.index for choice in read.choices] == list(range(body.get("n", 1)))
    assert {choice.message.role for choice in read.choices} == {"assistant"}
    assert all((choice.logprobs is not None) == ("logprobs" in body) for choice in read.choices)


@pytest.mark.parametrize("body", [{}, TWO, {**TWO, "logprobs": 3, "prompt": ["ab", "c"]}])
def test_so_is_a_completion(body: dict[str, Any]) -> None:
    sent = body_of(completion({"max_tokens": 4, **body}))
    read = Completion.model_validate(sent, strict=True)
    assert extras(read) == []
    assert (read.id, read.object, read.created, read.model) == ("cmpl-u", "text_completion", 1_700_000_000, "tiny")
    assert [choice.index for choice in read.choices] == list(range(body.get("n", 1) * (1 + ("prompt" in body))))
    for choice in read.choices:
        if "logprobs" in body:
            assert choice.logprobs is not None
            assert choice.logprobs.text_offset is not None
            assert len(choice.logprobs.text_offset) == 3


def test_a_prompt_counts_once_and_every_answer() -> None:
    usage = body_of(completion({**TWO, "prompt": ["abc", "de"]}))["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (5, 12, 17)


def test_cached_is_what_was_cached_for_every_answer_to_a_prompt() -> None:
    order = completion({"prompt": ["abcd", "efgh"], "n": 2})
    gathering = Gathering(order)
    for index, cached in ((3, 2), (0, 0), (1, 4), (2, 3)):
        gathering.add(Delta(index=index, text="", end=end(cached=cached)))
    usage = json.loads(gathering.body())["usage"]
    assert usage == {
        "prompt_tokens": 8,
        "completion_tokens": 8,
        "total_tokens": 16,
        "prompt_tokens_details": {"cached_tokens": 2},
    }


def test_answers_may_come_in_any_order() -> None:
    order = completion({**TWO, "prompt": ["ab", "c"], "logprobs": 1})
    deltas = deltas_of(order)
    there, back = Gathering(order), Gathering(order)
    for delta in deltas:
        assert not there.complete
        there.add(delta)
    for index in reversed(range(4)):
        for delta in deltas:
            if delta.index == index:
                back.add(delta)
    assert there.complete
    assert there.body() == back.body()


@pytest.mark.parametrize(
    ("stop", "text", "reason", "generated"),
    [(None, "Z", "length", 8), ("\u00ff\u00ff", "Z", "length", 8), ("Z", "", "stop", 1)],
)
def test_why_an_answer_ended(stop: str | None, text: str, reason: str, generated: int) -> None:
    body = {"prompt": "abc", "max_tokens": 8, "ignore_eos": True, "return_token_ids": True}
    likeliest = body_of(completion({**body, "temperature": 0}))["choices"][0]["token_ids"][0]
    seed = (ord("Z") + 5 - likeliest) % MODEL.vocab_size  # an answer begins so many places behind the likeliest
    sent = body_of(completion({**body, "seed": seed, "stop": stop}))
    assert sent["choices"][0]["text"][:1] == text
    assert (sent["choices"][0]["finish_reason"], sent["usage"]["completion_tokens"]) == (reason, generated)


def test_a_token_that_stops_is_counted_and_not_shown() -> None:
    (choice,) = (sent := body_of(chat({"temperature": 0, "max_tokens": 8, "stop_token_ids": list(range(261))})))[
        "choices"
    ]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", "stop")
    assert sent["usage"]["completion_tokens"] == 1


@pytest.mark.parametrize(
    ("reason", "status"), [(Reason.CUT_OFF, 503), (Reason.FAILED, 500), (Reason.STOP, None), (Reason.LENGTH, None)]
)
def test_an_answer_that_is_not_whole_is_an_error(reason: Reason, status: int | None) -> None:
    order = chat({"n": 2})
    gathering = Gathering(order)
    gathering.add(Delta(index=1, text="", end=end(reason)))
    error = error_of(end(reason))
    assert (None if error is None else error.status) == status
    assert (gathering.error is None) == (status is None)
    assert not gathering.complete


def test_ids_come_where_they_are_asked_for() -> None:
    body = {**TWO, "return_token_ids": True}
    sent = body_of(chat(body))
    assert sent["prompt_token_ids"] == [2, *byte_ids("hello"), 4, 3]
    assert [len(choice["token_ids"]) for choice in sent["choices"]] == [3, 3]
    sent = body_of(completion({**body, "prompt": ["ab", "c"]}))
    assert [choice["prompt_token_ids"] for choice in sent["choices"]] == [byte_ids("ab")] * 2 + [byte_ids("c")] * 2
    pieces = MODEL.vocabulary.pieces(skip_special=True)
    for choice in sent["choices"]:
        assert b"".join(pieces[token] for token in choice["token_ids"]).decode("utf-8", "replace") == choice["text"]


@pytest.mark.parametrize(("skip", "shown"), [(True, b""), (False, b"<|assistant|>")])
def test_alternatives_have_the_bytes_that_they_would_have_in_the_text(skip: bool, shown: bytes) -> None:
    order = chat({"logprobs": True, "top_logprobs": 1, "skip_special_tokens": skip})
    told = logprobs_of(order, [TokenText(token=9, piece=b"\x04", offset=0, logprob=-1.0, top=((3, -0.5),))])
    assert told is not None
    assert bytes(told["content"][0]["top_logprobs"][0]["bytes"]) == shown
