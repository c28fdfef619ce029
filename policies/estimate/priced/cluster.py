"""Clusters of GKE: the management fee, and the pools that are declared inside the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from policies.estimate.inner_pools import InnerPool, inner_pools
from policies.estimate.market import Market, Part, bill, unknown
from policies.estimate.model import CostComponent, ResourceEstimate, UnknownInput, Unpriced
from policies.estimate.node_counts import CLUSTER, as_asked, cluster_location
from policies.estimate.node_pools import Pool, pool_parts
from policies.estimate.registry import Priced
from policies.estimate.traffic import traffic_parts
from policies.resources import Opaque, Resource, dotted

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
    parts = (fee, *_nodes(resource, market, location, autopilot), *traffic_parts(market, resource, location))
    return bill(resource, location, title, parts)


def _nodes(resource: Resource, market: Market, location: str, autopilot: bool | Opaque | None) -> Iterator[Part]:
    if isinstance(autopilot, Opaque):
        yield unknown(autopilot, "enableAutopilot", decides="whether nodes bill, or pods")
        return
    if autopilot:
        reason = "Autopilot bills what pods request, which no program of the stack says"
        yield Unpriced(item="gke.autopilot", reason=reason)
        return
    yield from _pools(resource, market, location)
    provisioning = resource.value("clusterAutoscaling", "enabled")
    if provisioning is True or isinstance(provisioning, Opaque):
        yield UnknownInput(path="clusterAutoscaling", reason="it makes and removes node pools of its own, hour by hour")


def _pools(resource: Resource, market: Market, location: str) -> Iterator[Part]:
    """The lines of the pools inside the cluster, each under the name of its pool."""
    described = as_asked(resource)
    inside = inner_pools(resource)
    if isinstance(inside, Opaque):
        yield unknown(inside, "nodePools", decides="how many nodes bill")
        return
    removed = described.flag("removeDefaultNodePool")
    if isinstance(removed, Opaque) and not inside:
        yield unknown(removed, "removeDefaultNodePool", decides="whether the default pool bills")
    for inner in inside:
        pool = Pool(resource=described, at=inner.at, cluster=described, location=location)
        yield from (_named(part, inner) for part in pool_parts(pool, market, resource))


def _named(part: Part, pool: InnerPool) -> Part:
    if isinstance(part, CostComponent):
        return replace(part, name=pool.called(part.name))
    if isinstance(part, UnknownInput) and not part.path.startswith(place := dotted(pool.at)):
        return replace(part, path=f"{place}.{part.path}")
    return pool.called(part) if isinstance(part, str) else part


PRICED: Final = Priced(types=(CLUSTER,), price=price)
