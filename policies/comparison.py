"""Two estimates side by side: what the second costs beyond the first, resource by resource."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from policies.changes import Op, SourceKind
from policies.errors import InputError
from policies.estimate.change import ChangedResource, ChangeEstimate
from policies.estimate.model import Estimate, ResourceEstimate
from policies.exit_codes import ExitCode
from policies.prices.book import PriceBook
from policies.report.stack import StackReport


@final
@dataclass(frozen=True, kw_only=True)
class Side:
    """One of two stacks that are compared: what will stand, and what its source does not show."""

    name: str
    after: Estimate
    before: Estimate | None = None
    """What stands, where the source is a preview or a state."""
    hidden: int = 0
    """Resources that stand and that the source does not show."""
    possible: tuple[ResourceEstimate, ...] = ()
    """What interrupted creations may cost, outside the total."""
    notes: tuple[str, ...] = ()
    """What its reader noted."""
    project: str = ""
    stack: str = ""
    """Empty where the source does not say."""


def compare(first: Side, second: Side) -> ChangeEstimate:
    """The change that leads from the first to the second.

    What a preview hides stands unchanged, so the other side, which says what stands in the same stack, completes it.
    Raises InputError for different currencies, and where nothing can complete a preview that hides resources.
    """
    if first.after.currency != second.after.currency:
        raise InputError(
            f"{first.name} is in {first.after.currency} and {second.name} in {second.after.currency}; "
            "price both with one book"
        )
    one, two = _completed(first, second), _completed(second, first)
    hidden = min(first.hidden, second.hidden)  # what one side shows is no longer hidden on the other
    return ChangeEstimate(
        resources=tuple(_pairs(one, two)), before=one, after=two, hidden=hidden, possible=second.possible
    )


def comparison_report(
    first: Side,
    second: Side,
    book: PriceBook,
    as_of: datetime.date,
    *,
    usage: tuple[str, ...],
    allow_stale: bool = False,
) -> StackReport:
    """What is to be said of `compare`: no rule is run, both sides are shown as they are.

    The verdict is UNDECIDED where the difference is not exact, or rests on stale prices (unless `allow_stale`).
    """
    change = compare(first, second)
    decided = change.exact and (change.fresh or allow_stale)
    return StackReport(
        project=second.project or first.project,
        stack=second.stack or first.stack or second.name,
        kind=SourceKind.PREVIEW,
        place=f"{first.name} {second.name}",
        change=change,
        book_as_of=book.as_of,
        book_sha256=book.sha256,
        as_of=as_of,
        usage=usage,
        verdict=ExitCode.FINE if decided else ExitCode.UNDECIDED,
        notes=tuple(f"{side.name}: {note}" for side in (first, second) for note in side.notes),
    )


def _completed(side: Side, other: Side) -> Estimate:
    """`side` with what it hides and the other shows, as that stands."""
    if not side.hidden:
        return side.after
    if other.before is None or (side.project, side.stack) != (other.project, other.stack):
        raise InputError(_incomparable(side, other))
    shown = {*_by_key(side.after), *(_by_key(side.before) if side.before else ())}
    found = tuple(each for key, each in _by_key(other.before).items() if key not in shown)
    return replace(side.after, resources=(*side.after.resources, *found))


def _incomparable(side: Side, other: Side) -> str:
    """Why `other` cannot complete `side`, and the way out."""
    many = "1 resource" if side.hidden == 1 else f"{side.hidden:,} resources"
    if other.before is None:
        why = f"{other.name} does not say what stands"
    else:
        why = f"{side.name} is of {side.project}/{side.stack} and {other.name} of {other.project}/{other.stack}"
    return (
        f"{side.name} hides {many} that do not change, and {why}: what is hidden would be missing from the "
        "difference.\n  Make the preview with: pulumi preview --json --show-sames"
    )


def _pairs(one: Estimate, two: Estimate) -> Iterator[ChangedResource]:
    old, new = _by_key(one), _by_key(two)
    for key, was in old.items():
        if key not in new:
            yield ChangedResource(urn=was.resource.urn, op=Op.DELETE, before=was, after=None)
    for key, found in new.items():
        before = old.get(key)
        op = Op.CREATE if before is None else Op.SAME if _priced(before) == _priced(found) else Op.UPDATE
        yield ChangedResource(urn=found.resource.urn, op=op, before=before, after=found)


def _priced(found: ResourceEstimate) -> tuple[object, ...]:
    """What makes two prices the same: the lines and what is missing, whatever they are called or noted."""
    lines = tuple((line.item, line.quantity, line.unit, line.amount) for line in found.components)
    missing = tuple((part.item, part.reason) for part in found.unpriced)
    return lines, missing, tuple((part.path, part.reason) for part in found.unknown)


def _by_key(estimate: Estimate) -> Mapping[str, ResourceEstimate]:
    """By URN without the name of the stack, so that two stacks of one program can be compared."""
    return {found.resource.urn.partition("::")[2]: found for found in estimate.resources}
