"""Disk types: limits, what an unset value comes to, access modes, and who can attach what.

GiB and MiB/s are binary. Google bills GiB where it writes GB for disks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final, final

from policies.hardware.errors import HardwareError, hint
from policies.hardware.tables import Row, exact, provenance, rows, whole

DEFAULT_DISK_TYPE: Final = "pd-standard"
"""What the provider takes for a disk without a type."""
ACCESS_MODES: Final = ("READ_WRITE_SINGLE", "READ_WRITE_MANY", "READ_ONLY_MANY")
"""All that the Compute API knows. The provider's docs list READ_ONLY_SINGLE too: it does not exist."""
PER_VM_CAP_MIBPS: Final = 2400
"""Most that one VM reads from Hyperdisk ML, MiB/s: measured on TPU7x; for v6e the page gives no figure."""
MAX_DISKS_PER_VM: Final = 32
"""Disks that a TPU VM may have, the boot disk among them."""

KEPT: Final = 4096
"""Answers that are kept: the disks of a large stack are of few kinds."""
_ML: Final = "hyperdisk-ml"
_READERS_WITHOUT_FLOOR: Final = 20
"""Up to so many readers a volume needs no more throughput for them."""
_PER_READER_MIBPS: Final = 20
"""From 2026-08-03; it was 100 before."""


@final
@dataclass(frozen=True, kw_only=True)
class Performance:
    """Limits of one provisioned dimension of a disk type: IOPS, or throughput in MiB/s."""

    name: str
    """`IOPS` or `throughput`."""
    unit: str
    """` MiB/s`, or empty for IOPS: what follows a number in a message."""
    minimum: int
    maximum: int
    minimum_per_gib: Decimal = Decimal(0)
    """A large disk must have at least so much per GiB."""
    maximum_per_gib: Decimal | None = None
    """A small disk can have at most so much per GiB; None where size sets no bound."""
    included: int = 0
    """So much of it is free with every disk."""
    default_base: Decimal | None = None
    """With `default_per_gib`, what Google provisions where nothing is said; None where that is not known."""
    default_per_gib: Decimal = Decimal(0)
    adds: bool = False
    """Whether the default is base + per GiB; else it is the larger of the two."""

    def range_at(self, gib: int) -> tuple[int, int]:
        """The least and the most that a disk of `gib` can have."""
        ceiling = self.maximum
        if self.maximum_per_gib is not None:
            ceiling = min(ceiling, int(self.maximum_per_gib * gib))
        return min(max(self.minimum, math.ceil(self.minimum_per_gib * gib)), ceiling), ceiling

    def default_at(self, gib: int) -> int | None:
        """What a disk of `gib` gets where nothing is said; None where that is not known."""
        if self.default_base is None:
            return None
        scaled = self.default_per_gib * gib
        if not self.adds:
            return int(max(self.default_base, scaled))
        least, most = self.range_at(gib)
        return min(max(int(self.default_base + scaled), least), most)


@final
@dataclass(frozen=True, kw_only=True)
class DiskType:
    """One disk type of Compute Engine."""

    name: str
    """`hyperdisk-ml`, `pd-balanced`, `local-ssd`."""
    scope: str
    """`zonal`, `regional`, `both`, or `instance` for a disk that dies with its VM."""
    min_gib: int
    max_gib: int
    default_gib: int
    """Size of a blank disk for which none is given."""
    iops: Performance | None
    """None where IOPS cannot be provisioned."""
    throughput: Performance | None
    """None where throughput cannot be provisioned."""
    bootable: bool
    tpu_attachable: bool
    """Whether a v6e VM takes it: only hyperdisk-balanced and hyperdisk-ml."""
    access_modes: tuple[str, ...]
    """Modes that can be set; empty where the type has none to set."""
    read_only_many: bool
    """Whether many VMs can read one disk of this type."""
    max_readers: int | None
    """How many; None where that is not known."""

    @property
    def zonal(self) -> bool:
        """Whether a disk of this type can live in one zone."""
        return self.scope in ("zonal", "both")

    @property
    def regional(self) -> bool:
        """Whether a disk of this type can be replicated in two zones."""
        return self.scope in ("regional", "both")


@cache
def disk_types() -> Mapping[str, DiskType]:
    """Every disk type by name. Source: disks.csv."""
    return MappingProxyType({row["name"]: _parsed(row) for row in rows("disks")})


def disk_type(name: str) -> DiskType:
    """The disk type `name`. Raises HardwareError, which lists the types, for an unknown one."""
    found = disk_types().get(name)
    if found is None:
        raise HardwareError(
            f'disk type "{name}" is not known ({provenance("disks")}). '
            f"Known: {', '.join(disk_types())}.{hint(name, disk_types())}"
        )
    return found


def tpu_attachable(name: str) -> bool:
    """Whether a v6e VM takes disks of the type `name`. Raises HardwareError for an unknown type."""
    return disk_type(name).tpu_attachable


