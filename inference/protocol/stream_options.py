"""How a stream tells the tokens that were used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from inference.protocol.errors import invalid
from inference.protocol.fields import Decision, Field, JsonType, check_fields


@final
@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """What was asked for."""

    include_usage: bool = False
    """A last chunk tells the tokens of all answers."""
    continuous_usage: bool = False
    """Every chunk tells those of its own answer."""


_FIELDS: Final = tuple(
    Field(name=f"stream_options.{name}", type=JsonType.BOOLEAN, decision=decision, note=note)
    for name, decision, note in (
        ("include_usage", Decision.SUPPORTED, "the last chunk tells the tokens of all answers"),
        ("continuous_usage_stats", Decision.SUPPORTED, "every chunk tells those of its own answer"),
        ("include_obfuscation", Decision.IGNORED, "chunks are as long as their text"),
    )
)


def stream_options(found: Mapping[str, Any]) -> StreamOptions:
    """From the fields of a request. Raises ApiError (400), also where there is no stream."""
    if "stream_options" not in found:
        return StreamOptions()
    if not found.get("stream", False):
        raise invalid("stream_options", "is there without a stream; send it with `stream: true` only")
    sent = {f"stream_options.{name}": value for name, value in found["stream_options"].items()}
    options = check_fields(_FIELDS, sent)
    return StreamOptions(
        include_usage=options.get("stream_options.include_usage", False),
        continuous_usage=options.get("stream_options.continuous_usage_stats", False),
    )
