"""The lines of a bill for weights, by the month: each is exact, or says which price the book does not have."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import final

from policies.estimate.model import Freshness
from policies.money import decimal_of
from policies.prices.book import MissingPrice, PriceBook, PriceModel


@final
@dataclass(frozen=True, kw_only=True)
class Line:
    """So much of one item in a month."""

    name: str
    item: str
    """Of the price book; empty for what costs nothing by itself."""
    quantity: Fraction
    unit: str
    unit_price: Decimal | None
    """None where the book has none."""
    monthly: Fraction | None
    by_start: bool = False
    """Whether it grows with the number of cold starts."""
    freshness: Freshness = Freshness.FRESH
    note: str = ""
    missing: MissingPrice | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Market:
    """Where lines get their prices."""

    book: PriceBook
    as_of: datetime.date

    def line(
        self,
        name: str,
        item: str,
        quantity: Fraction,
        location: str,
        *,
        unit: str,
        model: PriceModel = PriceModel.ON_DEMAND,
        share: Fraction = Fraction(1),
        by_start: bool = False,
        note: str = "",
    ) -> Line:
        """`quantity` of `item`, for that share of the month."""
        found = self.book.find(item, model, location)
        if isinstance(found, MissingPrice):
            return Line(
                name=name,
                item=item,
                quantity=quantity * share,
                unit=unit,
                unit_price=None,
                monthly=None,
                by_start=by_start,
                note=note,
                missing=found,
            )
        return Line(
            name=name,
            item=item,
            quantity=quantity * share,
            unit=found.unit,
            unit_price=found.unit_price,
            monthly=Fraction(found.cost(decimal_of(quantity))) * share,
            by_start=by_start,
            freshness=found.freshness(self.as_of),
            note=note,
        )


def free(name: str, quantity: Fraction, unit: str, note: str, *, by_start: bool = False) -> Line:
    """What is used and costs nothing by itself."""
    return Line(
        name=name,
        item="",
        quantity=quantity,
        unit=unit,
        unit_price=Decimal(0),
        monthly=Fraction(0),
        by_start=by_start,
        note=note,
    )


def total(lines: Iterable[Line]) -> Fraction:
    """What the lines with a price come to."""
    return sum((line.monthly for line in lines if line.monthly is not None), Fraction(0))
