"""A model of single bytes, requests to it, and their answers by the engine whose tokens are sums."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from inference.engine.abstract_engine import AbstractEngine
from inference.protocol.bodies import Gathering
from inference.protocol.chat import parse_chat
from inference.protocol.completions import parse_completion
from inference.protocol.errors import ApiError
from inference.protocol.order import Arrival, Order
from inference.protocol.served_model import ServedModel
from inference.protocol.stream import closing, events, opening
from inference.scheduling.generation import Generation, Reason
from inference.testing import SummingEngine
from inference.text.answer import Answer, Delta, End
from tests.inference.text.pieces import ended, tokenizer_of

ARRIVAL = Arrival(request_id="r-1", created=1_700_000_000, unique="u", seed=7, tenant="acme")
VOCAB = 261
"""The reserved 0 to 4, then the bytes: byte b is the token b + 5."""
MODEL = ServedModel(
    name="tiny",
    tokenizer=tokenizer_of([]),
    context=64,
    vocab_size=VOCAB,
    created=1_600_000_000,
    fingerprint="fp",
    most_answers=32,
)
HELLO = [{"role": "user", "content": "hello"}]


def byte_ids(text: str) -> list[int]:
    """The tokens of a text."""
    return [byte + 5 for byte in text.encode()]


def completion(body: Mapping[str, Any] | bytes, model: ServedModel = MODEL) -> Order:
    """The order of a body, with a prompt where it has none."""
    sent = body if isinstance(body, bytes) else json.dumps({"model": "tiny", "prompt": "ab", **body}).encode()
    return parse_completion(sent, model, ARRIVAL)


def chat(body: Mapping[str, Any] | bytes, model: ServedModel = MODEL) -> Order:
    """The order of a body, with messages where it has none."""
    sent = body if isinstance(body, bytes) else json.dumps({"model": "tiny", "messages": HELLO, **body}).encode()
    return parse_chat(sent, model, ARRIVAL)


def refusal(read: Callable[[], object]) -> ApiError:
    """The error that reading ends with."""
    try:
        read()
    except ApiError as error:
        return error
    raise AssertionError("it was taken")


def engine(possible: int | None = None) -> SummingEngine:
    """For the vocabulary of MODEL."""
    return SummingEngine(slots=1, vocab_size=VOCAB, context=MODEL.context, possible=possible)


def deltas_of(order: Order, by: AbstractEngine | None = None) -> list[Delta]:
    """All pieces, answer by answer."""
    told: list[Delta] = []
    for index, generation in enumerate(order.generations):
        _make(generation, order.answer(index, told.append), by or engine())
    return told


def _make(generation: Generation, answer: Answer, by: AbstractEngine) -> None:
    """One answer, as a scheduler with nothing else to do makes it."""
    by.admit(1, generation.parameters, prompt=generation.prompt, start=None)
    choice = None
    while choice is None:
        read = by.prefill(1, scored=generation.score_prompt)
        if generation.score_prompt:
            answer.scored(read.scores)
        choice = read.choice
    reason, generated = Reason.LENGTH, 0
    while generated < generation.max_tokens:
        generated += 1
        stopped = choice.token in generation.stop_tokens and generated > generation.min_tokens
        if answer.token(choice) or stopped:
            reason = Reason.STOP
            break
        if generated < generation.max_tokens:
            choice = by.decode([1])[1]
    by.release(1)
    answer.ended(ended(reason, generated, cached=0))


def body_of(order: Order, by: AbstractEngine | None = None) -> Any:
    """The whole answer, parsed."""
    gathering = Gathering(order)
    for delta in deltas_of(order, by):
        gathering.add(delta)
    assert gathering.complete
    assert gathering.error is None
    return strict(gathering.body())


def stream_of(order: Order, by: AbstractEngine | None = None) -> bytes:
    """The whole stream."""
    told = deltas_of(order, by)
    ends: dict[int, End] = {delta.index: delta.end for delta in told if delta.end is not None}
    return opening(order) + b"".join(events(order, delta) for delta in told) + closing(order, ends)


def chunks_of(stream: bytes) -> list[Any]:
    """The events of a stream, each parsed strictly; the last must be `[DONE]`, and is left out."""
    sent = list(_events(stream))
    assert sent[-1] == b"[DONE]"
    return [strict(event) for event in sent[:-1]]


def _events(stream: bytes) -> Iterator[bytes]:
    assert stream.endswith(b"\n\n")
    for event in stream.removesuffix(b"\n\n").split(b"\n\n"):
        assert event.startswith(b"data: ")
        assert b"\n" not in event
        yield event.removeprefix(b"data: ")


def strict(content: bytes) -> Any:
    """JSON without NaN and infinities."""

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(content, parse_constant=refused)
