"""The words of an estimate: components with a price, parts without one, and their sum."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import final

from policies.money import ZERO, Amount
from policies.resources import Resource


class Freshness(enum.Enum):
    """How far the age of a price can be trusted."""

    FRESH = "fresh"
    AGEING = "ageing"
    """Older than the warning age (30 days spot, 150 days otherwise): used, and said to be so."""
    STALE = "stale"
    """Older than the limit (45 days spot, 180 days otherwise): used, said to be so, and the estimate is not fresh."""
    UNDATED = "undated"
    """Without a date: counts as stale."""
    FUTURE = "future"
    """Of a later day than the one that ages are counted from: nobody can have seen it, so it counts as stale."""

    @property
    def trusted(self) -> bool:
        """Whether a budget may be judged on it without `--allow-stale`."""
        return self in (Freshness.FRESH, Freshness.AGEING)


@final
@dataclass(frozen=True, kw_only=True)
class CostComponent:
    """One line of a bill: so much of one item at one unit price."""

    name: str
    """What a reader calls it: `throughput`, `TPU v6e chip, spot`."""
    item: str
    """The item of the price book: `disk.hyperdisk-ml.throughput`."""
    quantity: Decimal
    """In `unit`; for things that bill by usage, of one month."""
    unit: str
    """The pricing unit of the book: `chip-hour`, `GiB-month`, `GiB`."""
    unit_price: Decimal
    """List price of one unit; of graduated tiers, the first one that bills."""
    amount: Amount
    """What it comes to."""
    freshness: Freshness = Freshness.FRESH
    """Whether the price is still to be trusted."""
    as_of: datetime.date | None = None
    """Date of the price; None where the book has none."""
    note: str = ""
    """The reason behind a doubt, or what the reader should know: `billed whether read or not`."""
    spot: bool = False
    """Whether the price is one of spot capacity."""


@final
@dataclass(frozen=True, kw_only=True)
class Unpriced:
    """A quantity that bills and that the book has no price for. Never counted as 0: the total is a lower bound."""

    item: str
    """The item that was looked up."""
    reason: str
    """Which lookup failed, in words: `no spot price for tpu.v6e.chip in us-east5-b (book of 2026-11-01)`."""
    quantity: Decimal | None = None
    """How much of it, where that is known."""
    unit: str = ""
    """Its unit; empty where the quantity is not known."""


@final
@dataclass(frozen=True, kw_only=True)
class UnknownInput:
    """An input that decides the price and that nobody can see yet."""

    path: str
    """The input: `bootDisk.initializeParams.size`."""
    reason: str
    """`known after the apply`, `secret`, and what depends on it."""


@final
@dataclass(frozen=True, kw_only=True)
class ResourceEstimate:
    """What one resource costs."""

    resource: Resource
    location: str = ""
    """Zone, region or multi-region that its prices were looked up in; `global`; empty where it is not known."""
    title: str = ""
    """What it is, in a few words for a table: `v6e-8 · 1 host · 8 chips · spot`."""
    components: tuple[CostComponent, ...] = ()
    unknown: tuple[UnknownInput, ...] = ()
    unpriced: tuple[Unpriced, ...] = ()
    free: str = ""
    """Why it costs nothing; empty where it bills. A free resource has no components."""
    notes: tuple[str, ...] = ()
    """What the reader should know that belongs to no component."""

    @cached_property
    def amount(self) -> Amount:
        """The sum of the components: a lower bound unless `complete`."""
        return total(component.amount for component in self.components)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing from `amount`."""
        return not self.unknown and not self.unpriced

    @property
    def nothing_known(self) -> bool:
        """Whether not even a lower bound can be given."""
        return not self.complete and not self.components


@final
@dataclass(frozen=True, kw_only=True)
class OneOff:
    """What something costs once, outside the monthly total: the hydration of a model version."""

    name: str
    urn: str
    """The resource that causes it."""
    lines: tuple[CostComponent, ...]
    """`amount.per_month` of a line is the price of the one occurrence."""
    unpriced: tuple[Unpriced, ...] = ()
    note: str = ""

    @cached_property
    def cost(self) -> Decimal:
        """The sum of the lines, in the currency of the book."""
        return total(line.amount for line in self.lines).monthly


@final
@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a stack costs."""

    currency: str
    resources: tuple[ResourceEstimate, ...]
    """In the order of the stack; the free ones too, without components, the stack and providers left out."""
    one_off: tuple[OneOff, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def amount(self) -> Amount:
        """The total; a lower bound unless `complete`."""
        return total(resource.amount for resource in self.resources)

    @property
    def complete(self) -> bool:
        """Whether every billable part has a price and every deciding input is known."""
        return all(resource.complete for resource in self.resources)

    @property
    def nothing_known(self) -> bool:
        """Whether not even a lower bound can be given."""
        return not self.complete and not any(resource.components for resource in self.resources)

    @property
    def fresh(self) -> bool:
        """Whether every price that the total rests on is dated and young enough."""
        return not self.doubtful

    @cached_property
    def doubtful(self) -> tuple[CostComponent, ...]:
        """The components whose price is stale or undated. At quantity 0 a price decides nothing."""
        lines = (component for resource in self.resources for component in resource.components)
        return tuple(line for line in lines if line.quantity and not line.freshness.trusted)


def total(amounts: Iterable[Amount]) -> Amount:
    """The exact sum."""
    found = tuple(amounts)
    if len(found) < 2:  # most resources have one line
        return found[0] if found else ZERO
    # Numerators are added by denominator, of which a book has few: adding two fractions looks for a common divisor.
    sums: dict[int, int] = {}
    for amount in found:
        numerator, denominator = amount.per_month.as_integer_ratio()
        sums[denominator] = sums.get(denominator, 0) + numerator
    first, *others = (Fraction(above, below) for below, above in sums.items())
    return Amount(sum(others, first))
