"""What counts against a budget: the sum, what it comes to at least, its parts, and what keeps it from being final."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from policies.estimate.change import ChangedResource, ChangeEstimate
from policies.estimate.engine import TPU_ITEMS
from policies.estimate.model import CostComponent, ResourceEstimate, total
from policies.money import ZERO, Amount, dearness
from policies.resources import Opaque, ResourceSet
from policies.rules.labels import label
from policies.rules.machines import description_of

SHOW_ALL: Final = "pulumi preview --json --show-sames or pulumi stack export shows them"
REFRESH: Final = "spotrail prices refresh"
NAMED: Final = 3
"""Resources that a doubt names; the others are counted."""


@final
@dataclass(frozen=True, kw_only=True)
class Part:
    """One resource of a sum."""

    name: str
    amount: Amount
    slice: bool
    """Whether it bills TPU chips."""


@final
@dataclass(frozen=True, kw_only=True)
class Sum:
    """What counts against one budget."""

    amount: Amount
    """By all prices there are."""
    floor: Amount | None
    """What it comes to at least, whatever the missing and the stale prices are; None where nobody can say."""
    parts: tuple[Part, ...]
    """Largest first."""
    whole: bool
    """Whether nothing is missing from `amount`."""
    fresh: bool
    """Whether it rests on no stale price."""
    bound: bool = True
    """Whether what is missing can only add to it."""
    doubts: tuple[str, ...] = ()
    """What keeps it from being final on either side of a limit."""
    doubts_within: tuple[str, ...] = ()
    """What more does while it is within the limit."""
    doubts_over: tuple[str, ...] = ()
    """What more does while it is over the limit."""


def sum_of_total(change: ChangeEstimate, allow_stale: bool) -> Sum:
    """All that will stand."""
    return _standing(change.after.resources, change.hidden, (), allow_stale)


def sum_of_type(token: str, change: ChangeEstimate, allow_stale: bool) -> Sum:
    """All of one type that will stand."""
    found = [each for each in change.after.resources if each.resource.type == token]
    return _standing(found, change.hidden, (), allow_stale)


def sum_of_label(key: str, value: str, change: ChangeEstimate, resources: ResourceSet, allow_stale: bool) -> Sum:
    """All that will stand and carries a label; the hosts of a group carry those of its template."""
    found, hidden = [], []
    for each in change.after.resources:
        described = description_of(each.resource, resources) or each.resource
        carried = label(described, key, resources)
        if isinstance(carried, Opaque) and not each.free:
            hidden.append(f"{each.resource.name}: label {key} is {carried.value}")
        elif carried == value:
            found.append(each)
    return _standing(found, change.hidden, _few(hidden), allow_stale)


def sum_of_change(change: ChangeEstimate, allow_stale: bool) -> Sum:
    """What the change adds. What stays as it is counts for nothing, though its price be missing or stale."""
    if change.before is None:
        none = "the source shows no change: give it a pulumi preview --json"
        return Sum(amount=ZERO, floor=None, parts=(), whole=False, fresh=True, bound=False, doubts=(none,))
    moved = [each for each in change.resources if each.delta or not each.exact]
    open_ones = [each for each in moved if not each.exact]
    unsure_before = [each.before for each in open_ones if each.before and not each.before.complete]
    unsure_after = [each.after for each in open_ones if each.after and not each.after.complete]
    # Of all: what costs the same by a stale price and by a fresh one may not cost the same in truth.
    stale_before, stale_after = _stale_of(change.resources, allow_stale)
    amount = total(each.delta for each in moved)
    firm = not unsure_before and not stale_before
    return Sum(
        amount=amount,
        floor=amount - total(line.amount for line in stale_after) if firm else None,
        parts=_parts((each.after or each.before, each.delta) for each in moved),
        whole=not open_ones,
        fresh=not stale_before and not stale_after,
        bound=not unsure_before,
        doubts=_by_age((*stale_before, *stale_after)),
        doubts_within=_reasons(unsure_after),
        doubts_over=_reasons(unsure_before),
    )


def fitting(found: Sum, limit: Amount) -> int:
    """How many of the largest slices less would keep the limit; 0 where none are needed or all are not enough."""
    rest, taken = found.amount, 0
    for part in found.parts:
        if rest <= limit:
            return taken
        if part.slice and part.amount > ZERO:
            rest, taken = rest - part.amount, taken + 1
    return taken if rest <= limit else 0


def _standing(found: Sequence[ResourceEstimate], unseen: int, more: tuple[str, ...], allow_stale: bool) -> Sum:
    stale = [line for each in found for line in each.components if _is_stale(line, allow_stale)]
    missing = [each for each in found if not each.complete]
    amount = total(each.amount for each in found)
    return Sum(
        amount=amount,
        floor=amount - total(line.amount for line in stale),
        parts=_parts((each, each.amount) for each in found if not each.free),
        whole=not (missing or unseen or more),
        fresh=not stale,
        doubts=_by_age(stale),
        doubts_within=(*_unseen(unseen), *more, *_reasons(missing)),
    )


def _parts(found: Iterable[tuple[ResourceEstimate | None, Amount]]) -> tuple[Part, ...]:
    parts = [
        Part(
            name=each.resource.name,
            amount=amount,
            slice=any(line.item.startswith(TPU_ITEMS) for line in each.components),
        )
        for each, amount in found
        if each
    ]
    place = dearness(part.amount for part in parts)
    return tuple(sorted(parts, key=lambda part: place(part.amount)))


def _is_stale(line: CostComponent, allow_stale: bool) -> bool:
    return bool(line.quantity) and not line.freshness.trusted and not allow_stale


def _stale_of(
    resources: Iterable[ChangedResource], allow_stale: bool
) -> tuple[tuple[CostComponent, ...], tuple[CostComponent, ...]]:
    """The stale lines of either side that the other side does not have alike."""
    old: list[CostComponent] = []
    new: list[CostComponent] = []
    for each in resources:
        before, after = (side.components if side else () for side in (each.before, each.after))
        old += (line for line in before if line not in after and _is_stale(line, allow_stale))
        new += (line for line in after if line not in before and _is_stale(line, allow_stale))
    return tuple(old), tuple(new)


def _unseen(count: int) -> Iterator[str]:
    if count:
        yield f"{count:,} unchanged {'resource is' if count == 1 else 'resources are'} not shown; {SHOW_ALL}"


def _reasons(missing: Sequence[ResourceEstimate]) -> tuple[str, ...]:
    """What has no price or is not known, each resource with its first reason, and what helps."""
    reasons = _few([f"{each.resource.name}: {_reason(each)}" for each in missing])
    return (*reasons, REFRESH) if any(each.unpriced for each in missing) else reasons


def _reason(found: ResourceEstimate) -> str:
    return found.unpriced[0].reason if found.unpriced else f"{found.unknown[0].path}: {found.unknown[0].reason}"


def _few(reasons: Sequence[str]) -> tuple[str, ...]:
    rest = len(reasons) - NAMED
    return (*reasons[:NAMED], f"and {rest:,} more") if rest > 0 else tuple(reasons)


def _by_age(stale: Sequence[CostComponent]) -> tuple[str, ...]:
    if not stale:
        return ()
    items = _few(list(dict.fromkeys(line.item for line in stale)))
    worth = total(line.amount for line in stale).monthly
    return (f"{worth:,.2f} /month rest on stale prices ({', '.join(items)}): {REFRESH}, or --allow-stale",)
