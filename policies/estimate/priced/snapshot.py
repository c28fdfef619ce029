"""Snapshots and images: by the bytes that they hold, at most the size of the disk they were taken of."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from policies.estimate.disk_sizes import DISK_TYPES, SNAPSHOT, snapshot_gib, source_disk_gib
from policies.estimate.location import locate, nearest_multi_region, segment_after
from policies.estimate.market import Market, Part, bill, field_of, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.resources import Opaque, Resource

IMAGE: Final = "gcp:compute/image:Image"
UPPER: Final = "at most: the size of the disk; what bills are its compressed bytes"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """The capacity of one snapshot or image."""
    is_snapshot = resource.type == SNAPSHOT
    kind = _kind(resource) if is_snapshot else "custom"
    location = _location(resource, market)
    held = _held(resource, market)
    title = "image" if not is_snapshot else f"snapshot · {kind}" if isinstance(kind, str) else "snapshot"
    if isinstance(kind, UnknownInput) or isinstance(location, UnknownInput) or isinstance(held, UnknownInput):
        unseen = [part for part in (kind, location, held) if isinstance(part, UnknownInput)]
        return bill(resource, location if isinstance(location, str) else "", title, unseen)
    item = f"snapshot.{kind}.capacity" if is_snapshot else "image.capacity"
    gib, note = held
    part: Part = market.line("capacity", item, gib, "GiB-month", location, note=note)
    return bill(resource, location, title, (part,))


def _kind(snapshot: Resource) -> str | UnknownInput:
    found = snapshot.text("snapshotType")
    if isinstance(found, Opaque):
        return unknown(found, "snapshotType", decides="the price of a GiB")
    return (found or "STANDARD").lower()


def _held(resource: Resource, market: Market) -> tuple[Decimal, str] | UnknownInput:
    """How many GiB, and a note. What usage says comes first."""
    used = market.usage_of(resource).gib
    if used:
        return used, "as usage says"
    if resource.type == SNAPSHOT:
        size = snapshot_gib(resource, market.resources)
    else:
        size = source_disk_gib(resource, market.resources)
        if size is None:
            found = resource.integer("diskSizeGb")
            size = unknown(found, "diskSizeGb", decides="how much is held") if isinstance(found, Opaque) else found
    if isinstance(size, UnknownInput):
        return size
    if size is None:
        reason = f"the disk is not in this stack and nothing says its size: set {field_of(resource, 'gib')}"
        return UnknownInput(path="sourceDisk", reason=reason)
    return Decimal(size), UPPER


def _location(resource: Resource, market: Market) -> str | UnknownInput:
    stored = resource.items("storageLocations")
    if isinstance(stored, Opaque):
        return unknown(stored, "storageLocations", decides="the price of a GiB")
    if stored:
        first = resource.text("storageLocations", 0)
        return (
            unknown(first, "storageLocations", 0, decides="the price")
            if isinstance(first, Opaque)
            else str(first).lower()
        )
    origin = _origin(resource, market)
    return origin if isinstance(origin, UnknownInput) else nearest_multi_region(origin)


def _origin(resource: Resource, market: Market) -> str | UnknownInput:
    """Where the disk is that it was taken of."""
    found = locate(resource, market.resources, "zone", decides="where it is stored")
    if isinstance(found, str):
        return found
    disks = market.resources.references(resource, "sourceDisk", *DISK_TYPES)
    if disks:
        return locate(disks[0], market.resources, "zone", "region", decides="where it is stored")
    source = resource.text("sourceDisk")
    named = (segment_after(source, key) for key in ("zones", "regions")) if isinstance(source, str) else ()
    place = next((place for place in named if place), None)
    return place.lower() if place else found


PRICED: Final = Priced(types=(SNAPSHOT, IMAGE), price=price)
