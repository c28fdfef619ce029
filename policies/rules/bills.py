"""What the estimate says about one resource, in the form in which rules speak of money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from policies.estimate.inner_pools import inner_pools
from policies.estimate.model import CostComponent, ResourceEstimate, total
from policies.estimate.node_counts import CLUSTER, shown_place
from policies.money import KEPT, Amount
from policies.resources import Opaque, Resource, ResourceError, dotted
from policies.rules.model import Context


@lru_cache(maxsize=1)
def bills(context: Context) -> Mapping[str, ResourceEstimate]:
    """The estimate of each resource by URN, and of each pool inside a cluster."""
    found = {each.resource.urn: each for each in context.estimate.resources}
    for cluster in context.resources.of_type(CLUSTER):
        if cluster.urn in found:
            found |= _inside(cluster, found[cluster.urn])
    return found


def _inside(cluster: Resource, bill: ResourceEstimate) -> dict[str, ResourceEstimate]:
    """The parts of the bill of a cluster that its own pools make; what has no price may be of any of them."""
    try:
        pools = inner_pools(cluster)
    except ResourceError:
        return {}
    return {
        pool.resource.urn: replace(
            bill,
            resource=pool.resource,
            location=shown_place(pool.resource, cluster, bill.location),
            components=tuple(line for line in bill.components if pool.owns(line.name)),
            unknown=tuple(part for part in bill.unknown if part.path.startswith(dotted(pool.at))),
        )
        for pool in (() if isinstance(pools, Opaque) else pools)
    }


def lines_of(resource: Resource, context: Context, *items: str) -> tuple[CostComponent, ...]:
    """Its lines of the bill whose item is one of `items`; all of them where none is named."""
    found = bills(context).get(resource.urn)
    components = found.components if found else ()
    return tuple(line for line in components if not items or line.item in items)


def cost_of(resource: Resource, context: Context, *items: str) -> Amount | None:
    """The sum of these lines; None where there is none, or where a part of them has no price or is not known."""
    found = bills(context).get(resource.urn)
    if found is None or not found.components:
        return None
    if not items:
        return found.amount if found.complete else None
    lines = [line.amount for line in found.components if line.item in items]
    missing = not lines or any(part.item in items for part in found.unpriced)
    return None if missing else total(lines)


def a_month(amount: Amount | None) -> str:
    """`1,440.00 /month`, or that there is no price."""
    return "no price known" if amount is None else _shown(*amount.per_month.as_integer_ratio())


@lru_cache(maxsize=KEPT)
def _shown(above: int, below: int) -> str:
    return f"{Amount(Fraction(above, below)).monthly:,.2f} /month"
