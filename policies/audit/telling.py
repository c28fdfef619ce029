"""From what an auditor found to a verdict: what it costs, since when, and what may be said of a half-seen world."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeAlias

from policies.audit.context import Context
from policies.audit.model import AuditFinding, Remedy, RemedyKind, Since, Verdict, VerdictKind
from policies.audit.record import Metric, Part
from policies.audit.subjects import Subject
from policies.errors import InputError
from policies.estimate.model import ResourceEstimate
from policies.money import HOURS_PER_MONTH, ZERO, Amount, decimal_of

Told: TypeAlias = Verdict | AuditFinding
_COSTS_NOTHING: Final = (VerdictKind.IN_USE, VerdictKind.WAITING)
"""Verdicts that say by themselves that nothing is wasted."""
_TICK: Final = datetime.timedelta(microseconds=1)
_HOUR: Final = datetime.timedelta(hours=1)


def tell(
    context: Context,
    subject: Subject,
    kind: VerdictKind,
    message: str,
    *,
    waste: Amount | None = None,
    since: datetime.datetime | None = None,
    confidence: Since = Since.UNKNOWN,
    remedy: Remedy | None = None,
) -> Verdict:
    """The verdict on a subject, with what was wasted from `since` to the time of the record."""
    waste = ZERO if waste is None and kind in _COSTS_NOTHING else waste
    known = waste is not None and since is not None and confidence is not Since.UNKNOWN
    return Verdict(
        resource=subject.resource,
        type=subject.type,
        location=subject.location,
        kind=kind,
        waste=waste,
        since=since,
        since_confidence=confidence if since else Since.UNKNOWN,
        wasted_so_far=spent(waste, since, context.now) if known and waste is not None and since is not None else None,
        remedy=remedy,
        message=message,
        labels=subject.labels,
    )


def spent(rate: Amount, start: datetime.datetime, end: datetime.datetime) -> Decimal:
    """What a rate comes to between two times; nothing where the end is not after the start. Exact, divided once."""
    hours = Fraction(max(0, (end - start) // _TICK), _HOUR // _TICK)
    return decimal_of(rate.per_month * hours / HOURS_PER_MONTH)


def bill_of(found: ResourceEstimate) -> tuple[Amount | None, str]:
    """What a resource bills, or None and why that cannot be said."""
    if found.complete:
        return found.amount, ""
    reasons = [f"{each.path}: {each.reason}" for each in found.unknown] + [each.reason for each in found.unpriced]
    return None, reasons[0]


def priced(message: str, why: str) -> str:
    """A message with the reason why there is no money beside it."""
    return f"{message}; its price is not known: {why}" if why else message


def remedy(kind: RemedyKind, text: str, saving: Amount | None) -> Remedy:
    """A remedy in a few words."""
    return Remedy(kind=kind, text=text, monthly_saving=saving)


def if_seen(context: Context, verdict: Verdict, *needs: Part | Metric) -> Verdict:
    """The verdict, or that it cannot be said: from a half-seen part nothing is idle, and nothing is proposed."""
    unseen = next((need for need in needs if not context.record.seen(need)), None)
    if unseen is None:
        return verdict
    how = "could not be read whole" if context.record.failed(unseen) else "was not asked for"
    return replace(
        verdict,
        kind=VerdictKind.UNKNOWN_STATE,
        waste=None,
        since=None,
        since_confidence=Since.UNKNOWN,
        wasted_so_far=None,
        remedy=None,
        message=f"{unseen.value} {how}, or it would be {verdict.kind.value}: {verdict.message}",
    )


def each(context: Context, part: Part, look: Callable[[Subject], Iterable[Told]]) -> Iterator[Told]:
    """What `look` says of every resource of a part; one whose fields cannot be read is in an unknown state."""
    for item in context.record.items(part):
        subject = Subject(part=part, item=item)
        try:
            yield from tuple(look(subject))
        except InputError as error:
            yield unreadable(context, subject, error)


def unreadable(context: Context, subject: Subject, error: InputError) -> Verdict:
    """The verdict on a resource whose fields make no sense."""
    said = str(error).partition(f"{subject.name}: ")
    return tell(context, subject, VerdictKind.UNKNOWN_STATE, f"cannot be read: {said[2] or said[0]}")


def readable(part_subjects: Iterable[Subject], look: Callable[[Subject], Iterable[Told]]) -> Iterator[Told]:
    """As `each`, for mistakes only: what cannot be read is told by whoever judges it."""
    for subject in part_subjects:
        try:
            yield from tuple(look(subject))
        except InputError:
            continue


def subjects(context: Context, *parts: Part) -> Iterator[Subject]:
    """All resources of some parts."""
    for part in parts:
        for item in context.record.items(part):
            yield Subject(part=part, item=item)


def day(time: datetime.datetime, now: datetime.datetime) -> str:
    """`11-02`, as messages show a day; with the year where it is not that of `now`."""
    there = time.astimezone(now.tzinfo)
    return f"{there:%m-%d}" if there.year == now.year else f"{there:%Y-%m-%d}"


def moment(time: datetime.datetime) -> str:
    """`11-02 14:05Z`, as messages show a time."""
    return time.astimezone(datetime.UTC).strftime("%m-%d %H:%MZ")


def length(span: datetime.timedelta) -> str:
    """`45 minutes`, `3.5 hours`, `12 days`."""
    minutes = max(0, span // datetime.timedelta(minutes=1))
    if minutes < 120:
        return f"{minutes} minutes"
    if minutes < 48 * 60:
        return f"{Fraction(minutes, 60).__float__():.3g} hours"
    return f"{minutes // (24 * 60)} days"


def money(amount: Amount) -> str:
    """`144.00 /month`."""
    return f"{amount.monthly:,.2f} /month"


def many(number: int, one: str, more: str = "") -> str:
    """`1 disk`, `2 disks`."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"
