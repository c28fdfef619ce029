"""Buckets: what they hold, what soft delete keeps alive, what reading and writing costs, and what crosses regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Final, final

from policies.estimate.location import locate, places_named
from policies.estimate.market import Market, Part, bill, field_of, unknown
from policies.estimate.model import CostComponent, ResourceEstimate, UnknownInput, Unpriced
from policies.estimate.registry import Priced
from policies.estimate.routes import REPLICATED, transfer_item
from policies.resources import Opaque, Resource, ResourceError
from policies.usage import ResourceUsage

BUCKET: Final = "gcp:storage/bucket:Bucket"
DAY: Final = 86_400
DEFAULT_RETENTION: Final = 7 * DAY
"""Seconds of soft delete that Google sets on a bucket without a policy."""
RETENTIONS: Final = (7 * DAY, 90 * DAY)
"""The least and the most that Google takes, beside 0 for off."""
CLASSES: Final = MappingProxyType(
    {
        "STANDARD": "standard",
        "NEARLINE": "nearline",
        "COLDLINE": "coldline",
        "ARCHIVE": "archive",
        "RAPID": "rapid",
        "REGIONAL": "standard",
        "MULTI_REGIONAL": "standard",
    }
)
"""Storage classes by the name of their items; the last two are old names of Standard."""
RETRIEVED: Final = ("nearline", "coldline", "archive")
"""Classes that bill every read."""
PLACEMENT: Final = ("customPlacementConfig", "dataLocations")


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """Everything that a bucket bills. Raises ResourceError for a soft-delete retention that Google refuses."""
    seconds = retention_seconds(resource)
    location = locate(resource, market.resources, "location", decides="the price of a GiB")
    kind = resource.text("storageClass")
    title = _title(kind, seconds)
    churns = bool(market.usage_of(resource).churn_gib_per_day)
    homes = places_named(resource, *PLACEMENT, decides="the price of a GiB")
    seen = (location, homes, seconds if churns else 0)
    unseen: list[Part] = [part for part in seen if isinstance(part, UnknownInput)]
    if isinstance(kind, Opaque):
        unseen.append(unknown(kind, "storageClass", decides="the price of a GiB"))
    place = location if isinstance(location, str) else ""
    if isinstance(location, UnknownInput) or isinstance(homes, UnknownInput) or isinstance(kind, Opaque):
        return bill(resource, place, title, unseen)
    name = CLASSES.get((kind or "STANDARD").upper())
    if name is None:
        item = f"storage.{str(kind).lower()}.capacity"
        gib = market.usage_of(resource).gib
        reason = f'storage class "{kind}" is not known; classes are {", ".join(CLASSES)}'
        return bill(resource, place, title, (Unpriced(item=item, reason=reason, quantity=gib, unit="GiB-month"),))
    held = 0 if isinstance(seconds, UnknownInput) else seconds
    parts = (*unseen, *_parts(resource, market, _Place.of(location, homes), name, held))
    return bill(resource, place, title, parts)


@final
@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where a bucket is."""

    location: str
    """Where its prices are looked up."""
    homes: tuple[str, ...]
    """The regions of a dual-region of its own: reads there are reads at home."""
    replicated: str | None
    """The multi-region that has the price of copying between regions; None where nothing is copied."""

    @classmethod
    def of(cls, location: str, homes: tuple[str, ...]) -> _Place:
        """A bucket that names one place of its own is zonal, one that names two is a dual-region without a price."""
        if len(homes) == 1:
            return cls(location=homes[0], homes=(), replicated=None)
        named = f"{location}-custom-dual-region" if homes else location
        return cls(location=named, homes=homes, replicated=REPLICATED.get(location))


def retention_seconds(resource: Resource) -> int | UnknownInput:
    """For how long soft delete keeps what is deleted or overwritten; 0 where it is off.

    Raises ResourceError for a retention that Google refuses.
    """
    path = ("softDeletePolicy", "retentionDurationSeconds")
    found = resource.integer(*path)
    if isinstance(found, Opaque):
        return unknown(found, *path, decides="for how long deleted bytes bill")
    if found is None:
        return DEFAULT_RETENTION
    least, most = RETENTIONS
    if found and not least <= found <= most:
        raise ResourceError(
            f"{resource.urn}: {'.'.join(path)} is {found}; it must be 0 (off) or from {least} to {most} (7 to 90 days)"
        )
    return found


