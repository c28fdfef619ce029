"""Streams: the rules of chunks, held against the types of OpenAI's client and against the whole body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletionChunk

from inference.protocol.errors import draining
from inference.protocol.order import Kind, Order
from inference.protocol.stream import DONE, KEEP_ALIVE, closing, error_event, events, opening
from inference.scheduling.generation import Reason
from inference.text.answer import Delta, End, TokenText
from tests.inference.protocol.answering import body_of, chat, chunks_of, completion, stream_of
from tests.inference.protocol.shapes import extras

BODY = {"stream": True, "max_tokens": 12, "seed": 5, "ignore_eos": True, "n": 2}
USAGE = {"stream_options": {"include_usage": True}}
ORDERS = {
    "chat": lambda more: chat({**BODY, **more}),
    "completion": lambda more: completion({**BODY, "prompt": ["ab", "한"], **more}),
    "chat with logprobs": lambda more: chat({**BODY, "logprobs": True, "top_logprobs": 2, **more}),
    "completion with logprobs": lambda more: completion({**BODY, "logprobs": 2, "echo": True, **more}),
}


def order_of(name: str, more: dict[str, Any]) -> Order:
    order: Order = ORDERS[name](more)
    return order


def choices(chunks: list[Any], index: int) -> list[Any]:
    return [choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == index]


def text_of(choice: Any) -> str:
    text = choice["delta"].get("content", "") if "delta" in choice else choice["text"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("more", [{}, USAGE, {"stop": ["a", "\u00e9b"]}])
def test_every_chunk_is_what_the_client_reads(name: str, more: dict[str, Any]) -> None:
    order = order_of(name, more)
    for chunk in chunks_of(stream_of(order)):
        if order.kind is Kind.CHAT:
            read: Any = ChatCompletionChunk.model_validate(chunk, strict=True)
            assert extras(read) == []
        else:
            for choice in chunk["choices"]:  # the client's own type says that an end is in every chunk
                choice["finish_reason"] = choice["finish_reason"] or "stop"
                if choice["logprobs"] is not None:
                    choice["logprobs"] = {**choice["logprobs"], "token_logprobs": [], "top_logprobs": []}
            read = Completion.model_validate(chunk, strict=True)
            assert extras(read) == []
        assert (read.id, read.object, read.model) == (order.id, order.kind.chunk, "tiny")
        assert (read.created, read.system_fingerprint) == (1_700_000_000, "fp")


@pytest.mark.parametrize("name", ORDERS)
def test_the_stream_joined_is_the_whole_body(name: str) -> None:
    order = order_of(name, {"stop": ["\u00e9b"], **USAGE})
    chunks, body = chunks_of(stream_of(order)), body_of(order)
    assert chunks[-1]["usage"] == body["usage"]
    for whole in body["choices"]:
        parts = choices(chunks, whole["index"])
        assert "".join(map(text_of, parts)) == (whole["message"]["content"] if "message" in whole else whole["text"])
        assert [part["finish_reason"] for part in parts] == [None] * (len(parts) - 1) + [whole["finish_reason"]]
        assert text_of(parts[-1]) == ""
        if whole["logprobs"] is not None:
            lists: dict[str, list[Any]] = {key: [] for key, value in whole["logprobs"].items() if value is not None}
            for part in parts:
                for key in lists if part["logprobs"] else ():
                    lists[key] += part["logprobs"][key]
            assert lists == {key: value for key, value in whole["logprobs"].items() if value is not None}


def test_the_role_comes_first_and_once_for_every_answer() -> None:
    chunks = chunks_of(stream_of(chat({**BODY, "n": 3})))
    for index in range(3):
        first, *others = choices(chunks, index)
        assert first["delta"] == {"role": "assistant", "content": ""}
        assert all("role" not in other["delta"] for other in others)
        assert others[-1]["delta"] == {}


def test_a_completion_has_no_opening() -> None:
    assert opening(completion(BODY)) == b""


@pytest.mark.parametrize("name", ORDERS)
def test_usage_comes_last_and_only_where_it_is_asked_for(name: str) -> None:
    plain = chunks_of(stream_of(order_of(name, {})))
    assert all("usage" not in chunk and chunk["choices"] for chunk in plain)
    asked = chunks_of(stream_of(order_of(name, USAGE)))
    assert all(chunk["usage"] is None and chunk["choices"] for chunk in asked[:-1])
    assert asked[-1]["choices"] == []
    assert [{**chunk, "usage": None} for chunk in asked[:-1]] == [{**chunk, "usage": None} for chunk in plain]
    assert stream_of(order_of(name, USAGE)).endswith(b"}\n\ndata: [DONE]\n\n")


def test_usage_of_an_answer_may_be_told_all_along() -> None:
    order = chat({**BODY, "n": 1, "stream_options": {"include_usage": True, "continuous_usage_stats": True}})
    *chunks, last = chunks_of(stream_of(order))
    told = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0, 12)
    assert {chunk["usage"]["prompt_tokens"] for chunk in chunks} == {8}
    assert last["usage"] == {
        "prompt_tokens": 8,
        "completion_tokens": 12,
        "total_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def test_ids_come_along_each_once() -> None:
    order = chat({**BODY, "n": 1, "return_token_ids": True})
    chunks, body = chunks_of(stream_of(order)), body_of(order)
    assert [chunk.get("prompt_token_ids") for chunk in chunks[:2]] == [body["prompt_token_ids"], None]
    sent = [token for choice in choices(chunks, 0) for token in choice["token_ids"]]
    assert sent == body["choices"][0]["token_ids"]
    assert len(sent) == 12


@pytest.mark.parametrize(("reason", "code"), [(Reason.CUT_OFF, "cut_off"), (Reason.FAILED, "engine_failed")])
@pytest.mark.parametrize("read", [chat, completion])
def test_a_stream_that_breaks_off_ends_with_an_error(read: Any, reason: Reason, code: str) -> None:
    order = read({"stream": True})
    end = End(reason=reason, prompt_tokens=2, cached_tokens=0, generated_tokens=1)
    sent = events(order, Delta(index=0, text="half", end=end)).split(b"\n\n")
    assert b"half" in sent[0]
    assert json.loads(sent[1].removeprefix(b"data: "))["error"]["code"] == code
    assert sent[2:] == [b""]
    assert b"finish_reason" not in sent[1]


def test_a_token_without_text_is_told_all_the_same() -> None:
    order = chat({"stream": True, "logprobs": True})
    token = TokenText(token=2, piece=b"", offset=0, logprob=-1.0, top=())
    sent = json.loads(events(order, Delta(index=0, text="", tokens=(token,))).removeprefix(b"data: "))
    (choice,) = sent["choices"]
    assert choice["delta"] == {"content": ""}
    assert choice["logprobs"]["content"][0]["token"] == "<|user|>"


def test_nothing_is_said_to_a_client_that_is_gone() -> None:
    end = End(reason=Reason.CANCELLED, prompt_tokens=2, cached_tokens=0, generated_tokens=1)
    assert events(chat({"stream": True}), Delta(index=0, text="", end=end)) == b""


def test_the_events_beside_the_chunks() -> None:
    assert DONE == b"data: [DONE]\n\n"
    assert KEEP_ALIVE == b": keep-alive\n\n"
    assert error_event(draining(1)).startswith(b'data: {"error":{"message":"The server is shutting down')
    assert closing(chat({"stream": True}), {}) == DONE
