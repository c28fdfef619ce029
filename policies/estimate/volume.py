"""The price of one disk, wherever it is declared: its own resource, a boot disk, a disk of a template."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, final

from policies.estimate.location import last_segment
from policies.estimate.market import Market, Part, joined, unknown
from policies.estimate.model import UnknownInput, Unpriced
from policies.hardware.disks import DEFAULT_DISK_TYPE, DiskType, Performance, disk_types
from policies.resources import Opaque, Resource, ResourceError, dotted

CEILING: Final = 100_000_000
"""No disk of Compute Engine has that many GiB, IOPS or MiB/s; a larger number is a mistake, not a price."""
ML: Final = "hyperdisk-ml"
IOPS: Final = "IOPS"
IN_POOL: Final = "its boot disk stands in a storage pool, which bills for it"
_ML_DEFAULT: Final = "not set: Google provisions max(24 x GiB, 400)"


@final
@dataclass(frozen=True, kw_only=True)
class Volume:
    """What decides the price of a disk. A value is None where the program does not set it."""

    type: str
    """`hyperdisk-ml`; the bare name."""
    type_note: str = ""
    """Where the type comes from, when the program does not say."""
    gib: int | UnknownInput
    size_note: str = ""
    """Where the size comes from, when the program does not say."""
    iops: int | UnknownInput | None = None
    throughput: int | UnknownInput | None = None
    """MiB/s."""
    regional: bool = False
    """Whether it is replicated in two zones."""


@final
@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The names of the inputs that describe a disk, and where they stand in its resource."""

    at: tuple[str | int, ...] = ()
    """Path of the block: empty for a disk, `bootDisk.initializeParams` in an instance."""
    type: str = "type"
    size: str = "size"
    iops: str = "provisionedIops"
    throughput: str = "provisionedThroughput"


def read_volume(
    resource: Resource, names: Inputs, size: tuple[int | UnknownInput, str], *, regional: bool = False
) -> Volume | UnknownInput:
    """The disk that the inputs `names` of a resource describe.

    `size` is what holds where no size is set, and where that comes from. An unknown type is an UnknownInput.
    Raises ResourceError for values that no disk can have.
    """
    type = resource.text(*names.at, names.type)
    if isinstance(type, Opaque):
        return unknown(type, *names.at, names.type, decides="every price of the disk")
    gib = _bounded(resource, (*names.at, names.size))
    return Volume(
        type=last_segment(type) if type else DEFAULT_DISK_TYPE,
        type_note="" if type else f"type not set: the provider takes {DEFAULT_DISK_TYPE}",
        gib=size[0] if gib is None else gib,
        size_note=size[1] if gib is None else "",
        iops=_bounded(resource, (*names.at, names.iops)),
        throughput=_bounded(resource, (*names.at, names.throughput)),
        regional=regional,
    )


def volume_parts(
    market: Market,
    volume: Volume,
    location: str,
    *,
    count: int = 1,
    name: str = "",
    note: str = "",
    share: Fraction = Fraction(1),
) -> Iterator[Part]:
    """Capacity and provisioned performance of `count` such disks for `share` of a month.

    `name` stands before the names of the lines (`boot disk`), `note` on the performance that is always billed.
    """
    known = disk_types().get(volume.type)
    stem = f"disk.{volume.type}-regional" if volume.regional and known and known.zonal else f"disk.{volume.type}"
    if known is None:
        yield _unpriced(volume, f"{stem}.capacity", count)
        return
    if isinstance(volume.gib, UnknownInput):
        yield volume.gib
    else:
        label = f"{name} {volume.type}" if name else "capacity"
        said = joined(volume.type_note, volume.size_note)
        gib = volume.gib * count
        yield market.line(label, f"{stem}.capacity", gib, "GiB-month", location, share=share, note=said)
    for limits, value in ((known.throughput, volume.throughput), (known.iops, volume.iops)):
        if limits is None:
            continue
        billed = _billed(volume, known, limits, value, note)
        if isinstance(billed, UnknownInput):
            yield billed
        elif billed.quantity:
            label = f"{name} {billed.name}" if name else billed.name
            item, quantity = f"{stem}.{limits.name.lower()}", billed.quantity * count
            yield market.line(label, item, quantity, billed.unit, location, share=share, note=billed.note)


@final
@dataclass(frozen=True, kw_only=True)
class _Billed:
    """What of one provisioned dimension bills."""

    name: str
    unit: str
    quantity: int
    note: str


def _billed(
    volume: Volume, known: DiskType, limits: Performance, value: int | UnknownInput | None, note: str
) -> _Billed | UnknownInput:
    unset = value is None
    amount = _default(volume, known, limits) if value is None else value
    if isinstance(amount, UnknownInput):
        return amount
    over = f"{amount:,}{limits.unit}, of which {limits.included:,} are included" if limits.included else ""
    return _Billed(
        name=limits.name,
        unit="IOPS-month" if limits.name == IOPS else "MiB/s-month",
        quantity=max(0, amount - limits.included),
        note=joined(over, _default_note(known, limits) if unset else note),
    )


def _default(volume: Volume, known: DiskType, limits: Performance) -> int | UnknownInput:
    """What Google provisions where nothing is said."""
    path = "provisionedIops" if limits.name == IOPS else "provisionedThroughput"
    if isinstance(volume.gib, UnknownInput):
        reason = f"not set: Google derives it from the size, and {volume.gib.path} is not known"
        return UnknownInput(path=path, reason=reason)
    found = limits.default_at(volume.gib)
    if found is None:
        return UnknownInput(path=path, reason=f"not set, and what Google then provisions for {known.name} is not known")
    return found


def _default_note(known: DiskType, limits: Performance) -> str:
    if known.name == ML:
        return _ML_DEFAULT
    return f"not set: Google provisions {limits.default_base:,} + {limits.default_per_gib} x GiB"


def _unpriced(volume: Volume, item: str, count: int) -> Unpriced:
    gib = volume.gib
    return Unpriced(
        item=item,
        reason=f'disk type "{volume.type}" is not known; no other type stands in for it',
        quantity=None if isinstance(gib, UnknownInput) else Decimal(gib * count),
        unit="" if isinstance(gib, UnknownInput) else "GiB-month",
    )


def _bounded(resource: Resource, path: tuple[str | int, ...]) -> int | UnknownInput | None:
    found = resource.integer(*path)
    if isinstance(found, Opaque):
        return unknown(found, *path, decides="how much of the disk bills")
    if found is not None and found > CEILING:
        raise ResourceError(f"{resource.urn}: {dotted(path)} is {found:,}; no disk has more than {CEILING:,}")
    return found