def _parts(resource: Resource, market: Market, at: _Place, kind: str, seconds: int) -> Iterator[Part]:
    usage, location = market.usage_of(resource), at.location
    capacity = f"storage.{kind}.capacity"
    unit = "GiB-month"
    yield market.used(resource, "gib", "capacity", capacity, usage.gib, unit, location)
    if seconds:
        kept = usage.churn_gib_per_day * seconds / DAY
        note = f"{_days(seconds)} of soft delete on {usage.churn_gib_per_day:,f} GiB of churn a day"
        yield market.used(resource, "churn_gib_per_day", "soft-deleted", capacity, kept, unit, location, note=note)
    if resource.value("versioning", "enabled") or usage.noncurrent_gib:
        yield market.used(
            resource, "noncurrent_gib", "noncurrent versions", capacity, usage.noncurrent_gib, unit, location
        )
    if at.replicated and usage.written_gib:
        yield market.line("replication", "storage.replication", usage.written_gib, "GiB", at.replicated)
    yield from _operations(resource, market, location, kind)
    yield from _reads(resource, market, at)
    if usage.egress_gib:
        yield market.line("to the internet", "transfer.internet.worldwide", usage.egress_gib, "GiB", location)


def _operations(resource: Resource, market: Market, location: str, kind: str) -> Iterator[Part]:
    """Operations, retrieval and management; none of them where usage names none."""
    usage = market.usage_of(resource)
    autoclass = resource.flag("autoclass", "enabled")
    if isinstance(autoclass, Opaque):
        yield unknown(autoclass, "autoclass", "enabled", decides="whether managing objects bills, or retrieval")
        autoclass = False
    counts: Mapping[str, tuple[str, Decimal, str]] = {
        "writes and listings": (f"storage.{kind}.class-a", usage.class_a_operations / 1000, "1000-operations"),
        "reads": (f"storage.{kind}.class-b", usage.class_b_operations / 1000, "1000-operations"),
    }
    if kind in RETRIEVED and not autoclass:
        retrieved = max(usage.retrieval_gib, _read_gib(usage))
        counts = {**counts, "retrieval": (f"storage.{kind}.retrieval", retrieved, "GiB")}
    if autoclass:
        objects = usage.objects / 1000
        counts = {**counts, "autoclass": ("storage.autoclass.management", objects, "1000-objects-month")}
    for name, (item, quantity, unit) in counts.items():
        if quantity:
            yield market.line(name, item, quantity, unit, location)


def _read_gib(usage: ResourceUsage) -> Decimal:
    """What the readers read in a month."""
    return usage.epochs * usage.dataset_gib * usage.readers


def _reads(resource: Resource, market: Market, at: _Place) -> Iterator[Part]:
    """What the hosts of the stack read, from wherever they stand: free in the bucket's own region, billed elsewhere."""
    usage = market.usage_of(resource)
    gib, location = _read_gib(usage), at.location
    if not gib:
        return
    if not market.readers:
        reason = "no TPU of this stack says from where it is read; the transfer is not counted"
        yield UnknownInput(path=field_of(resource, "dataset_gib"), reason=reason)
        return
    note = f"{usage.epochs:,f} epochs x {usage.dataset_gib:,f} GiB x {usage.readers:,f} readers"
    away = {place: item for place in market.readers if (item := transfer_item(location, place, at.homes))}
    if not away:
        yield f"{note} are read in the bucket's own region: no transfer bills"
        return
    lines = [market.line(f"reads from {place}", item, gib, "GiB", location, note=note) for place, item in away.items()]
    yield max(lines, key=_dearest)


def _dearest(line: CostComponent | Unpriced) -> tuple[bool, Fraction]:
    """Where readers stand in several places, all are counted from the dearest; one without a price comes first."""
    return (True, Fraction(0)) if isinstance(line, Unpriced) else (False, line.amount.per_month)


def _title(kind: str | Opaque | None, seconds: int | UnknownInput) -> str:
    shown = "class unknown" if isinstance(kind, Opaque) else (kind or "STANDARD").lower()
    if isinstance(seconds, UnknownInput):
        return f"bucket · {shown}"
    return f"bucket · {shown} · soft delete {_days(seconds) if seconds else 'off'}"


def _days(seconds: int) -> str:
    return f"{seconds / DAY:g} days"


PRICED: Final = Priced(types=(BUCKET,), price=price)
