"""An answer in one body, from the same pieces that a stream is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import orjson

from inference.protocol.errors import ApiError, cut_off, failed
from inference.protocol.logprobs import chat_logprobs, completion_logprobs
from inference.protocol.order import Kind, Order
from inference.protocol.usage import usage_of
from inference.scheduling.generation import Reason
from inference.text.answer import Delta, End, TokenText

FINISH_REASONS: Final[Mapping[Reason, str]] = {Reason.STOP: "stop", Reason.LENGTH: "length"}
"""What a client is told of an answer that is whole. Any other end is an error, or nobody is there to hear of it."""
RETRY_AFTER: Final = 1
"""Seconds after which an answer that was cut off may be asked for again: there, or where another server is."""


def error_of(end: End) -> ApiError | None:
    """Why an answer is not whole; None for one that is, and for one that nobody waits for."""
    match end.reason:
        case Reason.CUT_OFF:
            return cut_off(RETRY_AFTER)
        case Reason.FAILED:
            return failed()
    return None


@final
class Gathering:
    """The pieces of all answers of an order, as they come in."""

    def __init__(self, order: Order) -> None:
        self._order: Final = order
        self._deltas: Final[list[list[Delta]]] = [[] for _ in order.generations]
        self._ends: Final[list[End | None]] = [None] * len(order.generations)

    def add(self, delta: Delta) -> None:
        """The next piece of one of them."""
        self._deltas[delta.index].append(delta)
        self._ends[delta.index] = delta.end

    @property
    def ends(self) -> Sequence[End]:
        """Of the answers that are over."""
        return [end for end in self._ends if end is not None]

    @property
    def complete(self) -> bool:
        """Whether all are over."""
        return None not in self._ends

    @property
    def error(self) -> ApiError | None:
        """Why there is no body: the first answer that is not whole."""
        return next((error for end in self.ends if (error := error_of(end)) is not None), None)

    def body(self) -> bytes:
        """The whole answer, once all are complete and there is no error."""
        order = self._order
        chosen = [_choice(order, deltas) for deltas in self._deltas]
        prompts = order.return_token_ids and order.kind is Kind.CHAT
        return orjson.dumps(
            {
                **head(order, order.kind.value),
                "choices": chosen,
                "usage": usage_of(order, self.ends),
                **({"prompt_token_ids": order.generations[0].prompt} if prompts else {}),
            }
        )


def head(order: Order, kind: str) -> dict[str, Any]:
    """What a body and every chunk of an answer begin with."""
    return {
        "id": order.id,
        "object": kind,
        "created": order.created,
        "model": order.model.name,
        "system_fingerprint": order.model.fingerprint,
    }


def logprobs_of(order: Order, tokens: Sequence[TokenText]) -> Mapping[str, Any] | None:
    """Those of some tokens; None where none were asked for."""
    if not order.text.tokens:
        return None
    if order.kind is Kind.COMPLETION:
        return completion_logprobs(tokens, order.model.vocabulary)
    return chat_logprobs(tokens, order.model.vocabulary, skip_special=order.text.skip_special)


def _choice(order: Order, deltas: Sequence[Delta]) -> Mapping[str, Any]:
    text = "".join(delta.text for delta in deltas)
    tokens = [token for delta in deltas for token in delta.tokens]
    end = deltas[-1].end
    choice: dict[str, Any] = {
        "index": deltas[0].index,
        "finish_reason": None if end is None else FINISH_REASONS.get(end.reason),
        "logprobs": logprobs_of(order, tokens),
    }
    if order.kind is Kind.CHAT:
        choice["message"] = {"role": "assistant", "content": text, "refusal": None}
    else:
        choice["text"] = text
    if order.return_token_ids:
        choice["token_ids"] = [token for delta in deltas for token in delta.ids]
        if order.kind is Kind.COMPLETION:
            choice["prompt_token_ids"] = order.generations[deltas[0].index].prompt
    return choice
