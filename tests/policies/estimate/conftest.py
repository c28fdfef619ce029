"""A small book of prices and the shortest way from inputs to an estimate."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from policies.estimate.engine import estimate, price
from policies.estimate.market import Market
from policies.estimate.model import Estimate, ResourceEstimate
from policies.prices.book import PriceBook, load_book
from policies.resources import Resource, ResourceError, ResourceOptions, ResourceSet, Value
from policies.usage import Usage

AS_OF = datetime.date(2026, 11, 15)


@pytest.fixture(scope="session")
def book() -> PriceBook:
    return load_book(Path(__file__).with_name("book.csv"))


@pytest.fixture(scope="session")
def make() -> Callable[..., Resource]:
    """Makes a resource of the stack `dev` of the project `p`; keyword arguments are its options."""

    def made(
        type: str,
        name: str = "it",
        inputs: Mapping[str, Value] | None = None,
        outputs: Mapping[str, Value] | None = None,
        **options: Any,
    ) -> Resource:
        return Resource(
            urn=f"urn:pulumi:dev::p::{type}::{name}",
            type=type,
            name=name,
            inputs=inputs or {},
            outputs=outputs or {},
            options=ResourceOptions(**options),
        )

    return made


@pytest.fixture(scope="session")
def price_stack(book: PriceBook) -> Callable[..., Estimate]:
    """Prices resources; keyword arguments are the usage of the resource of that name."""

    def priced(*resources: Resource, **usage: Mapping[str, str]) -> Estimate:
        entries = {name: {field: Decimal(value) for field, value in fields.items()} for name, fields in usage.items()}
        return estimate(ResourceSet(resources), Usage(entries=entries), book, AS_OF)

    return priced


@pytest.fixture(scope="session")
def price_first(price_stack: Callable[..., Estimate]) -> Callable[..., ResourceEstimate]:
    """Prices a stack and returns the estimate of its first resource."""

    def priced(*resources: Resource, **usage: Mapping[str, str]) -> ResourceEstimate:
        return price_stack(*resources, **usage).resources[0]

    return priced


@pytest.fixture(scope="session")
def refusal_of(book: PriceBook, price_first: Callable[..., ResourceEstimate]) -> Callable[[Resource], str]:
    """What the price of a resource is refused with; its estimate must be unknown, with the same words as the reason."""

    def refused(resource: Resource) -> str:
        market = Market(resources=ResourceSet((resource,)), usage=Usage(), book=book, as_of=AS_OF)
        with pytest.raises(ResourceError) as caught:
            price(resource, market)
        found = price_first(resource)
        assert found.nothing_known
        assert [f"{resource.urn}: {part.reason}" for part in found.unknown] == [str(caught.value)]
        return str(caught.value)

    return refused
