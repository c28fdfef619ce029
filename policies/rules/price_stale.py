"""Prices that are too old to judge a budget on: spot moved by half within months."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Final

from policies.estimate.model import CostComponent, Freshness, total
from policies.money import dearness
from policies.resources import STACK_TYPE, Resource
from policies.rules.bills import a_month
from policies.rules.model import Context, Rule, Severity, Violation


def _check(stack: Resource, context: Context) -> Iterator[Violation]:
    # At quantity 0 a price decides nothing.
    lines = [line for each in context.estimate.resources for line in each.components if line.quantity]
    stale = [line for line in lines if not line.freshness.trusted]
    ageing = [line for line in lines if line.freshness is Freshness.AGEING]
    if stale:
        yield Violation(message=f"{_rests_on(stale)} stale prices: {_by_age(stale, context.as_of)}")
    if ageing:
        said = f"{_rests_on(ageing)} ageing prices: {_by_age(ageing, context.as_of)}"
        yield Violation(message=said, severity=Severity.INFO)


def _rests_on(lines: Sequence[CostComponent]) -> str:
    return f"{a_month(total(line.amount for line in lines))} rest on"


def _by_age(lines: Sequence[CostComponent], as_of: datetime.date) -> str:
    """The items under the age of their price, those with the most money first."""
    groups: dict[str, dict[str, None]] = {}
    place = dearness(line.amount for line in lines)
    for line in sorted(lines, key=lambda line: place(line.amount)):
        groups.setdefault(_age(line, as_of), {})[f"{line.item} (spot)" if line.spot else line.item] = None
    return "; ".join(f"{', '.join(items)} {age}" for age, items in groups.items())


def _age(line: CostComponent, as_of: datetime.date) -> str:
    if line.as_of is None:
        return "without a date"
    age = (as_of - line.as_of).days
    return f"of {line.as_of}, {age} days old" if age >= 0 else f"of {line.as_of}, which is later than {as_of}"


RULE: Final = Rule(
    id="PRICE-STALE",
    title="Prices are dated and young: spot 45 days, the rest 180",
    severity=Severity.WARNING,
    applies_to=(STACK_TYPE,),
    remediation="Give a fresh book with --prices, or take the total as an indication.",
    url="https://cloud.google.com/billing/docs/how-to/get-pricing-information-api",
    check=_check,
)
