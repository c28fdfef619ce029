"""What a change costs: each resource before and after, and the sums, exact to the last digit."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, final

from policies.changes import Op, Reading, SourceKind
from policies.estimate.engine import bills, doubts, market_of, price_or_reason, price_side, unmatched_usage
from policies.estimate.model import Estimate, ResourceEstimate
from policies.money import ZERO, Amount, plain
from policies.prices.book import PriceBook
from policies.usage import Usage

SAID_BY: Final = MappingProxyType({SourceKind.PROGRAM: Op.CREATE, SourceKind.STATE: Op.SAME})
"""The op of a resource that a source names without a step."""
TO_SEE_ALL: Final = "Run pulumi preview --json --show-sames, or read a pulumi stack export."


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

    @property
    def exact(self) -> bool:
        """Whether nothing is missing from `delta`: both sides are complete, or lack the same amount of the same."""
        sides = [side for side in (self.before, self.after) if side is not None]
        if all(side.complete for side in sides):
            return True
        if len({(side.location, side.unknown, side.unpriced) for side in sides}) != 1 or len(sides) != 2:
            return False
        return self.op is Op.SAME or not (sides[0].unknown or any(part.quantity is None for part in sides[0].unpriced))


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

    @cached_property
    def exact(self) -> bool:
        """Whether nothing is missing from `delta`."""
        return self.before is not None and all(each.exact for each in self.resources)

    @property
    def nothing_known(self) -> bool:
        """Whether not even the difference of two lower bounds can be given: no before, or a side without a figure."""
        if self.before is None:
            return True
        return not self.exact and (self.before.nothing_known or self.after.nothing_known)

    @property
    def whole(self) -> bool:
        """Whether the totals are those of the stack: nothing is hidden."""
        return not self.hidden

    @property
    def complete(self) -> bool:
        """Whether the total of what will stand is exact and that of the whole stack."""
        return self.whole and self.after.complete

    @property
    def fresh(self) -> bool:
        """Whether every price of both sides is dated and young enough."""
        return self.after.fresh and (self.before is None or self.before.fresh)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures should know, each once."""
        old = () if self.before is None else doubts(self.before)
        return tuple(dict.fromkeys((*self._limits(), *self.after.notes, *old)))

    def _limits(self) -> Iterator[str]:
        if self.hidden:
            many = "1 unchanged resource" if self.hidden == 1 else f"{self.hidden:,} unchanged resources"
            yield f"{many} not shown: the total of the stack is not known. {TO_SEE_ALL}"
        if self.before is not None and not self.exact:
            yield "prices or inputs are missing on a side of the change: the difference is that of two lower bounds"
        for each in self.possible:
            worth = "at an unknown price" if each.nothing_known else f"{plain(each.amount.monthly)} a month"
            least = "" if each.complete or each.nothing_known else "at least "
            yield (
                f"possible {least}{worth}: interrupted while creating {each.resource.name}, "
                "which may exist and bill outside the total; look for it, then run pulumi refresh"
            )


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
