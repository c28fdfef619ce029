"""Node pools of GKE, TPU nodes (`ct6e-*`) among them."""

from __future__ import annotations

from typing import Final

from policies.estimate.market import Market, bill
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.node_counts import NODE_POOL, Nodes, as_asked, cluster_of, nodes, pool_location, shown_place
from policies.estimate.node_pools import Pool, pool_parts, pool_title
from policies.estimate.registry import Priced
from policies.estimate.traffic import traffic_parts
from policies.resources import Resource


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """Every node of the pool; the fee of the cluster stands on the cluster."""
    location = pool_location(resource, market.resources)
    if isinstance(location, UnknownInput):
        return bill(resource, "", "node pool", (location,))
    pool = Pool(resource=as_asked(resource), cluster=cluster_of(resource, market.resources), location=location)
    if nodes(pool.resource, pool.at) == Nodes(count=0):
        return bill(resource, location, "node pool · no nodes", (), free="its node count is 0")
    parts = (*pool_parts(pool, market, resource), *traffic_parts(market, resource, location))
    shown = shown_place(pool.resource, pool.cluster, location)
    return bill(resource, shown, pool_title(pool, market), parts)


PRICED: Final = Priced(types=(NODE_POOL,), price=price)
