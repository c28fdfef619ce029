"""Points in time of a world file: RFC 3339, or relative to the world's clock, as in `now-36h`."""

from __future__ import annotations

import datetime
import re
from typing import Any, Final

_RELATIVE: Final = re.compile(r"now(?:([-+])(\d+)([dhms]))?")
_UNITS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def instant(text: str, now: datetime.datetime) -> datetime.datetime:
    """`now`, `now-30d`, `now+2h`, or RFC 3339 with its zone."""
    match = _RELATIVE.fullmatch(text)
    if match is None:
        when = datetime.datetime.fromisoformat(text)
        if when.tzinfo is None:
            raise ValueError(f"{text!r} says no time zone")
        return when
    sign, amount, unit = match.groups()
    shift = int(amount or 0) * _UNITS[unit or "s"]
    return now + datetime.timedelta(seconds=-shift if sign == "-" else shift)


def rfc3339(when: datetime.datetime) -> str:
    """As Compute writes it: milliseconds, and Z."""
    return when.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def resolved(value: Any, now: datetime.datetime) -> Any:
    """A JSON value in which every text `now...` has become RFC 3339."""
    if isinstance(value, str):
        return rfc3339(instant(value, now)) if _RELATIVE.fullmatch(value) else value
    if isinstance(value, dict):
        return {key: resolved(item, now) for key, item in value.items()}
    return [resolved(item, now) for item in value] if isinstance(value, list) else value
