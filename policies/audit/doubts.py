"""Prices that an audit rests on and that are too old to trust: used, and said to be so."""

from __future__ import annotations

from collections.abc import Iterable

from policies.audit.context import Context
from policies.audit.model import Verdict
from policies.audit.reading import link_of, said
from policies.audit.record import Item, Part
from policies.audit.subjects import TYPES
from policies.estimate.engine import doubts
from policies.estimate.model import Estimate, ResourceEstimate

_DECIDE: tuple[str, ...] = ("type", "machineType", "acceleratorType", "storageClass", "zone", "region", "location")
"""Fields by which things of one part have the same prices."""


def price_doubts(context: Context, verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """A note for each stale or undated price of something that wastes money."""
    wasted = {(each.type, each.resource) for each in verdicts if each.waste}
    found: dict[tuple[str, ...], ResourceEstimate] = {}
    for part, items in context.record.inventory.items():
        for item in items:
            key = _key(part, item)
            if key not in found and (TYPES[part], link_of(item)) in wasted:
                found[key] = context.pricing.estimate(part, item)
    return tuple(doubts(Estimate(currency=context.pricing.book.currency, resources=tuple(found.values()))))


def _key(part: Part, item: Item) -> tuple[str, ...]:
    return part.value, *(said(item, field) for field in _DECIDE)
