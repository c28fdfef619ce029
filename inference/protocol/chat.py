"""`POST /v1/chat/completions`: from a body to an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.protocol.errors import echo, invalid
from inference.protocol.field_rows import FIELDS
from inference.protocol.fields import Endpoint, check_fields, check_model
from inference.protocol.json_body import parse_body
from inference.protocol.messages import read_messages
from inference.protocol.order import Arrival, Kind, Order
from inference.protocol.ordering import Wanted, check_answers, make_order
from inference.protocol.served_model import ServedModel


def parse_chat(body: bytes, model: ServedModel, arrival: Arrival) -> Order:
    """What `body` asks for. Raises ApiError (400, 404), whatever it holds."""
    found = check_fields(FIELDS[Endpoint.CHAT], parse_body(body))
    check_model(found, model.name)
    _check_response_format(found)
    check_answers(found, 1, model)
    wanted = Wanted(
        kind=Kind.CHAT,
        max_tokens=found.get("max_completion_tokens", found.get("max_tokens")),
        logprobs=_logprobs(found),
        ends=frozenset({model.end_of_turn, model.end_of_text}),
    )
    return make_order(found, [read_messages(found, model)], wanted, model=model, arrival=arrival)


def _logprobs(found: Mapping[str, Any]) -> int | None:
    if found.get("logprobs", False):
        alternatives: int = found.get("top_logprobs", 0)
        return alternatives
    if "top_logprobs" in found:
        raise invalid("top_logprobs", "is there without log-probabilities; send it with `logprobs: true`")
    return None


def _check_response_format(found: Mapping[str, Any]) -> None:
    kind = found.get("response_format", {"type": "text"}).get("type")
    if kind != "text":
        raise invalid(
            "response_format",
            f"is of type {echo(kind)}; text is supported, and answers are not held to a grammar",
            code="unsupported_parameter",
        )
