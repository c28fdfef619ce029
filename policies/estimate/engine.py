"""The price of a stack: every resource is priced by the module that claims its type, is free, or is unpriced."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from policies.errors import InputError
from policies.estimate.free import free_type
from policies.estimate.market import Market
from policies.estimate.model import (
    CostComponent,
    Estimate,
    Freshness,
    OneOff,
    ResourceEstimate,
    UnknownInput,
    Unpriced,
    total,
)
from policies.estimate.readers import tpu_places
from policies.estimate.registry import priced_types
from policies.hardware.errors import hint
from policies.money import Amount
from policies.prices.book import PriceBook
from policies.resources import Resource, ResourceSet
from policies.usage import Usage

TPU_ITEMS: Final = "tpu."
"""What the items of TPU chips begin with."""


@final
@dataclass(frozen=True, kw_only=True)
class SpotComparison:
    """What the spot chips of a stack cost, and what the same chips would cost on demand."""

    spot: Amount
    on_demand: Amount | None
    """None where one of the chips has no on-demand price."""


def estimate(resources: ResourceSet, usage: Usage, book: PriceBook, as_of: datetime.date) -> Estimate:
    """The price of every resource of a stack. Pure and linear in the number of resources.

    `as_of` is the day from which the age of a price is counted. Components and what Pulumi itself keeps (stack,
    providers) are nothing in the cloud and are left out. An input that cannot be what it says makes the price of its
    resource unknown, with the refusal as the reason: the rules say what is wrong, and the rest is priced.
    """
    found = price_side(market_of(resources, usage, book, as_of))
    names = (each.resource.name for each in found.resources)
    return replace(found, notes=(*unmatched_usage(usage, names), *found.notes))


def market_of(resources: ResourceSet, usage: Usage, book: PriceBook, as_of: datetime.date) -> Market:
    """Everything that the prices of a stack rest on."""
    return Market(resources=resources, usage=usage, book=book, as_of=as_of, readers=tpu_places(resources))


def price_side(market: Market) -> Estimate:
    """`estimate` of one side of a change: whether the usage speaks of it is judged over both sides."""
    subjects = tuple(resource for resource in market.resources if bills(resource))
    found = tuple(price_or_reason(resource, market) for resource in subjects)
    one_off = tuple(once for resource in subjects for once in _one_off(resource, market))
    priced = Estimate(currency=market.book.currency, resources=found, one_off=one_off)
    return replace(priced, notes=tuple(_notes(priced)))


def unmatched_usage(usage: Usage, names: Iterable[str]) -> Iterator[str]:
    """A note for each key of the usage that matches none of the logical names."""
    if not usage.entries:
        return
    known = tuple(dict.fromkeys(names))
    for key in usage.unmatched(known):
        yield f"usage: {key} matches no resource of this stack.{hint(key, known)}"


def compare_spot(
    estimated: Estimate, resources: ResourceSet, usage: Usage, book: PriceBook, as_of: datetime.date
) -> SpotComparison | None:
    """The spot chips of an estimate, priced again on demand by the same code. None where nothing is on spot."""
    dear = Market(resources=resources, usage=usage, book=book, as_of=as_of, on_demand=True)
    on_spot = tuple(found for found in estimated.resources if any(_is_spot_chip(line) for line in found.components))
    if not on_spot:
        return None
    again = tuple(price_or_reason(found.resource, dear) for found in on_spot)
    missing = any(part.item.startswith(TPU_ITEMS) for found in again for part in found.unpriced)
    chips = [line for found in on_spot for line in found.components if line.item.startswith(TPU_ITEMS)]
    dearer = total(line.amount for found in again for line in found.components if line.item.startswith(TPU_ITEMS))
    # A cluster may have pools on both terms: those that are on demand already are no part of the comparison.
    others = total(line.amount for line in chips if not line.spot)
    return SpotComparison(
        spot=total(line.amount for line in chips if line.spot),
        on_demand=None if missing else dearer - others,
    )


def bills(resource: Resource) -> bool:
    """Whether the resource is something in a cloud, which an estimate lists."""
    return resource.custom and not resource.type.startswith("pulumi:")


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """The price of one resource, by its type. A type that nobody knows is unpriced, never free.

    Raises ResourceError for an input that cannot be what it says, naming the URN.
    """
    known = priced_types().get(resource.type)
    if known is not None:
        return known.price(resource, market)
    free = free_type(resource.type)
    if free is not None:
        return ResourceEstimate(resource=resource, title=free.kind, free=free.reason)
    reason = f"spotrail has no estimate for {resource.type}"
    return ResourceEstimate(resource=resource, unpriced=(Unpriced(item=resource.type, reason=reason),))


def price_or_reason(resource: Resource, market: Market) -> ResourceEstimate:
    """`price`, or where an input is refused an estimate of which nothing is known, with the refusal as the reason."""
    try:
        return price(resource, market)
    except InputError as error:
        return ResourceEstimate(
            resource=resource, unknown=(UnknownInput(path="inputs", reason=_said(error, resource)),)
        )


def _one_off(resource: Resource, market: Market) -> Iterator[OneOff]:
    known = priced_types().get(resource.type)
    if known is None:
        return
    try:
        yield from known.one_off(resource, market)
    except InputError as error:
        refused = Unpriced(item="inputs", reason=_said(error, resource))
        yield OneOff(name=resource.name, urn=resource.urn, lines=(), unpriced=(refused,))


def _said(error: InputError, resource: Resource) -> str:
    return str(error).removeprefix(f"{resource.urn}: ")


def _notes(priced: Estimate) -> Iterator[str]:
    for each in priced.resources:
        yield from (f"{each.resource.name}: {note}" for note in each.notes)
    yield from doubts(priced)


def doubts(priced: Estimate) -> Iterator[str]:
    """A note for each price of an estimate that is stale or undated."""
    yield from sorted({_doubt(line) for line in priced.doubtful})


def _doubt(line: CostComponent) -> str:
    bought = f"{'spot' if line.spot else 'list'} price of {line.item}"
    if line.freshness is Freshness.FUTURE:
        return f"the {bought} is of {line.as_of}, later than the day that ages are counted from: it counts as stale"
    return f"the {bought} is {f'of {line.as_of}: stale' if line.as_of else 'undated: it counts as stale'}"


def _is_spot_chip(line: CostComponent) -> bool:
    return line.spot and line.item.startswith(TPU_ITEMS)
