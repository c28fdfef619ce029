"""Times as Google's APIs write them: RFC 3339 with an offset and up to nine digits of a second."""

from __future__ import annotations

import datetime
import re
from functools import lru_cache
from typing import Final

from policies.audit.record import Item
from policies.errors import InputError

_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_KEPT: Final = 1 << 16
"""Distinct texts that are kept: the points of a week share their times."""


@lru_cache(maxsize=_KEPT)
def instant(text: str) -> datetime.datetime:
    """The time that `text` says, in UTC, to the microsecond. Raises InputError for what is no time.

    A leap second (`23:59:60`) is the second after it.
    """
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise InputError(_refused(text))
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    sign, hours, minutes = found.group(8) or "+", int(found.group(9) or 0), int(found.group(10) or 0)
    if hours > 23 or minutes > 59 or second > 60:
        raise InputError(_refused(text))
    micro = int((found.group(7) or "0").ljust(6, "0")[:6])
    offset = datetime.timedelta(hours=hours, minutes=minutes) * (-1 if sign == "-" else 1)
    leap = datetime.timedelta(seconds=second // 60)
    try:
        local = datetime.datetime(year, month, day, hour, minute, second - second // 60, micro, tzinfo=datetime.UTC)
        return local - offset + leap
    except (ValueError, OverflowError) as error:
        raise InputError(_refused(text)) from error


def epoch(text: str) -> float:
    """`instant` in seconds of the epoch, as the columns of a series hold it."""
    return instant(text).timestamp()


def when(item: Item, field: str) -> datetime.datetime | None:
    """The time in `field` of a resource; None where it has none. Raises InputError that names the resource."""
    value = item.get(field)
    if value is None or value == "":
        return None
    subject = f"{item.get('selfLink') or item.get('name') or 'a resource'}: {field}"
    if not isinstance(value, str):
        raise InputError(f"{subject} is {value!r}; a time is text, as in 2026-05-01T00:59:00Z")
    try:
        return instant(value)
    except InputError as error:
        raise InputError(f"{subject}: {error}") from error


def stopped_at(instance: Item) -> datetime.datetime | None:
    """When an instance was stopped or suspended last; None where it does not say."""
    times = [when(instance, key) for key in ("lastStopTimestamp", "lastSuspendedTimestamp")]
    return max((time for time in times if time is not None), default=None)


def _refused(text: str) -> str:
    return f'"{text}" is no time; it must be RFC 3339 with its zone, as in 2026-05-01T00:59:00Z or ...T12:00:00.5-07:00'
