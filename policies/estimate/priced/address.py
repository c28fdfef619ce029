"""Reserved addresses: an internal one is free, an external one bills less while it is used than while it waits."""

from __future__ import annotations

from typing import Final

from policies.estimate.capacity import Capacity, vm_capacity
from policies.estimate.location import locate
from policies.estimate.market import ADDRESS_TYPES, Market, bill, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.prices.book import PriceModel
from policies.resources import Opaque, Resource

GLOBAL: Final = ADDRESS_TYPES[1]
INSTANCE: Final = "gcp:compute/instance:Instance"
NAT: Final = "gcp:compute/routerNat:RouterNat"
NOT_RUNNING: Final = frozenset({"TERMINATED", "SUSPENDED"})
USERS: Final = (
    INSTANCE,
    "gcp:compute/instanceTemplate:InstanceTemplate",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
    NAT,
    "gcp:compute/forwardingRule:ForwardingRule",
    "gcp:compute/globalForwardingRule:GlobalForwardingRule",
)


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """One reserved address."""
    kind = resource.text("addressType")
    if isinstance(kind, Opaque):
        return bill(resource, "", "address", (unknown(kind, "addressType", decides="whether it bills"),))
    if kind == "INTERNAL":
        return bill(resource, "", "internal address", (), free="internal addresses cost nothing")
    if resource.value("ipVersion") == "IPV6":
        return bill(resource, "", "IPv6 address", (), free="IPv6 addresses cost nothing")
    location = "global" if resource.type == GLOBAL else locate(resource, market.resources, "region")
    if isinstance(location, UnknownInput):
        return bill(resource, "", "external address", (location,))
    users = _users(resource, market)
    if not users:
        note = "nothing in this stack uses it"
        line = market.line("reserved, unused", "network.ip.unused", 1, "IP-hour", location, note=note)
        return bill(resource, location, "external address · unused", (line,))
    if users[0].type == INSTANCE and users[0].value("desiredStatus") in NOT_RUNNING:
        note = f"{users[0].name} does not run: an address bills as unused meanwhile"
        line = market.line("reserved, unused", "network.ip.unused", 1, "IP-hour", location, note=note)
        return bill(resource, location, "external address · unused", (line,))
    spot = users[0].type == INSTANCE and vm_capacity(users[0], market) is Capacity.SPOT
    model = PriceModel.SPOT if spot else PriceModel.ON_DEMAND
    line = market.line("in use", "network.ip.in-use", 1, "IP-hour", location, model=model, note=f"by {users[0].name}")
    return bill(resource, location, "external address", (line,))


def _users(address: Resource, market: Market) -> tuple[Resource, ...]:
    """What uses the address: by recorded dependency, by name, or by the literal address in a network interface."""
    return (
        market.resources.dependents(address, *USERS)
        or market.resources.referrers(address, "natIps", NAT)
        or market.users_of_address(address.value("address"))
    )


PRICED: Final = Priced(types=ADDRESS_TYPES, price=price)
