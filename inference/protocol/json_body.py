"""A body as strict JSON: an object, in UTF-8, each key once, every number finite.

Two readers, since each is strict where the other is not: orjson holds to the grammar, to UTF-8, to paired surrogates,
to finite numbers and to 1,024 levels; that of the standard library shows every key of an object and keeps whole numbers
whole.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import orjson

from inference.protocol.errors import echo, invalid


def check_content_type(value: str | None) -> None:
    """Refuse a body that does not say that it is JSON: `application/json`, with or without a charset of UTF-8.

    It is asked for, since a page in a browser can send anything else to a server on the same machine, unasked. Raises
    ApiError (400).
    """
    kind, *parameters = (part.strip().lower() for part in (value or "").split(";"))
    charsets = [part.partition("=")[2].strip('" ') for part in parameters if part.startswith("charset")]
    if kind != "application/json" or any(charset not in ("utf-8", "utf8") for charset in charsets):
        raise invalid(None, f"Content-Type is {echo(value)}; send `application/json`", code="unsupported_content_type")


def parse_body(body: bytes) -> Mapping[str, Any]:
    """The object that is in `body`. Raises ApiError (400)."""
    try:
        orjson.loads(body)
        value = json.loads(body, object_pairs_hook=_each_key_once)
    except RecursionError:
        raise invalid(None, "The body is nested too deeply", code="invalid_json") from None
    except (orjson.JSONDecodeError, ValueError) as error:
        raise invalid(None, f"The body is no valid JSON: {_bounded(error)}", code="invalid_json") from None
    if not isinstance(value, dict):
        raise invalid(None, f"The body is {echo(value)}; it is a JSON object", code="invalid_json")
    return value


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {echo(twice)} is there twice")
    return found


def _bounded(error: Exception) -> str:
    return echo(str(error)).strip('"')
