"""When the points of a series are: what time each one covers.

Ten thousand volumes share the hours of a week, so a grid is worked out once for all series that have the same times.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, pairwise
from operator import le, lt, sub
from typing import Final, final

from policies.audit.record import Kind, Series
from policies.audit.telemetry.spans import MICRO, Span, Spans, united

LONE_GAUGE: Final = 60 * MICRO
"""A gauge is sampled once a minute; a single point without an interval covers so much."""
WIDEST_GAUGE: Final = 3600 * MICRO
"""Gauges are aligned to an hour at most; points further apart have a gap between them."""
_KEPT: Final = 64


@final
@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Grid:
    """The times of the points of one series, cut to the window. All in microseconds."""

    starts: array[int]
    """Of each point that is used, in the order of the series."""
    ends: array[int]
    owns: array[int]
    """Length of each point before it was cut: what its amount is divided by."""
    kept: array[int] | None
    """Which points of the series these are; None for all of them."""
    covered: Spans
    even: bool
    """Whether all points are of one length and none overlaps another."""
    weights: tuple[int, ...] | None
    """How much of each point lies in the window; None where all count alike."""

    def __len__(self) -> int:
        return len(self.starts)


def grid_of(series: Series, window: Span) -> Grid:
    """The grid of a series. Points that cover no time, or none of the window, are not in it."""
    return _grid(series.starts.tobytes(), series.ends.tobytes(), series.kind is Kind.GAUGE, *window)


@lru_cache(maxsize=_KEPT)
def _grid(starts: bytes, ends: bytes, gauge: bool, opens: int, closes: int) -> Grid:
    lefts, rights = _columns(starts, ends, gauge)
    whole = all(map(lt, lefts, rights)) and min(lefts, default=opens) >= opens
    if whole and max(rights, default=closes) <= closes:
        return _made(lefts, rights, lefts, rights, None)
    kept = [at for at, (left, right) in enumerate(zip(lefts, rights, strict=True)) if _seen(left, right, opens, closes)]
    return _made(
        [max(lefts[at], opens) for at in kept],
        [min(rights[at], closes) for at in kept],
        [lefts[at] for at in kept],
        [rights[at] for at in kept],
        array("q", kept) if len(kept) < len(lefts) else None,
    )


def _seen(left: int, right: int, opens: int, closes: int) -> bool:
    return left < right and left < closes and right > opens


def _columns(starts: bytes, ends: bytes, gauge: bool) -> tuple[list[int], list[int]]:
    rights = [round(second * MICRO) for second in array("d", ends)]
    lefts = [round(second * MICRO) for second in array("d", starts)]
    if not gauge:
        return lefts, rights
    step = _step(lefts, rights)
    return [right - step for right in rights], rights


def _step(lefts: Sequence[int], rights: Sequence[int]) -> int:
    """An aligned gauge says what came before it, back to the point before: so far as its neighbours are apart."""
    apart = [right - left for left, right in pairwise(sorted(set(rights)))]
    own = max(map(sub, rights, lefts), default=0)
    return min(*apart, WIDEST_GAUGE) if apart else own or LONE_GAUGE


def _made(
    starts: Sequence[int], ends: Sequence[int], lefts: Sequence[int], rights: Sequence[int], kept: array[int] | None
) -> Grid:
    owns = array("q", map(sub, rights, lefts))
    weights = owns if starts is lefts else array("q", map(sub, ends, starts))
    covered = _covered(starts, ends) or _covered(starts[::-1], ends[::-1])
    return Grid(
        starts=array("q", starts),
        ends=array("q", ends),
        owns=owns,
        kept=kept,
        covered=covered or united(zip(starts, ends, strict=True)),
        even=len(set(owns)) <= 1 and (bool(covered) or _apart(sorted(zip(starts, ends, strict=True)))),
        weights=None if len(set(weights)) <= 1 else tuple(weights),
    )


def _covered(starts: Sequence[int], ends: Sequence[int]) -> Spans:
    """What points cover that stand in the order of time and apart; nothing for others."""
    if not all(map(le, ends[:-1], starts[1:])):
        return ()
    breaks = list(map(lt, ends[:-1], starts[1:]))
    opens = (*starts[:1], *compress(starts[1:], breaks))
    closes = (*compress(ends, breaks), *ends[-1:])
    return tuple(zip(opens, closes, strict=True))


def _apart(order: Sequence[Span]) -> bool:
    return all(one[1] <= other[0] for one, other in pairwise(order))
