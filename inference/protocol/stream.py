"""An answer as server-sent events: `opening`, then `events` of every piece, then `closing`.

Every chunk has choices; the first of an answer to a chat has the role, the last has the reason of its end and no text.
Where usage was asked for, one chunk without choices comes last and has it, and in all others it is null. Then `[DONE]`.

An answer that is not whole has no finish_reason: an event with `error` says why, and nothing comes after it, not even
`[DONE]`, so that nobody takes a part for the whole. The status was 200 by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from inference.protocol.bodies import FINISH_REASONS, error_of, head, logprobs_of
from inference.protocol.errors import ApiError
from inference.protocol.order import Kind, Order
from inference.protocol.usage import usage_of, usage_so_far
from inference.text.answer import Delta, End

DONE: Final = b"data: [DONE]\n\n"
"""The last of a stream that is whole."""
KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, for proxies that close what is silent."""
MEDIA_TYPE: Final = "text/event-stream"
"""Of the response."""


def opening(order: Order) -> bytes:
    """What is sent before the first piece: the roles in a chat; nothing in a completion."""
    if order.kind is Kind.COMPLETION:
        return b""
    return b"".join(
        _chunk(order, index, _shape(order, delta={"role": "assistant", "content": ""}), first=True)
        for index in range(len(order.generations))
    )


def events(order: Order, delta: Delta) -> bytes:
    """A piece; at the end of an answer its last chunk too, or the event of its error."""
    sent = b""
    if delta.text or delta.tokens:
        shape = _shape(order, text=delta.text, logprobs=logprobs_of(order, delta.tokens))
        sent = _chunk(order, delta.index, shape, ids=delta.ids, generated=delta.generated)
    if delta.end is None:
        return sent
    error = error_of(delta.end)
    if error is not None:
        return sent + error_event(error)
    finish = FINISH_REASONS.get(delta.end.reason)
    if finish is None:
        return sent  # nobody hears it
    ids = () if sent else delta.ids
    return sent + _chunk(order, delta.index, _shape(order, finish=finish), ids=ids, generated=delta.generated)


def closing(order: Order, ends: Mapping[int, End]) -> bytes:
    """What is sent when all answers are whole, by their index: the usage where it was asked for, and `[DONE]`."""
    if not order.include_usage:
        return DONE
    usage = usage_of(order, [ends[index] for index in range(len(order.generations))])
    return _event({**head(order, order.kind.chunk), "choices": [], "usage": usage}) + DONE


def error_event(error: ApiError) -> bytes:
    """The last event of a stream that breaks off."""
    return _event({"error": error.fields})


def _shape(
    order: Order,
    *,
    text: str = "",
    delta: Mapping[str, str] | None = None,
    logprobs: Mapping[str, Any] | None = None,
    finish: str | None = None,
) -> dict[str, Any]:
    """A choice, without its index."""
    if order.kind is Kind.COMPLETION:
        return {"text": text, "logprobs": logprobs, "finish_reason": finish}
    if delta is None:
        delta = {"content": text} if finish is None else {}
    return {"delta": delta, "logprobs": logprobs, "finish_reason": finish}


def _chunk(
    order: Order,
    index: int,
    choice: dict[str, Any],
    *,
    ids: tuple[int, ...] = (),
    generated: int = 0,
    first: bool = False,
) -> bytes:
    choice["index"] = index
    chunk = head(order, order.kind.chunk)
    chunk["choices"] = [choice]
    if order.return_token_ids:
        choice["token_ids"] = ids
        if first:
            chunk["prompt_token_ids"] = order.generations[index].prompt
    if order.continuous_usage:
        chunk["usage"] = usage_so_far(order, index, generated)
    elif order.include_usage:
        chunk["usage"] = None
    return _event(chunk)


def _event(content: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(content) + b"\n\n"
