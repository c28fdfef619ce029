"""Machine types: what of them bills, and which disk types their series boots from."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import Final, final

from policies.hardware.disks import disk_types
from policies.hardware.tables import Row, provenance, rows

_CUSTOM: Final = re.compile(r"(?:(?P<series>[a-z0-9]+)-)?custom-(?P<vcpus>[0-9]+)-(?P<mib>[0-9]+)")
_MIB_PER_GIB: Final = 1024


@final
@dataclass(frozen=True, kw_only=True)
class MachineType:
    """What a machine type bills by the hour."""

    name: str
    """`n2-standard-8`."""
    series: str
    """`n2`: the part that items of the price book carry, as in `instance.n2.vcpu`."""
    vcpus: Decimal
    """vCPUs that bill; a shared core bills its share, so e2-medium has 1."""
    memory_gib: Decimal
    """GiB that bill."""
    custom: bool = False
    """Whether it is a custom type, which bills more a vCPU and a GiB than the predefined ones."""


@final
class BootDiskStatus(enum.Enum):
    """Whether a machine boots from a disk type."""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The table does not say: a warning, never a pass."""


@final
@dataclass(frozen=True, kw_only=True)
class BootDiskVerdict:
    """Whether a machine type boots from a disk type, and why."""

    status: BootDiskStatus
    reason: str
    """A sentence that names both, and what the series boots from."""


def machine(name: str) -> MachineType | None:
    """The machine type `name`, predefined or custom; None where the table does not have it.

    Types with bundled local SSDs (`c3-standard-8-lssd`) or extended memory are not in the table: they bill more
    than vCPUs and memory. Source: machine_types.csv.
    """
    return _predefined().get(name) or _custom(name)


def series_of(name: str) -> str:
    """The series of a machine type: `c4` of `c4-standard-8`. A bare `custom-4-8192` is n1."""
    first = name.partition("-")[0]
    return "n1" if first == "custom" else first


def boot_disk_verdict(machine: str, disk_type: str) -> BootDiskVerdict:
    """Whether the machine type `machine` boots from `disk_type`. UNKNOWN where the table does not say.

    Source: disks.csv for what no machine boots from, boot_disks.csv for the series.
    """
    known = disk_types().get(disk_type)
    if known is not None and not known.bootable:
        return _verdict(BootDiskStatus.REFUSED, f"{disk_type} is not bootable on any machine")
    series = series_of(machine)
    row = _series().get(series)
    if row is None:
        return _verdict(BootDiskStatus.UNKNOWN, f'series "{series}" is not in the {provenance("boot_disks")}')
    boots = f"{series} boots from {_either(row['boots'].split())} ({provenance('boot_disks')})"
    if disk_type in row["boots"].split():
        return _verdict(BootDiskStatus.OK, boots)
    if disk_type in row["refuses"].split():
        return _verdict(BootDiskStatus.REFUSED, f"{machine} does not boot from {disk_type}: {boots}")
    return _verdict(BootDiskStatus.UNKNOWN, f'nothing is known of {machine} and "{disk_type}": {boots}')


@cache
def _predefined() -> Mapping[str, MachineType]:
    return MappingProxyType({found.name: found for row in rows("machine_types") for found in _sizes(row)})


def _sizes(row: Row) -> Iterator[MachineType]:
    for size in row["sizes"].split():
        label, _, figures = size.rpartition("=")
        vcpus, _, memory = figures.partition(":")
        yield MachineType(
            name="-".join(part for part in (row["series"], row["family"], label or vcpus) if part),
            series=row["series"],
            vcpus=Decimal(vcpus),
            memory_gib=Decimal(memory),
        )


def _custom(name: str) -> MachineType | None:
    found = _CUSTOM.fullmatch(name)
    series = series_of(name)
    if found is None or series not in {row["series"] for row in rows("machine_types") if row["family"] == "custom"}:
        return None
    return MachineType(
        name=name,
        series=series,
        vcpus=Decimal(found["vcpus"]),
        memory_gib=Decimal(found["mib"]) / _MIB_PER_GIB,
        custom=True,
    )


@cache
def _series() -> Mapping[str, Row]:
    return {row["series"]: row for row in rows("boot_disks")}


def _either(names: list[str]) -> str:
    return " or ".join(names)


def _verdict(status: BootDiskStatus, reason: str) -> BootDiskVerdict:
    return BootDiskVerdict(status=status, reason=reason)
