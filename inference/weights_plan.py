"""Three ways to weights, side by side: a Hyperdisk ML volume, a bucket through FUSE, a download at boot.

What each costs in a month, the accelerators that wait while they read included, and how long a cold start takes. The
same three are open to any server on TPU, vLLM among them.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Final, final

from inference.economics.assumptions import Assumption
from inference.economics.fleet import DAYS, DISK, Fleet
from inference.economics.weights_bill import Line, Market, total
from inference.economics.weights_lines import CHIP, MIBPS, lines_of, warnings
from inference.economics.weights_sources import MIB, ColdStart, Source, cold_start
from policies.hardware.disks import default_throughput
from policies.money import HOURS_PER_MONTH
from policies.prices.book import MissingPrice, PriceBook, PriceModel

MOST_RESTARTS: Final = Fraction(288)
"""Of a replica a day, one in five minutes: a break-even beyond is none."""
PRECISION: Final = Fraction(1, 1000)
CURVE: Final = 40
"""Steps of the plot of throughputs."""


@final
@dataclass(frozen=True, kw_only=True)
class Way:
    """One source of the weights."""

    source: Source
    start: ColdStart
    lines: tuple[Line, ...]
    warnings: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every line has a price."""
        return all(line.monthly is not None for line in self.lines)

    @property
    def monthly(self) -> Fraction:
        """All lines; a lower bound where one has no price."""
        return total(self.lines)

    @property
    def fixed(self) -> Fraction:
        """What it costs in a month without a single start."""
        return total(line for line in self.lines if not line.by_start)

    @property
    def by_starts(self) -> Fraction:
        """What the starts of a month cost."""
        return total(line for line in self.lines if line.by_start)

    @property
    def missing(self) -> tuple[MissingPrice, ...]:
        """Prices that the book does not have."""
        return tuple(line.missing for line in self.lines if line.missing is not None)


@final
@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """From how many restarts on the one is cheaper than the other."""

    cheaper: Source
    than: Source
    restarts_per_day: Fraction
    """Of each replica."""


