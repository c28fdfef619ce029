"""VPN tunnels: by the hour, whether anything goes through them or not."""

from __future__ import annotations

from typing import Final

from policies.estimate.location import locate
from policies.estimate.market import Market, bill
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.estimate.traffic import traffic_parts
from policies.resources import Resource

TUNNEL: Final = "gcp:compute/vPNTunnel:VPNTunnel"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """One tunnel. A highly available gateway has two, each a resource of its own."""
    location = locate(resource, market.resources, "region")
    if isinstance(location, UnknownInput):
        return bill(resource, "", "VPN tunnel", (location,))
    line = market.line("tunnel", "network.vpn.tunnel", 1, "hour", location)
    return bill(resource, location, "VPN tunnel", (line, *traffic_parts(market, resource, location)))


PRICED: Final = Priced(types=(TUNNEL,), price=price)