@lru_cache(maxsize=KEPT)
def default_throughput(gib: int) -> int:
    """MiB/s that Google provisions for a Hyperdisk ML volume whose throughput is unset: max(24 x GiB, 400)."""
    return _ml().default_at(gib) or 0


@lru_cache(maxsize=KEPT)
def floor_throughput(gib: int, readers: int = 0) -> int:
    """Least MiB/s of a Hyperdisk ML volume: 400, 0.12 per GiB, and 20 per reader from 21 readers up."""
    fan_out = _PER_READER_MIBPS * readers if readers > _READERS_WITHOUT_FLOOR else 0
    return max(_ml().range_at(gib)[0], fan_out)


@lru_cache(maxsize=KEPT)
def check_disk(
    type: str,
    gib: int | None = None,
    throughput: int | None = None,
    iops: int | None = None,
    access_mode: str | None = None,
) -> tuple[str, ...]:
    """What is wrong with a disk, one sentence a mistake; empty when nothing is.

    `gib` is its size, None where the size is left to Google; `throughput` is in MiB/s. Nothing is rounded or changed.
    """
    try:
        found = disk_type(type)
    except HardwareError as error:
        return (str(error),)
    size = found.default_gib if gib is None else gib
    return (
        *_size_mistakes(found, gib),
        *_performance_mistakes(found, found.throughput, "throughput", throughput, gib, size),
        *_performance_mistakes(found, found.iops, "IOPS", iops, gib, size),
        *_access_mistakes(found, access_mode),
    )


def _ml() -> Performance:
    throughput = disk_type(_ML).throughput
    assert throughput is not None
    return throughput


def _size_mistakes(disk: DiskType, gib: int | None) -> Iterator[str]:
    if gib is not None and not disk.min_gib <= gib <= disk.max_gib:
        yield f"size {gib:,} GiB: {disk.name} takes {disk.min_gib:,} to {disk.max_gib:,} GiB"


def _performance_mistakes(
    disk: DiskType, limits: Performance | None, name: str, value: int | None, gib: int | None, size: int
) -> Iterator[str]:
    if value is None:
        return
    if limits is None:
        yield f"{name} {value:,}: {disk.name} has no {name} of its own to set; leave it out"
        return
    if gib is None:
        yield f"{name} {value:,}{limits.unit} without a size: Google takes no {name} without one; set the size"
        return
    least, most = limits.range_at(size)
    if not least <= value <= most:
        yield f"{name} {value:,}{limits.unit}: {disk.name} of {size:,} GiB takes {least:,} to {most:,}{limits.unit}"


def _access_mistakes(disk: DiskType, mode: str | None) -> Iterator[str]:
    if mode is None or mode in disk.access_modes:
        return
    if mode not in ACCESS_MODES:
        meant = " Did you mean READ_ONLY_MANY?" if mode == "READ_ONLY_SINGLE" else hint(mode, ACCESS_MODES)
        yield f'access mode "{mode}" does not exist; modes are {", ".join(ACCESS_MODES)}.{meant}'
    elif disk.access_modes:
        yield f"access mode {mode}: {disk.name} takes {' or '.join(disk.access_modes)}"
    else:
        yield f"access mode {mode}: {disk.name} has no access mode to set; leave it out"


def _parsed(row: Row) -> DiskType:
    return DiskType(
        name=row["name"],
        scope=row["scope"],
        min_gib=int(row["min_gib"]),
        max_gib=int(row["max_gib"]),
        default_gib=int(row["default_gib"]),
        iops=_iops(row),
        throughput=_throughput(row),
        bootable=row["bootable"] == "yes",
        tpu_attachable=row["tpu"] == "yes",
        access_modes=tuple(row["access_modes"].split()),
        read_only_many=row["read_only_many"] == "yes",
        max_readers=whole(row["max_readers"]),
    )


def _iops(row: Row) -> Performance | None:
    if not row["max_iops"]:
        return None
    return Performance(
        name="IOPS",
        unit="",
        minimum=int(row["min_iops"]),
        maximum=int(row["max_iops"]),
        maximum_per_gib=exact(row["iops_per_gib"]),
        included=int(row["included_iops"]),
        default_base=exact(row["default_iops"]),
        default_per_gib=exact(row["default_iops_per_gib"]) or Decimal(0),
        adds=True,
    )


def _throughput(row: Row) -> Performance | None:
    if not row["max_throughput"]:
        return None
    return Performance(
        name="throughput",
        unit=" MiB/s",
        minimum=int(row["min_throughput"]),
        maximum=int(row["max_throughput"]),
        minimum_per_gib=exact(row["min_throughput_per_gib"]) or Decimal(0),
        maximum_per_gib=exact(row["max_throughput_per_gib"]),
        included=int(row["included_throughput"]),
        default_base=exact(row["default_throughput"]),
        default_per_gib=exact(row["default_throughput_per_gib"]) or Decimal(0),
        adds=row["name"] != _ML,
    )
