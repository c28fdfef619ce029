"""Clusters of GKE: the management fee, and the pools that are declared inside the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.market import Market, Part, bill, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput, Unpriced
from policies.estimate.node_counts import CLUSTER, as_asked, cluster_location
from policies.estimate.node_pools import Pool, pool_parts
from policies.estimate.registry import Priced
from policies.resources import Opaque, Resource

FEE: Final = "gke.cluster"
NO_CREDIT: Final = "the monthly credit of a billing account for one cluster is not counted"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """The fee and the nodes. Pools that are resources of their own bill for themselves."""
    location = cluster_location(resource, market.resources)
    if isinstance(location, UnknownInput):
        return bill(resource, "", "GKE cluster", (location,))
    autopilot = resource.flag("enableAutopilot")
    title = "GKE cluster · autopilot" if autopilot is True else "GKE cluster"
    fee = market.line("management", FEE, 1, "hour", location, note=NO_CREDIT)
    return bill(resource, location, title, (fee, *_nodes(resource, market, location, autopilot)))


def _nodes(resource: Resource, market: Market, location: str, autopilot: bool | Opaque | None) -> Iterator[Part]:
    if isinstance(autopilot, Opaque):
        yield unknown(autopilot, "enableAutopilot", decides="whether nodes bill, or pods")
        return
    if autopilot:
        reason = "Autopilot bills what pods request, which no program of the stack says"
        yield Unpriced(item="gke.autopilot", reason=reason)
        return
    for pool in _pools(resource, location):
        yield from (pool,) if isinstance(pool, UnknownInput) else pool_parts(pool, market, resource)
    provisioning = resource.value("clusterAutoscaling", "enabled")
    if provisioning is True or isinstance(provisioning, Opaque):
        yield UnknownInput(path="clusterAutoscaling", reason="it makes and removes node pools of its own, hour by hour")


def _pools(resource: Resource, location: str) -> Iterator[Pool | UnknownInput]:
    """The pools inside the cluster; else its default pool, unless that is removed at once."""
    described = as_asked(resource)
    inside = described.items("nodePools")
    if isinstance(inside, Opaque):
        yield unknown(inside, "nodePools", decides="how many nodes bill")
        return
    for index in range(len(inside)):
        yield Pool(resource=described, at=("nodePools", index), cluster=described, location=location)
    removed = described.flag("removeDefaultNodePool")
    if isinstance(removed, Opaque):
        yield unknown(removed, "removeDefaultNodePool", decides="whether the default pool bills")
    elif not inside and not removed and described.value("initialNodeCount") is not None:
        yield Pool(resource=described, cluster=described, location=location)


PRICED: Final = Priced(types=(CLUSTER,), price=price)
