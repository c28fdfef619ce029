"""Sets of time: half-open spans in whole microseconds, sorted and apart from each other."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

Span: TypeAlias = tuple[int, int]
"""Start and end in microseconds of the epoch; the end does not belong to it."""
Spans: TypeAlias = tuple[Span, ...]

MICRO: Final = 1_000_000
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_TICK: Final = datetime.timedelta(microseconds=1)


def micros(moment: datetime.datetime) -> int:
    """A time in microseconds of the epoch, exactly."""
    return (moment - _EPOCH) // _TICK


def moment(micros: int) -> datetime.datetime:
    """The time of so many microseconds of the epoch."""
    return _EPOCH + datetime.timedelta(microseconds=micros)


def united(spans: Iterable[Span]) -> Spans:
    """The times that are in any of the spans; empty and backward ones count for nothing."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def common(one: Spans, other: Spans) -> Spans:
    """The times that are in both sets."""
    return tuple(_common(one, other))


def without(one: Spans, other: Spans) -> Spans:
    """The times of the first set that are not in the other."""
    found: list[Span] = []
    for start, end in one:
        at = start
        for left, right in _common(((start, end),), other):
            if at < left:
                found.append((at, left))
            at = right
        if at < end:
            found.append((at, end))
    return tuple(found)


def length(spans: Spans) -> int:
    """How long they are together, in microseconds."""
    return sum(end - start for start, end in spans)


def _common(one: Spans, other: Spans) -> Iterator[Span]:
    i = j = 0
    while i < len(one) and j < len(other):
        start, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < end:
            yield start, end
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
