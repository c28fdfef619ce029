"""From points to rates: what one metric of one reader says, each moment once.

A DELTA point is an amount, divided by its own length, be it a minute or an hour. A GAUGE of a byte counter is a rate
per second. Where points cover the same time, the finest wins; of equal ones the larger. Points may come in any order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise, repeat
from typing import Final, NamedTuple, final

from policies.audit.record import Kind, Series
from policies.audit.telemetry.grid import Grid, grid_of
from policies.audit.telemetry.spans import MICRO, Span, Spans, united, without

FINE: Final = 1 << 20
"""Parts of a byte that are told apart where a value is no whole number."""
SCALE: Final = 86_400 * FINE
"""Rates are whole numbers of 1/SCALE byte per second: exact for whole bytes over any part of a day in seconds."""
MOST: Final = 2.0**63
"""No counter of Google's holds as much; such a value, and a negative one, counts as not seen."""


class Piece(NamedTuple):
    """A rate over a time that no other piece of the same strand covers."""

    start: int
    end: int
    rate: int
    """In 1/SCALE byte per second."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Strand:
    """One metric of one reader: everything that the record has of it."""

    reader: str
    """Whose it is, for a message."""
    series: tuple[Series, ...]
    """Most often one; hourly and minute points of the same pair may be two."""
    window: Span
    due: Spans = ()
    """When points are due: while its machine ran with the volume attached."""

    @cached_property
    def finest(self) -> tuple[tuple[Series, Grid], ...]:
        """The series with their grids, without those whose whole time a finer one covers."""
        readable = (_readable(series) for series in self.series if series.kind is not Kind.CUMULATIVE)
        found = [(series, grid) for series in readable if len(grid := grid_of(series, self.window))]
        return tuple(found) if len(found) < 2 else tuple(_finest(found))

    @cached_property
    def covered(self) -> Spans:
        """The times for which it has points."""
        grids = [grid for _, grid in self.finest]
        return grids[0].covered if len(grids) == 1 else united(span for grid in grids for span in grid.covered)

    @cached_property
    def unseen(self) -> Spans:
        """The times for which points were due and are not there."""
        return without(self.due, self.covered)

    @property
    def silent(self) -> bool:
        """Whether it has nothing to say: no points, and none were due."""
        return not self.finest and not self.due


@final
@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Even:
    """The points of a strand that are of one length and apart: the common case, kept in columns."""

    grid: Grid
    numbers: Sequence[int] | None
    """Amounts in `unit` bytes over the length of a point, or rates for a gauge; None where all are 0."""
    unit: int
    """1, or FINE where the values are no whole numbers: a number is so many parts of a byte."""
    per: int
    """Microseconds that a number is an amount of."""


def even(strand: Strand) -> Even | None:
    """The strand in columns; None where its points overlap, differ in length, or are not there."""
    if len(strand.finest) != 1 or not strand.finest[0][1].even:
        return None
    series, grid = strand.finest[0]
    unit = 1 if series.whole else FINE
    per = MICRO if series.kind is Kind.GAUGE else grid.owns[0]
    return Even(grid=grid, numbers=_numbers(series, grid, unit), unit=unit, per=per)


def pieces(strand: Strand) -> list[Piece]:
    """The rates of a strand in the order of time, each moment once."""
    first, rest = strand.finest[:1], strand.finest[1:]
    if not rest or not _finer(first[0][1], [grid for _, grid in rest]):
        return _resolved(_raw(strand.finest))
    # Ten thousand minutes and a few hours that they leave open: only the hours need a closer look.
    left = (
        Piece(start, end, piece.rate)
        for piece in _resolved(_raw(rest))
        for start, end in without(((piece.start, piece.end),), first[0][1].covered)
    )
    return sorted((*_resolved(_raw(first)), *left))


def _finer(one: Grid, others: Iterable[Grid]) -> bool:
    return all(max(one.owns) < min(other.owns) for other in others)


def highest(series: Iterable[Series], window: Span) -> float | None:
    """The largest value of some gauges within the window; None where there is none."""
    opens, closes = window[0] / MICRO, window[1] / MICRO
    tops: list[float] = []
    for each in map(_readable, series):
        if len(each) and (min(each.ends) <= opens or max(each.ends) > closes):
            tops.extend(value for end, value in zip(each.ends, each.values, strict=True) if opens < end <= closes)
        elif len(each):
            tops.append(max(each.values))
    return max(tops, default=None)


def _finest(found: Sequence[tuple[Series, Grid]]) -> Iterator[tuple[Series, Grid]]:
    covered: Spans = ()
    longest = 0
    for series, grid in sorted(found, key=lambda each: max(each[1].owns)):
        # Of points of one length it is the value that decides, so they all stay.
        if min(grid.owns) <= longest or without(grid.covered, covered):
            longest = max(grid.owns)
            covered = united((*covered, *grid.covered))
            yield series, grid


def _numbers(series: Series, grid: Grid, unit: int) -> Sequence[int] | None:
    values = series.values
    if values.tobytes() == bytes(values.itemsize * len(values)):
        return None
    used: Iterable[float] = values if grid.kept is None else map(values.__getitem__, grid.kept)
    return list(map(int, used)) if unit == 1 else [int(value * unit) for value in used]


def _raw(found: Iterable[tuple[Series, Grid]]) -> list[tuple[int, int, int, int]]:
    """Start, end, own length and negated rate of each point, in order: of equal ones the larger first."""
    points: list[tuple[int, int, int, int]] = []
    for series, grid in found:
        unit = 1 if series.whole else FINE
        times = SCALE // unit * MICRO
        values = series.values if grid.kept is None else map(series.values.__getitem__, grid.kept)
        pers = repeat(MICRO, len(grid)) if series.kind is Kind.GAUGE else grid.owns
        rates = (-(int(value * unit) * times // per) for value, per in zip(values, pers, strict=True))
        points.extend(zip(grid.starts, grid.ends, grid.owns, rates, strict=True))
    points.sort()
    return points


def _resolved(raw: Sequence[tuple[int, int, int, int]]) -> list[Piece]:
    """Each moment once: the shortest point that covers it, of equal ones the largest."""
    if all(one[1] <= other[0] for one, other in pairwise(raw)):
        return [Piece(start, end, -rate) for start, end, _, rate in raw]
    found: list[Piece] = []
    bounds = sorted({bound for start, end, _, _ in raw for bound in (start, end)})
    waiting: list[tuple[int, int, int]] = []
    at = 0
    for left, right in pairwise(bounds):
        while at < len(raw) and raw[at][0] <= left:
            _, end, own, rate = raw[at]
            heappush(waiting, (own, rate, end))
            at += 1
        while waiting and waiting[0][2] <= left:
            heappop(waiting)
        if waiting:
            found.append(Piece(left, right, -waiting[0][1]))
    return found


def _readable(series: Series) -> Series:
    """The series without values that no counter can have."""
    values = series.values
    if not values or (min(values) >= 0 and max(values) < MOST):
        return series
    kept = [at for at, value in enumerate(values) if 0 <= value < MOST]
    return replace(
        series,
        starts=array("d", [series.starts[at] for at in kept]),
        ends=array("d", [series.ends[at] for at in kept]),
        values=array("d", [values[at] for at in kept]),
    )
