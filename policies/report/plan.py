"""What `spotrail plan` has to say, as plain data: every report of a plan is a function of this."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import final

from policies.estimate.engine import SpotComparison
from policies.estimate.model import Estimate
from policies.money import decimal_of
from policies.rules.model import Finding
from policies.usage import Usage, field_names


@final
@dataclass(frozen=True, kw_only=True)
class QuotaNeed:
    """So much of a quota that a stack needs, beside what a new project has of it."""

    metric: str
    """What is counted, for a reader: `v6e spot chips`."""
    location: str
    """Zone or region of the pool."""
    needed: int
    default: int | None
    """What a new project has; None where that is not known."""
    note: str = ""
    """What to know before asking for more, such as the id of the quota."""

    @property
    def enough(self) -> bool:
        """Whether a new project has what is needed."""
        return self.default is not None and self.default >= self.needed


@final
@dataclass(frozen=True, kw_only=True)
class PlanReport:
    """The price of a stack before it exists, and everything that belongs beside it."""

    project: str
    stack: str
    place: str
    """Where its TPUs are, for a heading: `us-central1-b · spot`."""
    estimate: Estimate
    comparison: SpotComparison | None = None
    """Its spot chips beside the same chips on demand; None where nothing is on spot."""
    findings: tuple[Finding, ...] = ()
    """What the rules found, worst first; the waived ones are among them."""
    passed: tuple[str, ...] = ()
    """Titles of the rules that found nothing."""
    quotas: tuple[QuotaNeed, ...] = ()
    book_as_of: datetime.date | None
    """Day of the price book; None where it has none."""
    book_sha256: str
    usage: tuple[str, ...] = ()
    """What was assumed, as `usage_words` puts it."""
    as_of: datetime.date
    """The day from which ages are counted."""
    next_steps: tuple[str, ...] = ()
    """Commands that may come next."""


def usage_words(usage: Usage) -> tuple[str, ...]:
    """What is assumed of a stack: first the fields that are not 0 for all, then what each entry says."""
    return tuple(_words(usage))


def _words(usage: Usage) -> Iterator[str]:
    values = {name: getattr(usage.defaults, name) for name in field_names()}
    yield f"{_listed((name, value) for name, value in values.items() if value)}; all other usage is 0"
    for name, entry in usage.entries.items():
        yield f"{name}: {_listed(entry.items())}"


def _listed(pairs: Iterable[tuple[str, Decimal]]) -> str:
    return ", ".join(f"{name} {value:,f}" for name, value in pairs) or "nothing set"


def monthly_sum_is_rounded(estimate: Estimate) -> bool:
    """Whether the resources' prices in cents miss the total in cents: the total is made of the exact parts."""
    cents = Decimal("0.01")
    parts = sum((decimal_of(found.amount.per_month).quantize(cents) for found in estimate.resources), Decimal(0))
    return parts != estimate.amount.monthly.quantize(cents)
