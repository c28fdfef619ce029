"""A fleet of servers that read the same weights: how many, how often they start, and what their volume can be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, final

from inference.economics.weights_sources import GIB, Rates
from policies.errors import InputError
from policies.hardware.disks import check_disk, disk_type, floor_throughput
from policies.hardware.slices import Shape
from policies.money import HOURS_PER_MONTH
from policies.prices.book import PriceModel

DISK: Final = "hyperdisk-ml"
DAYS: Final = Fraction(HOURS_PER_MONTH, 24)
"""Of a month."""


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
    def overlap(self) -> Fraction:
        """Share of the month in which two volumes stand."""
        return self.updates_per_month * Fraction(self.rates.overlap.value) / HOURS_PER_MONTH

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
