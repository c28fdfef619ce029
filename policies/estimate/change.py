"""What a change costs: each resource before and after, and the sums, exact to the last digit."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, final

from policies.changes import Op, Reading, SourceKind
from policies.estimate.engine import bills, market_of, price_or_reason, price_side, unmatched_usage
from policies.estimate.model import Estimate, ResourceEstimate
from policies.money import ZERO, Amount
from policies.prices.book import PriceBook
from policies.usage import Usage

SAID_BY: Final = MappingProxyType({SourceKind.PROGRAM: Op.CREATE, SourceKind.STATE: Op.SAME})
"""The op of a resource that a source names without a step."""


@final
@dataclass(frozen=True, kw_only=True)
class ChangedResource:
    """One resource on both sides of a change."""

    urn: str
    op: Op
    before: ResourceEstimate | None
    """None where it does not stand yet, or where the source has no before."""
    after: ResourceEstimate | None
    """None where it will be gone."""

    @cached_property
    def delta(self) -> Amount:
        """What the change adds; of what is not complete, the difference of the lower bounds."""
        return (self.after.amount if self.after else ZERO) - (self.before.amount if self.before else ZERO)


@final
@dataclass(frozen=True, kw_only=True)
class ChangeEstimate:
    """A stack, priced as it stands and as it will stand."""

    resources: tuple[ChangedResource, ...]
    """In the order of the source; the sum of their deltas is the delta of the totals."""
    after: Estimate
    """As it will stand; of a state, as it stands."""
    before: Estimate | None = None
    """As it stands; None where the source has no before."""
    hidden: int = 0
    """Resources that the source does not show: then the totals are those of the change, not of the stack."""
    possible: tuple[ResourceEstimate, ...] = ()
    """What interrupted creations may cost, outside every total."""

    @cached_property
    def delta(self) -> Amount | None:
        """What the change adds to the stack; None where the source has no before."""
        return None if self.before is None else self.after.amount - self.before.amount

    @property
    def whole(self) -> bool:
        """Whether the totals are those of the stack: nothing is hidden."""
        return not self.hidden


def estimate_change(reading: Reading, usage: Usage, book: PriceBook, as_of: datetime.date) -> ChangeEstimate:
    """The price of both sides of what a source says. Pure and linear in the number of resources.

    Each side is priced as a whole, since the price of a resource may rest on another: an address that loses its VM
    changes its price without a step of its own. `as_of` is the day from which the age of a price is counted.
    """
    market = market_of(reading.after, usage, book, as_of)
    after = price_side(market)
    before = None if reading.before is None else price_side(market_of(reading.before, usage, book, as_of))
    if not reading.hidden:
        unmatched = unmatched_usage(usage, _names(reading, before, after))
        after = replace(after, notes=(*unmatched, *after.notes))
    return ChangeEstimate(
        resources=tuple(_resources(reading, before, after)),
        after=after,
        before=before,
        hidden=reading.hidden,
        possible=tuple(price_or_reason(each, market) for each in reading.possible if bills(each)),
    )


def _resources(reading: Reading, before: Estimate | None, after: Estimate) -> Iterator[ChangedResource]:
    old = {found.resource.urn: found for found in before.resources} if before else {}
    new = {found.resource.urn: found for found in after.resources}
    ops = {change.urn: change.op for change in reading.changes}
    for urn in dict.fromkeys((*ops, *new, *old)):
        if urn in old or urn in new:
            op = ops.get(urn) or SAID_BY.get(reading.kind) or _op(in_old=urn in old, in_new=urn in new)
            yield ChangedResource(urn=urn, op=op, before=old.get(urn), after=new.get(urn))


def _op(*, in_old: bool, in_new: bool) -> Op:
    """The step of a resource of which the source has the sides and no step."""
    if in_old and in_new:
        return Op.SAME
    return Op.CREATE if in_new else Op.DELETE


def _names(reading: Reading, before: Estimate | None, after: Estimate) -> Iterator[str]:
    for side in (before, after):
        yield from (found.resource.name for found in side.resources) if side else ()
    yield from (resource.name for resource in reading.possible)
