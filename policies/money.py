"""Exact money: a rate that is per hour and per month at once.

Some things are priced by the hour (chips, vCPUs), others by the month (GiB, MiB/s). A rate is kept as an exact
fraction per month of 730 hours, so sums add first and divide once, and what was exact in the book stays exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

HOURS_PER_MONTH: Final = 730
PLACES: Final = 12
KEPT: Final = 8192
"""Quotients that are kept: most resources of a large stack cost the same as many others."""


@final
@dataclass(frozen=True, order=True)
class Amount:
    """A rate of spending in the currency of the book."""

    per_month: Fraction = Fraction(0)
    """Exact, per month of 730 hours."""

    @classmethod
    def by_hour(cls, rate: Decimal | Fraction | int) -> Amount:
        """The amount that `rate` per hour comes to."""
        return cls(Fraction(rate) * HOURS_PER_MONTH)

    @classmethod
    def by_month(cls, rate: Decimal | Fraction | int) -> Amount:
        """The amount that `rate` per month comes to."""
        return cls(Fraction(rate))

    @property
    def hourly(self) -> Decimal:
        """Per hour: exact where a decimal can be, else to 12 places, half-even."""
        numerator, denominator = self.per_month.as_integer_ratio()
        return _quotient(numerator, denominator * HOURS_PER_MONTH)

    @property
    def daily(self) -> Decimal:
        """Per day of 24 hours."""
        return decimal_of(self.per_month * 24 / HOURS_PER_MONTH)

    @property
    def monthly(self) -> Decimal:
        """Per month: exact where a decimal can be, else to 12 places, half-even."""
        return decimal_of(self.per_month)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.per_month + other.per_month)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.per_month - other.per_month)

    def __mul__(self, factor: Decimal | Fraction | int) -> Amount:
        return Amount(self.per_month * Fraction(factor))

    def __bool__(self) -> bool:
        return self.per_month != 0


ZERO: Final = Amount()


def dearness(amounts: Iterable[Amount]) -> Callable[[Amount], int]:
    """The key that sorts these amounts, the dearest first.

    Fractions are slow to compare, and of the amounts of a large stack few differ: those are compared once.
    """
    ratios = {amount.per_month.as_integer_ratio() for amount in amounts}
    dearest = sorted(ratios, key=lambda ratio: Fraction(*ratio), reverse=True)
    places = {ratio: place for place, ratio in enumerate(dearest)}
    return lambda amount: places[amount.per_month.as_integer_ratio()]


def decimal_of(value: Fraction) -> Decimal:
    """`value` as a Decimal: exact where its denominator is a product of twos and fives, else 12 places, half-even."""
    return _quotient(*value.as_integer_ratio())


@lru_cache(maxsize=KEPT)
def _quotient(above: int, below: int) -> Decimal:
    value = Fraction(above, below)
    denominator = value.denominator
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    # The text form is exact at any length, unlike a context's arithmetic.
    if rest == 1:
        places = max(twos, fives)
        return Decimal(f"{value.numerator * 10**places // denominator}e-{places}")
    # round() of a Fraction is exact and half-even.
    return Decimal(f"{round(value * 10**PLACES)}e-{PLACES}")


def plain(value: Decimal) -> str:
    """`value` as the decimal string of our JSON: no exponent, no trailing zeros, at least two places."""
    text = format(value, "f")
    whole, _, part = text.partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"
