"""Instant snapshots and machine images: what they hold, at most, at prices of their own."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from policies.estimate.disk_sizes import DISK_TYPES, source_disk_gib
from policies.estimate.location import last_segment, locate
from policies.estimate.market import Market, Part, bill, field_of, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.hardware.disks import DEFAULT_DISK_TYPE
from policies.resources import Opaque, Resource

INSTANT: Final = "gcp:compute/instantSnapshot:InstantSnapshot"
REGION_INSTANT: Final = "gcp:compute/regionInstantSnapshot:RegionInstantSnapshot"
IMAGE: Final = "gcp:compute/machineImage:MachineImage"
UPPER: Final = "at most: the size of the disk; what bills is what changed since"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """One of them. What usage says comes first; a machine image has no other measure."""
    if resource.type == IMAGE:
        return bill(resource, "", "machine image", (_image(resource, market),))
    key = "zone" if resource.type == INSTANT else "region"
    location = locate(resource, market.resources, key)
    if isinstance(location, UnknownInput):
        return bill(resource, "", "instant snapshot", (location,))
    return bill(resource, location, "instant snapshot", (_instant(resource, market, location),))


def _instant(resource: Resource, market: Market, location: str) -> Part:
    disks = market.resources.references(resource, "sourceDisk", *DISK_TYPES)
    if not disks:
        return UnknownInput(path="sourceDisk", reason="the disk is not in this stack; it decides what is held")
    kind = disks[0].text("type")
    if isinstance(kind, Opaque):
        return unknown(kind, "sourceDisk", "type", decides="the price of a GiB")
    item = f"instant-snapshot.{last_segment(kind) if kind else DEFAULT_DISK_TYPE}.capacity"
    used = market.usage_of(resource).gib
    if used:
        return market.line("capacity", item, used, "GiB-month", location, note="as usage says")
    size = source_disk_gib(resource, market.resources)
    if isinstance(size, UnknownInput):
        return size
    if size is None:
        return UnknownInput(path="sourceDisk.size", reason="not known; it decides what is held")
    return market.line("capacity", item, Decimal(size), "GiB-month", location, note=UPPER)


def _image(resource: Resource, market: Market) -> Part:
    used = market.usage_of(resource).gib
    if used:
        return market.line("capacity", "machine-image.capacity", used, "GiB-month", "global", note="as usage says")
    reason = f"nothing says how much its disks hold: set {field_of(resource, 'gib')}"
    return UnknownInput(path="sourceInstance", reason=reason)


PRICED: Final = Priced(types=(INSTANT, REGION_INSTANT, IMAGE), price=price)