@final
@dataclass(frozen=True, kw_only=True)
class Plan:
    """The answer."""

    fleet: Fleet
    throughput: int
    """MiB/s of the volume that was planned with."""
    best: int | None
    """That of the cheapest total; None where a price is missing."""
    ways: tuple[Way, ...]
    idle: Fraction
    """Share of the month in which nobody reads the volume."""
    unset: int
    """MiB/s that Google provisions where nothing is said."""
    currency: str
    book_as_of: datetime.date | None
    book_sha256: str
    as_of: datetime.date
    slopes: tuple[Fraction, Fraction] | None = None
    """What a MiB/s costs a month, and what the waiting costs times the throughput; None where a price is missing."""

    @property
    def missing(self) -> tuple[MissingPrice, ...]:
        """Prices that the book does not have, each once."""
        return tuple(dict.fromkeys(each for way in self.ways for each in way.missing))

    @property
    def complete(self) -> bool:
        """Whether all three can be compared."""
        return all(way.complete for way in self.ways)

    @property
    def fresh(self) -> bool:
        """Whether every price is dated and young enough."""
        return all(line.freshness.trusted for way in self.ways for line in way.lines)

    @property
    def cheapest(self) -> Way | None:
        """The way with the lowest total; None where one of them lacks a price, and may be cheaper."""
        return self.cheapest_known if self.complete else None

    @property
    def cheapest_known(self) -> Way | None:
        """The cheapest of those that have all their prices; None where none has."""
        return min((way for way in self.ways if way.complete), key=lambda way: way.monthly, default=None)

    @property
    def fastest(self) -> Way:
        """The way with the shortest cold start."""
        return min(self.ways, key=lambda way: way.start.seconds)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Everything that no price book says."""
        return self.fleet.rates.all


def weights_plan(fleet: Fleet, book: PriceBook, as_of: datetime.date) -> Plan:
    """The three ways of the fleet, priced."""
    market = Market(book=book, as_of=as_of)
    best = best_throughput(fleet, book)
    unset = default_throughput(fleet.disk_gib)
    chosen = fleet.throughput or best or min(max(unset, fleet.least), fleet.most)
    ways = tuple(_way(source, fleet, market, chosen) for source in Source)
    disk = ways[0].start.seconds
    reading = fleet.starts / fleet.at_once * disk / 3600
    return Plan(
        fleet=fleet,
        throughput=chosen,
        best=best,
        ways=ways,
        idle=max(Fraction(0), 1 - reading / HOURS_PER_MONTH),
        unset=unset,
        currency=book.currency,
        book_as_of=book.as_of,
        book_sha256=book.sha256,
        as_of=as_of,
        slopes=_slopes(fleet, book),
    )


def best_throughput(fleet: Fleet, book: PriceBook) -> int | None:
    """The MiB/s at which the volume and the accelerators that wait for it cost least together.

    Up to what the VMs can read, a x throughput + b / throughput is least at sqrt(b / a). None without both prices.
    """
    found = _slopes(fleet, book)
    if found is None:
        return None
    return _least_at(*found, fleet)


def _least_at(a: Fraction, b: Fraction, fleet: Fleet) -> int:
    """Whole MiB/s, within the limits, at which a x throughput + b / throughput is least."""
    if not a:
        return fleet.most
    root = math.isqrt(int(b / a))
    choices = {min(max(each, fleet.least), fleet.most) for each in (root, root + 1)}
    return min(sorted(choices), key=lambda mibps: a * mibps + b / mibps)


def break_evens(plan: Plan) -> tuple[BreakEven, ...]:
    """Where two ways with all their prices change places; the volume has what is best there, unless it was given."""
    disk, *buckets = plan.ways
    found = [_disk_wins(plan, disk, each) for each in buckets if disk.complete and each.complete]
    found.extend(_lines_cross(plan, *pair) for pair in combinations((way for way in buckets if way.complete), 2))
    return tuple(each for each in found if each is not None)


def _disk_wins(plan: Plan, disk: Way, other: Way) -> BreakEven | None:
    """Cheapest over its throughputs, the volume is concave in the restarts: it falls below a line once."""
    if plan.best is None or plan.fleet.throughput is not None:
        return _lines_cross(plan, disk, other)
    known = plan.fleet.restarts_per_day

    def wins(restarts: Fraction) -> bool:
        return best_cost(plan, restarts) < other.fixed + other.by_starts * restarts / known

    least, most = Fraction(0), MOST_RESTARTS  # not yet, and so
    if wins(least) or not wins(most):
        return None
    while most - least > PRECISION:
        middle = (least + most) / 2
        least, most = (least, middle) if wins(middle) else (middle, most)
    return BreakEven(cheaper=disk.source, than=other.source, restarts_per_day=most)


def _lines_cross(plan: Plan, one: Way, other: Way) -> BreakEven | None:
    steeper, flatter = (one, other) if one.by_starts > other.by_starts else (other, one)
    slope = (steeper.by_starts - flatter.by_starts) / plan.fleet.restarts_per_day
    ahead = flatter.fixed - steeper.fixed
    if not slope or ahead <= 0 or ahead / slope > MOST_RESTARTS:
        return None
    return BreakEven(cheaper=flatter.source, than=steeper.source, restarts_per_day=ahead / slope)


def best_cost(plan: Plan, restarts_per_day: Fraction) -> Fraction:
    """What a month with the volume costs at that many restarts, its throughput the best for them; prices are known."""
    disk = plan.ways[0]
    slopes = plan.slopes
    assert slopes is not None  # asked for only where a best throughput is known
    standing = total(line for line in disk.lines if not line.by_start and line.unit != MIBPS)
    a, b = slopes[0], slopes[1] * restarts_per_day / plan.fleet.restarts_per_day
    mibps = _least_at(a, b, plan.fleet)
    return standing + a * mibps + b / mibps


def cost_at(way: Way, plan: Plan, restarts_per_day: Fraction) -> Fraction:
    """What the way costs a month at another number of restarts."""
    starts = plan.fleet.replicas * restarts_per_day * DAYS
    return way.fixed + starts * way.by_starts / plan.fleet.starts


def _slopes(fleet: Fleet, book: PriceBook) -> tuple[Fraction, Fraction] | None:
    """What a MiB/s costs a month, and what the waiting costs times the throughput."""
    chip = book.find(CHIP, fleet.capacity, fleet.zone)
    provisioned = book.find(f"disk.{DISK}.throughput", PriceModel.ON_DEMAND, fleet.zone)
    if isinstance(chip, MissingPrice) or isinstance(provisioned, MissingPrice):
        return None
    hour = Fraction(chip.unit_price) * fleet.shape.chips
    twice = 1 + fleet.overlap
    seconds = Fraction(fleet.bytes_per_host * fleet.readers, MIB)
    return Fraction(provisioned.unit_price) * twice, fleet.starts * hour * seconds / 3600


def curve(plan: Plan) -> Iterator[tuple[int, Fraction]]:
    """Throughputs of the volume, and what it and the waiting cost together in a month; nothing without prices."""
    if plan.slopes is None:
        return
    a, b = plan.slopes
    fleet = plan.fleet
    for number in range(CURVE + 1):
        mibps = round(fleet.least * (fleet.most / fleet.least) ** (number / CURVE))
        yield mibps, a * mibps + b / mibps


def _way(source: Source, fleet: Fleet, market: Market, throughput: int) -> Way:
    start = cold_start(source, fleet.bytes_per_host, fleet.readers, fleet.rates, Fraction(throughput))
    return Way(
        source=source,
        start=start,
        lines=tuple(lines_of(start, fleet, market, throughput)),
        warnings=tuple(warnings(source, fleet)),
    )
