"""Storage pools: what the pool provisions bills, and its disks do not."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from policies.estimate.location import last_segment, locate
from policies.estimate.market import Market, Part, bill, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.estimate.volume import CEILING
from policies.resources import Opaque, Resource, ResourceError

POOL: Final = "gcp:compute/storagePool:StoragePool"
CAPACITY: Final = ("capacity", "poolProvisionedCapacityGb", "GiB-month")
PERFORMANCE: Final = {
    "hyperdisk-balanced": (
        ("IOPS", "poolProvisionedIops", "IOPS-month"),
        ("throughput", "poolProvisionedThroughput", "MiB/s-month"),
    ),
    "hyperdisk-throughput": (("throughput", "poolProvisionedThroughput", "MiB/s-month"),),
}
"""What bills beside the capacity. Of a type that is not here, all that is set."""


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """Capacity and performance of one pool, by its type and by how each is provisioned (standard or advanced)."""
    location = locate(resource, market.resources, "zone")
    kind = resource.text("storagePoolType")
    name = last_segment(kind).lower() if isinstance(kind, str) and kind else ""
    title = f"storage pool · {name}" if name else "storage pool"
    if isinstance(kind, Opaque):
        seen = unknown(kind, "storagePoolType", decides="every price of the pool")
        return bill(resource, location if isinstance(location, str) else "", title, (seen,))
    if not name:
        missing = UnknownInput(path="storagePoolType", reason="not set; it decides every price of the pool")
        return bill(resource, location if isinstance(location, str) else "", title, (missing,))
    if isinstance(location, UnknownInput):
        return bill(resource, "", title, (location,))
    return bill(resource, location, title, _parts(resource, market, name, location))


def _parts(resource: Resource, market: Market, kind: str, location: str) -> Iterator[Part]:
    performance = PERFORMANCE.get(kind, PERFORMANCE["hyperdisk-balanced"])
    for way, lines in (("capacityProvisioningType", (CAPACITY,)), ("performanceProvisioningType", performance)):
        provisioned = _provisioning(resource, way)
        for name, path, unit in lines:
            amount = _amount(resource, path, required=kind in PERFORMANCE or name == "capacity")
            if amount is None:
                continue
            if isinstance(amount, UnknownInput):
                yield amount
            elif isinstance(provisioned, UnknownInput):
                yield provisioned
                break
            else:
                item = f"storage-pool.{kind}-{provisioned}.{name.lower()}"
                yield market.line(name, item, amount, unit, location, note="its disks bill nothing")


def _provisioning(resource: Resource, path: str) -> str | UnknownInput:
    """`standard` or `advanced`: each has prices of its own."""
    found = resource.text(path)
    if isinstance(found, Opaque):
        return unknown(found, path, decides="which prices hold")
    if not found:
        return UnknownInput(path=path, reason="not set: standard and advanced have prices of their own")
    return found.lower()


def _amount(resource: Resource, path: str, *, required: bool) -> Decimal | UnknownInput | None:
    found = resource.integer(path)
    if isinstance(found, Opaque):
        return unknown(found, path, decides="how much of the pool bills")
    if found is None:
        reason = "not set, and what Google then provisions is not known"
        return UnknownInput(path=path, reason=reason) if required else None
    if found > CEILING:
        raise ResourceError(f"{resource.urn}: {path} is {found:,}; no pool has more than {CEILING:,}")
    return Decimal(found)


PRICED: Final = Priced(types=(POOL,), price=price)
