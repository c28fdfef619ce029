"""Three ways to weights, side by side: a Hyperdisk ML volume, a bucket through FUSE, a download at boot.

What each costs in a month, the accelerators that wait while they read included, and how long a cold start takes. The
same three are open to any server on TPU, vLLM among them.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Final, final

from inference.economics.assumptions import HBM, USABLE, Assumption
from inference.economics.figures import bytes_text
from inference.economics.weights_bill import Line, Market, free, total
from inference.economics.weights_sources import GIB, MIB, ColdStart, Rates, Source, cold_start
from policies.errors import InputError
from policies.estimate.routes import transfer_item
from policies.hardware.disks import check_disk, default_throughput, disk_type, floor_throughput
from policies.hardware.machines import machine
from policies.hardware.slices import Shape
from policies.hardware.zones import region_of
from policies.money import HOURS_PER_MONTH
from policies.prices.book import MissingPrice, PriceBook, PriceModel

DISK: Final = "hyperdisk-ml"
CHIP: Final = "tpu.v6e.chip"
DAYS: Final = Fraction(HOURS_PER_MONTH, 24)
"""Of a month."""
MIBPS: Final = "MiB/s-month"
MOST_RESTARTS: Final = Fraction(288)
"""Of a replica a day, one in five minutes: a break-even beyond is none."""
PRECISION: Final = Fraction(1, 1000)
CURVE: Final = 40
"""Steps of the plot of throughputs."""


@final
@dataclass(frozen=True, kw_only=True)
class Fleet:
    """What is served, by what, and how often it starts. Raises InputError where that is no fleet."""

    size_bytes: int
    """Of the weights."""
    replicas: int
    """Servers, a slice each."""
    shape: Shape
    zone: str
    capacity: PriceModel
    restarts_per_day: Fraction
    """Of each replica; above 0."""
    hosts: int
    """VMs of a replica that read."""
    at_once: int
    """Replicas that start together."""
    bucket: str
    """Location of the bucket."""
    throughput: int | None = None
    """MiB/s of the volume; None for what costs least together with the waiting."""
    updates_per_month: Fraction = Fraction(1)
    """New versions of the weights."""
    versions: int = 1
    """Versions that the bucket keeps."""
    snapshot: bool = True
    """Whether a snapshot of the volume is kept."""
    whole: bool = False
    """Whether every host reads all of the weights, and not its share of them."""
    rates: Rates = field(default_factory=Rates)

    def __post_init__(self) -> None:
        if self.restarts_per_day <= 0:
            raise InputError(f"--restarts-per-day {self.restarts_per_day}: nothing to plan; it is above 0")
        if self.at_once > self.replicas:
            raise InputError(f"--at-once {self.at_once}: there are {self.replicas} replicas; name at most so many")
        most = disk_type(DISK).max_readers
        if most is not None and self.replicas * self.hosts > most:
            raise InputError(
                f"--replicas {self.replicas} of {self.hosts} hosts: one {DISK} volume has at most {most:,} readers; "
                "plan each part that shares a volume by itself"
            )
        wrong = check_disk(DISK, self.disk_gib, self.throughput)
        if wrong:
            raise InputError(f"the volume for the weights: {'; '.join(wrong)}")
        if self.throughput is not None and self.throughput < self.least:
            raise InputError(
                f"--throughput {self.throughput}: {self.replicas * self.hosts} readers need at least {self.least} MiB/s"
            )

    @property
    def disk_gib(self) -> int:
        """Size of the volume."""
        needed = Fraction(self.size_bytes, GIB) * (1 + Fraction(self.rates.headroom.value))
        return max(disk_type(DISK).min_gib, math.ceil(needed))

    @property
    def bytes_per_host(self) -> int:
        """What a host reads."""
        return self.size_bytes if self.whole else -(-self.size_bytes // self.hosts)

    @property
    def readers(self) -> int:
        """Hosts that read at the same time."""
        return self.at_once * self.hosts

    @property
    def starts(self) -> Fraction:
        """Cold starts of a replica in a month, all of them."""
        return self.replicas * self.restarts_per_day * DAYS

    @property
    def least(self) -> int:
        """MiB/s that the volume must have."""
        return floor_throughput(self.disk_gib, self.replicas * self.hosts)

    @property
    def most(self) -> int:
        """MiB/s of the volume beyond which no reader gets more, or none can be had."""
        limits = disk_type(DISK).throughput
        assert limits is not None  # a volume of this kind has nothing but throughput
        useful = math.ceil(Fraction(self.rates.vm_cap.value) * self.readers)
        return max(self.least, min(limits.range_at(self.disk_gib)[1], useful))


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
    twice = 1 + _overlap(fleet)
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


def _overlap(fleet: Fleet) -> Fraction:
    """Share of the month in which two volumes stand."""
    return fleet.updates_per_month * Fraction(fleet.rates.overlap.value) / HOURS_PER_MONTH


def _way(source: Source, fleet: Fleet, market: Market, throughput: int) -> Way:
    start = cold_start(source, fleet.bytes_per_host, fleet.readers, fleet.rates, Fraction(throughput))
    own = _of_disk(fleet, market, throughput) if source is Source.DISK else _of_bucket(source, fleet, market)
    return Way(
        source=source,
        start=start,
        lines=(*_common(fleet, market), *own, _waiting(fleet, market, start)),
        warnings=tuple(_warnings(source, fleet)),
    )


def _common(fleet: Fleet, market: Market) -> Iterator[Line]:
    """The bucket, from which all three come in the end."""
    gib = Fraction(fleet.size_bytes, GIB)
    objects = _pieces(fleet.size_bytes, Fraction(fleet.rates.object_size.value) * GIB)
    yield market.line("bucket", "storage.standard.capacity", gib * fleet.versions, fleet.bucket, unit="GiB-month")
    yield market.line(
        "uploads (class A)",
        "storage.standard.class-a",
        fleet.updates_per_month * objects / 1000,
        fleet.bucket,
        unit="1000-operations",
    )


def _of_disk(fleet: Fleet, market: Market, throughput: int) -> Iterator[Line]:
    gib = Fraction(fleet.size_bytes, GIB)
    parts = (("capacity", Fraction(fleet.disk_gib), "GiB-month"), ("throughput", Fraction(throughput), MIBPS))
    for name, quantity, unit in parts:
        note = "billed around the clock, read or not" if name == "throughput" else ""
        yield market.line(f"volume {name}", f"disk.{DISK}.{name}", quantity, fleet.zone, unit=unit, note=note)
    if fleet.updates_per_month:
        for name, quantity, unit in parts:
            yield market.line(
                f"second volume at updates, {name}",
                f"disk.{DISK}.{name}",
                quantity,
                fleet.zone,
                unit=unit,
                share=_overlap(fleet),
            )
    if fleet.snapshot:
        yield market.line(
            "snapshot of the volume", "snapshot.standard.capacity", gib, region_of(fleet.zone), unit="GiB-month"
        )
    requests = _pieces(fleet.size_bytes, Fraction(fleet.rates.download_part.value) * MIB)
    yield _reads(fleet, market, fleet.updates_per_month * requests, by_start=False)
    yield _transfer(fleet, market, fleet.updates_per_month * gib, by_start=False)


def _of_bucket(source: Source, fleet: Fleet, market: Market) -> Iterator[Line]:
    rates = fleet.rates
    piece = rates.fuse_chunk if source is Source.FUSE else rates.download_part
    # A request for the metadata of each file, and one for each of its pieces.
    objects = _pieces(fleet.bytes_per_host, Fraction(rates.object_size.value) * GIB)
    requests = objects + _pieces(fleet.bytes_per_host, Fraction(piece.value) * MIB)
    hosts = fleet.starts * fleet.hosts
    yield _reads(fleet, market, hosts * requests, by_start=True)
    if source is Source.FUSE:
        yield market.line(
            "listings (class A)",
            "storage.standard.class-a",
            hosts / 1000,
            fleet.bucket,
            unit="1000-operations",
            by_start=True,
        )
    yield _transfer(fleet, market, hosts * Fraction(fleet.bytes_per_host, GIB), by_start=True)
    cache = Fraction(fleet.bytes_per_host * fleet.hosts * fleet.replicas, GIB)
    use = "file cache in memory" if source is Source.FUSE else "RAM disk"
    yield free(use, cache, "GiB", "the memory of the hosts is in the price of the chips")


def _reads(fleet: Fleet, market: Market, requests: Fraction, *, by_start: bool) -> Line:
    return market.line(
        "reads (class B)",
        "storage.standard.class-b",
        requests / 1000,
        fleet.bucket,
        unit="1000-operations",
        by_start=by_start,
    )


def _transfer(fleet: Fleet, market: Market, gib: Fraction, *, by_start: bool) -> Line:
    item = transfer_item(fleet.bucket, fleet.zone)
    if item is None:
        return free("transfer out of the bucket", gib, "GiB", "free within a region", by_start=by_start)
    note = f"from {fleet.bucket} to {region_of(fleet.zone)}"
    return market.line("transfer out of the bucket", item, gib, fleet.bucket, unit="GiB", by_start=by_start, note=note)


def _waiting(fleet: Fleet, market: Market, start: ColdStart) -> Line:
    hours = fleet.starts * start.seconds / 3600 * fleet.shape.chips
    return market.line(
        "accelerators waiting",
        CHIP,
        hours,
        fleet.zone,
        unit="chip-hour",
        model=fleet.capacity,
        by_start=True,
        note="while they read",
    )


def _warnings(source: Source, fleet: Fleet) -> Iterator[str]:
    usable = Fraction(HBM.value) * 10**9 * fleet.shape.chips * Fraction(USABLE.value)
    if source is Source.DISK and fleet.size_bytes > usable:
        room, needed = bytes_text(usable), bytes_text(fleet.size_bytes)
        yield f"{fleet.shape.accelerator_type} has {room} for weights: {needed} do not fit"
    found = machine(fleet.shape.machine_type)
    if source is Source.DISK or found is None:
        return
    twice, host = 2 * fleet.bytes_per_host, Fraction(found.memory_gib) * GIB
    if twice > host:
        yield (
            f"{source.title}: {bytes_text(twice)} of memory are needed on each host (what is kept and what is loaded "
            f"from it), and {found.name} has {bytes_text(host)}"
        )


def _pieces(size: int, piece: Fraction) -> int:
    return math.ceil(size / piece)
