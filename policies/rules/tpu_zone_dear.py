"""The same chip in another zone for much less: spot prices differ sevenfold."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from policies.estimate.capacity import Capacity
from policies.estimate.model import UnknownInput
from policies.hardware.zones import is_zone, tpu_zones
from policies.prices.book import MissingPrice, Price, PriceModel
from policies.resources import Opaque, Resource
from policies.rules.bills import a_month, bills, cost_of
from policies.rules.cluster_pools import CLUSTER, each_pool
from policies.rules.machines import SLICES, is_tpu, terms_of
from policies.rules.model import Context, Rule, Severity, Violation

CHIP: Final = "tpu.v6e.chip"
WORTH_MOVING: Final = Fraction(1, 4)
"""A zone must be cheaper by so much: data has to move too."""


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    tpu = is_tpu(resource, context.resources)
    if isinstance(tpu, Opaque):
        yield Violation.hidden("machineType", tpu)
    terms = terms_of(resource, context) if tpu is True else None
    if isinstance(terms, UnknownInput):
        yield Violation(message=f"{terms.path}: {terms.reason}", decided=False)
    elif terms in (Capacity.SPOT, Capacity.ON_DEMAND):
        yield from _compare(resource, terms.model, context)


def _compare(resource: Resource, model: PriceModel, context: Context) -> Iterator[Violation]:
    bill = bills(context).get(resource.urn)
    zone = bill.location if bill else ""
    amount = cost_of(resource, context, CHIP)
    here = _chip(model, zone, context) if is_zone(zone) else None
    if bill and bill.unknown and amount is None:
        yield Violation(message="; ".join(f"{part.path}: {part.reason}" for part in bill.unknown), decided=False)
    if amount is None or not isinstance(here, Price) or not here.unit_price:
        return
    best, price = _cheapest(model, context) or (zone, here.unit_price)
    saved = _saved(here.unit_price, price)
    if saved >= WORTH_MOVING:
        less = amount * saved
        yield Violation(
            message=(
                f"a chip is {here.unit_price.normalize():f} an hour in {zone} and {price.normalize():f} in "
                f"{best}: {a_month(less)} less there, before the reads of buckets and volumes that stay in {zone}"
            ),
            monthly=less,
        )


@lru_cache(maxsize=256)
def _chip(model: PriceModel, zone: str, context: Context) -> Price | MissingPrice:
    return context.book.find(CHIP, model, zone)


@lru_cache(maxsize=256)
def _saved(dear: Decimal, cheap: Decimal) -> Fraction:
    return 1 - Fraction(cheap) / Fraction(dear)


@lru_cache(maxsize=2)
def _cheapest(model: PriceModel, context: Context) -> tuple[str, Decimal] | None:
    """The first of the zones where a chip costs least, and what; None where none has a price. Read once a judgement."""
    found = ((zone, _chip(model, zone, context)) for zone in tpu_zones())
    prices = [(zone, price.unit_price) for zone, price in found if isinstance(price, Price)]
    return min(prices, key=lambda pair: pair[1], default=None)


RULE: Final = Rule(
    id="TPU-ZONE-DEAR",
    title="No other v6e zone is cheaper by a quarter",
    severity=Severity.INFO,
    applies_to=(*SLICES, CLUSTER),
    remediation=(
        "Weigh the move of the data against it, then set spotrail:zone (or zone of the slice). Ask for quota in the "
        "other region first."
    ),
    url="https://cloud.google.com/spot-vms/pricing",
    check=each_pool(_check),
)
