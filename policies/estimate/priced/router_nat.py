"""Cloud NAT: by the hour for each VM that may use it, by the GiB for what it carries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.location import locate
from policies.estimate.market import Market, Part, bill, field_of, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.resources import Opaque, Resource

NAT: Final = "gcp:compute/routerNat:RouterNat"
METERED_VMS: Final = 32
"""Above so many VMs the gateway bills a flat hour."""


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """The gateway, its own address and its data; all by usage, since no stack says who goes out."""
    location = locate(resource, market.resources, "region")
    if isinstance(location, UnknownInput):
        return bill(resource, "", "NAT gateway", (location,))
    return bill(resource, location, "NAT gateway", _parts(resource, market, location))


def _parts(resource: Resource, market: Market, location: str) -> Iterator[Part]:
    usage = market.usage_of(resource)
    if usage.vms > METERED_VMS:
        note = f"a flat price above {METERED_VMS} VMs"
        yield market.line("gateway", "network.nat.gateway-over-32", 1, "hour", location, note=note)
    else:
        yield market.used(resource, "vms", "gateway", "network.nat.gateway", usage.vms, "VM-hour", location)
    yield market.used(resource, "nat_gib", "data", "network.nat.data", usage.nat_gib, "GiB", location)
    allocated = resource.text("natIpAllocateOption")
    if not usage.vms:
        yield f"its address bills too, as soon as {field_of(resource, 'vms')} is set"
    elif isinstance(allocated, Opaque):
        yield unknown(allocated, "natIpAllocateOption", decides="whether it has an address of its own")
    elif allocated == "AUTO_ONLY":
        yield market.line("address", "network.ip.in-use", 1, "IP-hour", location, note="one at least")


PRICED: Final = Priced(types=(NAT,), price=price)
