"""JSON that can be read in one way only."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def parse_json(content: bytes, *, number: Callable[[str], Any] | None = None) -> Any:
    """What `content` says; `number`, where given, reads every number from its text.

    Raises ValueError for what is no JSON in UTF-8, says NaN or Infinity, has a name twice in an object or half a
    surrogate pair in a text, or is nested deeper than Python goes.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"no UTF-8 at byte {error.start} ({error.reason})") from None
    try:
        found = json.loads(
            text, object_pairs_hook=_without_doubles, parse_constant=_refuse, parse_int=number, parse_float=number
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error}") from None
    except RecursionError:
        raise ValueError("nested deeper than any file of a model is") from None
    if "\\ud" in text or "\\uD" in text:  # elsewhere a surrogate cannot come from
        _check_text(found)
    return found


def kind_of(value: Any) -> str:
    """What a value of JSON is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"the number {str(value)[:40]}"


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{double!r} stands twice in one object; which one is meant cannot be known")
    return found


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _check_text(value: Any) -> None:
    match value:
        case dict():
            for name, each in value.items():
                _check_text(name)
                _check_text(each)
        case list():
            for each in value:
                _check_text(each)
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(f"{value!r} is no text: half a surrogate pair stands in it") from None
        case _:
            pass
