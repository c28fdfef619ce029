"""Everything that decides the verdict on a volume, brought together from the record."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, final

from policies.audit.links import last
from policies.audit.reading import said, whole
from policies.audit.record import Item, Metric, Record, Series
from policies.audit.telemetry.series import Strand, highest
from policies.audit.telemetry.spans import Span, Spans, common, micros
from policies.audit.terms import Terms
from policies.audit.times import when
from policies.audit.volumes.flow import MIB, Flow, at_once, flow
from policies.audit.volumes.joins import Host, Joins, Standing
from policies.audit.volumes.running import ran
from policies.errors import InputError
from policies.hardware.disks import disk_types, floor_throughput

ML: Final = "hyperdisk-ml"
SHARED: Final = "READ_ONLY_MANY"
STRANGER: Final = "a machine that is not in the record"
_BALANCED: Final = "hyperdisk-balanced"
_IOPS_PER_MIBPS: Final = 256
"""Hyperdisk Balanced takes no less throughput than its IOPS over this.

Source: https://docs.cloud.google.com/compute/docs/disks/hd-types/hyperdisk-balanced
"""


@final
@dataclass(frozen=True, kw_only=True)
class VolumeFacts:
    """What is known of one volume. Rates are in MiB/s."""

    type: str
    """The bare name: `hyperdisk-ml`."""
    gib: int | None
    known: bool
    """Whether the type is one of the table."""
    sized: bool
    """Whether throughput of that type is provisioned, so that it can be idle."""
    provisioned: int | None
    """None where the record does not say it."""
    floor: int | None
    """The least that can be provisioned for its size and readers; None where nothing can."""
    included: int
    """So much throughput is free with every volume of the type."""
    created: datetime.datetime | None
    attached: datetime.datetime | None
    """When it was attached last."""
    detached: datetime.datetime | None
    """When it was detached last."""
    hosts: tuple[Host, ...]
    most: int
    """The most machines that had it at once, running or not, as far as the window shows it."""
    now: datetime.datetime
    window: Span
    flow: Flow = field(default_factory=Flow)
    """Empty where no host runs."""
    peak: Fraction | None = None
    """The highest rate that any point or gauge says; None where there are no points."""
    gauged: bool = False
    """Whether the peak is of every second, and not of points only: reads have a gauge of it, writes have none."""

    @property
    def running(self) -> tuple[Host, ...]:
        """The hosts that can read now."""
        return tuple(host for host in self.hosts if host.standing is Standing.RUNS)

    @property
    def machines(self) -> int:
        """How many machines have it attached, running or not."""
        return sum(host.machines for host in self.hosts)

    @property
    def loose_since(self) -> datetime.datetime | None:
        """Since when it is attached to nothing, if it is: the last time of its creation, attachment, detachment."""
        return max((time for time in (self.created, self.attached, self.detached) if time is not None), default=None)


@final
class FactFinder:
    """Finds the facts of the volumes of one record."""

    def __init__(self, record: Record, terms: Terms) -> None:
        self._record = record
        self._active = Fraction(terms.idle_mibps)
        self._window = (micros(record.window.start), micros(record.window.end))
        self._joins = Joins(record)
        self._writes = Metric.WRITE_BYTES in record.metrics or record.failed(Metric.WRITE_BYTES)

    def facts(self, disk: Item) -> VolumeFacts:
        """The facts of a disk. Raises InputError for a field that makes no sense, naming it."""
        hosts = self._joins.hosts(disk)
        machines = sum(host.machines for host in hosts)
        type, gib = last(said(disk, "type")), whole(disk, "sizeGb")
        limits = disk_types()[type].throughput if type in disk_types() else None
        runs = any(host.standing is Standing.RUNS for host in hosts)
        reads, writes = self._strands(disk, hosts) if limits and runs else ((), ())
        most = max(machines, at_once(reads))
        found = flow((*reads, *writes), self._active)
        top = self._top(disk, hosts) if found.peak is not None else None
        return VolumeFacts(
            type=type,
            gib=gib,
            known=type in disk_types(),
            sized=limits is not None,
            provisioned=whole(disk, "provisionedThroughput"),
            floor=_floor(disk, type, gib, most) if limits else None,
            included=limits.included if limits else 0,
            created=when(disk, "creationTimestamp"),
            attached=when(disk, "lastAttachTimestamp"),
            detached=when(disk, "lastDetachTimestamp"),
            hosts=hosts,
            most=most,
            now=self._record.recorded_at,
            window=self._window,
            flow=found,
            peak=found.peak if found.peak is None or top is None else max(found.peak, top),
            gauged=top is not None and not self._written(disk, hosts),
        )

    def pairs(self, facts: VolumeFacts) -> Iterator[tuple[str, str]]:
        """(instance id, device name) of the running hosts of a volume."""
        yield from ((host.id, host.device) for host in facts.running if not host.tpu and host.id)

    def _strands(self, disk: Item, hosts: tuple[Host, ...]) -> tuple[tuple[Strand, ...], tuple[Strand, ...]]:
        """What is read, and what is written where it can be."""
        dues = self._dues(disk, hosts)
        reads = tuple(self._moved(Metric.READ_BYTES, disk, hosts, dues))
        if said(disk, "accessMode") == SHARED or not self._writes:
            return reads, ()
        return reads, tuple(self._moved(Metric.WRITE_BYTES, disk, hosts, dues))

    def _moved(
        self, metric: Metric, disk: Item, hosts: tuple[Host, ...], dues: Iterable[tuple[Host, Spans]]
    ) -> Iterator[Strand]:
        for host, due in dues:
            yield Strand(reader=host.name, series=self._joins.series(metric, host), window=self._window, due=due)
        for found, due in self._strange(metric, disk, hosts):
            yield Strand(reader=STRANGER, series=found, window=self._window, due=due)

    def _dues(self, disk: Item, hosts: tuple[Host, ...]) -> list[tuple[Host, Spans]]:
        """When points of each instance were due."""
        attached = self._attached(disk, hosts)
        instances = (host for host in hosts if host.item and not host.tpu)
        return [(host, common(ran(host, self._joins.uptime(host), self._window), attached)) for host in instances]

    def _attached(self, disk: Item, hosts: tuple[Host, ...]) -> Spans:
        """For how much of the window the volume can have been attached. Of several hosts, nobody knows since when."""
        times = [when(disk, "creationTimestamp")]
        if len(hosts) == 1:
            times.append(when(disk, "lastAttachTimestamp"))
        start = max([self._window[0], *(micros(time) for time in times if time is not None)])
        return ((start, self._window[1]),) if start < self._window[1] else ()

    def _strange(
        self, metric: Metric, disk: Item, hosts: tuple[Host, ...]
    ) -> Iterator[tuple[tuple[Series, ...], Spans]]:
        """Series that may be of this volume by their name. They are due only where they are all that there can be."""
        found: Mapping[str, tuple[Series, ...]] = self._joins.strangers(metric, disk, hosts)
        nodes = [host for host in hosts if host.tpu and host.standing is Standing.RUNS]
        due = self._attached(disk, hosts) if nodes else ()
        yield from ((found[id], due) for id in sorted(found))
        if nodes and metric is Metric.READ_BYTES:
            missing = sum(host.machines for host in nodes) - len(found)
            yield from (((), due) for _ in range(missing))

    def _top(self, disk: Item, hosts: tuple[Host, ...]) -> Fraction | None:
        """The most that a second read, of any host."""
        top = highest(self._all(Metric.MAX_READ_BYTES, disk, hosts), self._window)
        return None if top is None else Fraction(top) / MIB

    def _written(self, disk: Item, hosts: tuple[Host, ...]) -> bool:
        return any(any(series.values) for series in self._all(Metric.WRITE_BYTES, disk, hosts))

    def _all(self, metric: Metric, disk: Item, hosts: tuple[Host, ...]) -> Iterator[Series]:
        for host in hosts:
            yield from self._joins.series(metric, host)
        for found in self._joins.strangers(metric, disk, hosts).values():
            yield from found


def _floor(disk: Item, type: str, gib: int | None, machines: int) -> int:
    if not gib:
        raise InputError(f"sizeGb is {gib}; a {type} volume has a size, which decides its least throughput")
    if type == ML:
        return floor_throughput(gib, machines)
    limits = disk_types()[type].throughput
    least = limits.range_at(gib)[0] if limits else 0
    iops = whole(disk, "provisionedIops") or 0
    return max(least, math.ceil(Fraction(iops, _IOPS_PER_MIBPS))) if type.startswith(_BALANCED) else least
