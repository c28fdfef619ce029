"""Cloud NAT: by the hour for each VM that may use it, by the GiB for what it carries."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Final

from policies.estimate.location import locate
from policies.estimate.market import Market, Part, bill, field_of, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.resources import Opaque, Resource

NAT: Final = "gcp:compute/routerNat:RouterNat"
METERED_VMS: Final = 32
"""Above so many VMs the gateway bills a flat hour."""
PORTS: Final = 64_512
"""Of one address. Source: https://cloud.google.com/nat/docs/ports-and-addresses"""
STATIC_PORTS: Final = 64
DYNAMIC_PORTS: Final = 32
"""What each VM gets where nothing is said; where allocation is dynamic, at least."""


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
        yield _addresses(resource, market, location, int(usage.vms))


def _addresses(resource: Resource, market: Market, location: str, vms: int) -> Part:
    """The addresses that Google takes by itself: so many that each VM has its ports."""
    dynamic = resource.flag("enableDynamicPortAllocation")
    ports = resource.integer("minPortsPerVm")
    for path, found in (("enableDynamicPortAllocation", dynamic), ("minPortsPerVm", ports)):
        if isinstance(found, Opaque):
            return unknown(found, path, decides="how many addresses the gateway takes")
    each = ports if isinstance(ports, int) and ports else DYNAMIC_PORTS if dynamic else STATIC_PORTS
    note = f"{PORTS:,} ports an address, {each:,} for each VM"
    return market.line("address", "network.ip.in-use", ceil(vms * each / PORTS), "IP-hour", location, note=note)


PRICED: Final = Priced(types=(NAT,), price=price)
