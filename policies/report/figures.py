"""How figures are written for people: thousands apart, so many places, the reason where there is none."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

CENT: Final = Decimal("0.01")
HOURLY: Final = Decimal("0.0001")
UNIT: Final = Decimal("0.000001")


def money(value: Decimal, step: Decimal = CENT) -> str:
    """`3,461.13`: rounded half-even to `step`."""
    return f"{value.quantize(step, rounding=ROUND_HALF_EVEN):,f}"


def quantity(value: Decimal) -> str:
    """`1,200` or `107.374`: whole where it is, else at most three places."""
    shown = f"{value.quantize(Decimal('0.001')):,f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def counted(number: int, noun: str) -> str:
    """`network`, `4 service accounts`, `2 resource policies`."""
    if number == 1:
        return noun
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{number:,} {noun}s"


def rules_passed(number: int) -> str:
    """`1 rule passed`, `23 rules passed`."""
    return f"{number} rule{'' if number == 1 else 's'} passed"
