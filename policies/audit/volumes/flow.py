"""What all readers of a volume move together: mean, p99 and peak of the sum, and how much of it was seen."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, compress, pairwise
from operator import add, mul
from typing import Final, NamedTuple, final

from policies.audit.telemetry.grid import Grid
from policies.audit.telemetry.series import SCALE, Even, Strand, even, pieces
from policies.audit.telemetry.spans import MICRO, Spans, length, united

MIB: Final = 1 << 20
SETTLED: Final = 3600 * MICRO
"""A machine that ran for less is not missed among others yet: its points take minutes to be seen."""
BLOCK: Final = 6 * 3600 * MICRO
"""The throughput of a volume changes once in six hours, so a schedule has no finer steps."""


@final
@dataclass(frozen=True, kw_only=True)
class Flow:
    """The traffic of a volume over a window, summed over all its readers at each moment. Rates are in MiB/s.

    It is made of the moments for which every reader that was due has a point: no part of a sum stands for the sum.
    """

    coverage: Fraction | None = None
    """Part of the due time that has points, of the reader that was seen least; None where none were due."""
    blind: str = ""
    """That reader."""
    due: int = 0
    """For how long points were due from any reader, in microseconds."""
    looked: int = 0
    """For how long points were due or are there, in microseconds: readers that are gone owe none, and were seen."""
    first: int | None = None
    """When that began, in microseconds of the epoch."""
    unseen: int = 0
    """How much of that is no part of the figures, in microseconds."""
    mean: Fraction | None = None
    p99: Fraction | None = None
    """The rate that is not exceeded in 99 % of the seen time."""
    peak: Fraction | None = None
    active: int = 0
    """For how long the rate was at least the threshold, in microseconds."""
    blocks: int = 0
    """Blocks of six hours in which it was, at least for a moment."""
    resolution: datetime.timedelta | None = None
    """Length of the longest point used."""


def at_once(strands: Iterable[Strand]) -> int:
    """How many readers have points at the same time. Shorter than a point is no time: one may follow another in it."""
    seen = [strand for strand in strands if strand.finest]
    if len(seen) < 2:
        return len(seen)
    longest = max(max(grid.owns) for strand in seen for _, grid in strand.finest)
    steps = _steps(strand.covered for strand in seen)
    most, since = 1, list[int]()
    for at in sorted(steps):
        since.extend([at] * steps[at])
        for _ in range(-steps[at]):
            began = since.pop()
            most = max(most, len(since) + 1) if at - began > longest else most
    return most


class _Rates(NamedTuple):
    """What the figures of a flow are made of."""

    mean: Fraction
    p99: Fraction
    peak: Fraction
    active: int
    blocks: int
    longest: int


def flow(strands: Iterable[Strand], active_mibps: Fraction) -> Flow:
    """The flow of a volume. `active_mibps` is the rate from which on it counts as used."""
    told = [strand for strand in strands if not strand.silent]
    coverage, blind = _coverage(told)
    spans = united(span for strand in told for span in strand.due)
    both = united((*spans, *(span for strand in told for span in strand.covered)))
    due, looked, first = length(spans), length(both), both[0][0] if both else None
    found = _rates(told, active_mibps * MIB) if told else None
    if found is None:
        return Flow(coverage=coverage, blind=blind, due=due, looked=looked, first=first, unseen=due)
    return Flow(
        coverage=coverage,
        blind=blind,
        due=due,
        looked=looked,
        first=first,
        unseen=length(united(span for strand in told for span in strand.unseen)),
        mean=found.mean,
        p99=found.p99,
        peak=found.peak,
        active=found.active,
        blocks=found.blocks,
        resolution=datetime.timedelta(microseconds=found.longest),
    )


def _coverage(strands: Iterable[Strand]) -> tuple[Fraction | None, str]:
    """Of the strand that was seen least; one that has just begun counts only where none has run for longer."""
    owed = [(due, strand) for strand in strands if (due := length(strand.due))]
    settled = [(due, strand) for due, strand in owed if due >= SETTLED] or owed
    shares = ((Fraction(due - length(strand.unseen), due), strand.reader) for due, strand in settled)
    return min(shares, default=(None, ""))


def _rates(strands: Sequence[Strand], active: Fraction) -> _Rates | None:
    columns = [column for strand in strands if (column := even(strand)) is not None]
    if len(columns) == len(strands) and _alike(columns):
        return _by_column(columns, active)
    return _by_moment(*_sums(strands), active)


def _alike(columns: Sequence[Even]) -> bool:
    first = columns[0]
    return all((each.grid is first.grid) and each.unit == first.unit and each.per == first.per for each in columns)


def _by_column(columns: Sequence[Even], active: Fraction) -> _Rates:
    """All readers have the same points, so sums are sums of columns."""
    grid, unit, per = columns[0].grid, columns[0].unit, columns[0].per
    used = [column.numbers for column in columns if column.numbers is not None]
    if not used:
        nothing = Fraction()
        return _Rates(nothing, nothing, nothing, 0, 0, grid.owns[0])
    total = list(used[0])
    for numbers in used[1:]:
        total = list(map(add, total, numbers))
    scale = unit * per * MIB
    above, below = _mean(total, grid)
    return _Rates(
        Fraction(MICRO * above, scale * below),
        Fraction(MICRO * _quantile(total, grid), scale),
        Fraction(MICRO * max(total), scale),
        *_activity(total, _least(active, unit * per), grid),
        grid.owns[0],
    )


def _least(active: Fraction, per: int) -> int:
    """The least number that is an active rate, of numbers that are amounts of `per` microseconds."""
    return -(-active.numerator * per // (active.denominator * MICRO))


def _mean(total: Sequence[int], grid: Grid) -> tuple[int, int]:
    """The mean as a numerator and a denominator."""
    if grid.weights is None:
        return sum(total), len(total)
    return sum(map(mul, total, grid.weights)), sum(grid.weights)


def _quantile(total: Sequence[int], grid: Grid) -> int:
    if grid.weights is None:
        return sorted(total)[_needed(len(total)) - 1]
    return _weighed(zip(total, grid.weights, strict=True), sum(grid.weights))


def _weighed(pairs: Iterable[tuple[int, int]], whole: int) -> int:
    """The least number that is not exceeded in 99 % of the time."""
    ranked = sorted(pairs)
    needed = _needed(whole)
    reached = accumulate(weight for _, weight in ranked)
    return next(number for (number, _), so_far in zip(ranked, reached, strict=True) if so_far >= needed)


def _needed(whole: int) -> int:
    """99 % of it, rounded up."""
    return -(-99 * whole // 100)


def _activity(total: Sequence[int], least: int, grid: Grid) -> tuple[int, int]:
    """For how long, and in how many blocks of six hours, the numbers reach the least that counts."""
    used = [number >= least for number in total]
    starts, ends = list(compress(grid.starts, used)), list(compress(grid.ends, used))
    return sum(ends) - sum(starts), _blocks(starts, ends)


def _blocks(starts: Sequence[int], ends: Sequence[int]) -> int:
    if not starts:
        return 0
    first, last = min(starts) // BLOCK, (max(ends) - 1) // BLOCK
    touched = {start // BLOCK for start in starts} | {(end - 1) // BLOCK for end in ends}
    if len(touched) <= last - first:
        long = (pair for pair in zip(starts, ends, strict=True) if pair[1] - pair[0] > BLOCK)
        touched.update(block for start, end in long for block in range(start // BLOCK, (end - 1) // BLOCK + 1))
    return len(touched)


class _Moment(NamedTuple):
    """The sum of all readers over a time in which none of them changes."""

    start: int
    end: int
    rate: int
    """In 1/SCALE byte per second."""


def _sums(strands: Sequence[Strand]) -> tuple[list[_Moment], int]:
    """The moments for which every reader that was due has points, in the order of time, and the longest point."""
    rates: dict[int, int] = {}
    longest = 0
    for strand in strands:
        found = pieces(strand)
        longest = max(longest, max((piece.end - piece.start for piece in found), default=0))
        for start, end, rate in found:
            rates[start] = rates.get(start, 0) + rate
            rates[end] = rates.get(end, 0) - rate
    covered = _steps(strand.covered for strand in strands)
    unseen = _steps(strand.unseen for strand in strands)
    return list(_moments(rates, covered, unseen)), longest


def _steps(sets: Iterable[Spans]) -> Mapping[int, int]:
    """When how many of the sets begin, less how many end."""
    steps: dict[int, int] = {}
    for spans in sets:
        for start, end in spans:
            steps[start] = steps.get(start, 0) + 1
            steps[end] = steps.get(end, 0) - 1
    return steps


def _moments(rates: Mapping[int, int], covered: Mapping[int, int], unseen: Mapping[int, int]) -> Iterator[_Moment]:
    rate = seen = blind = 0
    for left, right in pairwise(sorted({*rates, *covered, *unseen})):
        rate, seen, blind = rate + rates.get(left, 0), seen + covered.get(left, 0), blind + unseen.get(left, 0)
        if seen and not blind:
            yield _Moment(left, right, rate)


def _by_moment(moments: Sequence[_Moment], longest: int, active: Fraction) -> _Rates | None:
    if not moments:
        return None
    weighed = [(moment.rate, moment.end - moment.start) for moment in moments]
    whole = sum(weight for _, weight in weighed)
    least = math.ceil(active * SCALE)
    spans = tuple((moment.start, moment.end) for moment in moments if moment.rate >= least)
    return _Rates(
        Fraction(sum(rate * weight for rate, weight in weighed), whole * SCALE * MIB),
        Fraction(_weighed(weighed, whole), SCALE * MIB),
        Fraction(max(rate for rate, _ in weighed), SCALE * MIB),
        length(spans),
        _blocks([start for start, _ in spans], [end for _, end in spans]),
        longest,
    )
