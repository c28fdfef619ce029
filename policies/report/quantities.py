"""How much of an item a month takes, as formats write it that know no price by the hour."""

from __future__ import annotations

from fractions import Fraction

from policies.estimate.market import HOURLY
from policies.estimate.model import CostComponent, Unpriced
from policies.money import HOURS_PER_MONTH


def of_a_month(part: CostComponent) -> Fraction:
    """Units a month: of what bills by the hour, the hours that it bills for, be they all or a share of the month."""
    if part.unit in HOURLY and part.unit_price and part.amount:
        return part.amount.per_month / Fraction(part.unit_price)
    return Fraction(part.quantity) * _hours(part.unit)


def without_price(part: Unpriced) -> Fraction | None:
    """Units a month of what has no price; None where the quantity is not known either."""
    return None if part.quantity is None else Fraction(part.quantity) * _hours(part.unit)


def _hours(unit: str) -> int:
    return HOURS_PER_MONTH if unit in HOURLY else 1
