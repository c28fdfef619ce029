"""The price of a stack that may be wrong: what cannot be priced is unknown, and the rules say what is wrong with it."""

from __future__ import annotations

import datetime

from policies.errors import InputError
from policies.estimate.engine import bills, estimate, price
from policies.estimate.market import Market
from policies.estimate.model import Estimate, ResourceEstimate, UnknownInput
from policies.prices.book import PriceBook
from policies.resources import Resource, ResourceSet
from policies.usage import Usage


def price_for_rules(resources: ResourceSet, usage: Usage, book: PriceBook, as_of: datetime.date) -> Estimate:
    """The estimate of a stack, or, where an input of it cannot be what it says, of the rest of the stack.

    `estimate` refuses such a stack. A policy pack must go on: one malformed resource is no reason not to judge the
    others, so here it has an unknown price, with the refusal as the reason.
    """
    try:
        return estimate(resources, usage, book, as_of)
    except InputError:
        market = Market(resources=resources, usage=usage, book=book, as_of=as_of)
        subjects = (resource for resource in resources if bills(resource))
        return Estimate(currency=book.currency, resources=tuple(_price(each, market) for each in subjects))


def _price(resource: Resource, market: Market) -> ResourceEstimate:
    try:
        return price(resource, market)
    except InputError as error:
        reason = str(error).removeprefix(f"{resource.urn}: ")
        return ResourceEstimate(resource=resource, unknown=(UnknownInput(path="inputs", reason=reason),))
