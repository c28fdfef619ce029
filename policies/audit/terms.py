"""What counts as idle, young or too much: the thresholds of an audit, each with its reason."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import final

from policies.errors import InputError
from policies.hardware.disks import PER_VM_CAP_MIBPS

HOUR = datetime.timedelta(hours=1)


@final
@dataclass(frozen=True, kw_only=True)
class Terms:
    """The thresholds of an audit. Raises InputError for values that can decide nothing."""

    window: datetime.timedelta = datetime.timedelta(days=7)
    """Time that is looked at; at least 24 hours. A resource younger than it is TOO_NEW."""
    grace: datetime.timedelta = datetime.timedelta(hours=24)
    """For so long a volume may be attached to nothing before it counts as idle."""
    coverage: Fraction = Fraction(9, 10)
    """Part of the due points that must be there; below it a volume is unknown, never idle."""
    idle_mibps: Decimal = Decimal(1)
    """A volume whose peak stays below is not read."""
    overprovisioned: Fraction = Fraction(1, 2)
    """A volume whose p99 stays below this part of its throughput has too much."""
    headroom: Fraction = Fraction(6, 5)
    """Times the p99, to which the throughput of such a volume may be lowered."""
    bursty: Fraction = Fraction(1, 20)
    """A volume that is read in less than this part of the time is bursty."""
    per_vm_mibps: int = PER_VM_CAP_MIBPS
    """What one machine can read of a volume; measured on v7x, so `--per-vm-cap` sets another."""
    duty_cycle: Decimal = Decimal(2)
    """Percent up to which the chips of a slice do nothing."""
    slice_idle: datetime.timedelta = HOUR
    """For so long a READY slice must have done nothing; one that serves, for the whole window."""
    heartbeat: datetime.timedelta = datetime.timedelta(minutes=30)
    """A training heartbeat older than this is stale."""
    orphan_age: datetime.timedelta = datetime.timedelta(days=30)
    """Snapshots and images of disks that are gone count as orphans when they are older."""

    def __post_init__(self) -> None:
        if self.window < 24 * HOUR:
            raise InputError(f"the window is {self.window}; it must be at least 24 hours, or nothing can be told idle")
        if self.grace < datetime.timedelta():
            raise InputError(f"the grace is {self.grace}; it must not be negative")
        if self.per_vm_mibps <= 0:
            raise InputError(f"the per-VM cap is {self.per_vm_mibps} MiB/s; it must be more than 0")
        for name, share in (("coverage", self.coverage), ("bursty", self.bursty)):
            if not 0 < share <= 1:
                raise InputError(f"{name} is {share}; it must be more than 0 and at most 1")
