"""What the estimate says about one resource, in the form in which rules speak of money."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from policies.estimate.model import CostComponent, ResourceEstimate, total
from policies.money import Amount
from policies.resources import Resource
from policies.rules.model import Context


@lru_cache(maxsize=1)
def bills(context: Context) -> Mapping[str, ResourceEstimate]:
    """The estimate of each resource by URN."""
    return {found.resource.urn: found for found in context.estimate.resources}


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
    return "no price known" if amount is None else f"{amount.monthly:,.2f} /month"
