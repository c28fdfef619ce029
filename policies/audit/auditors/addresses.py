"""External addresses that are reserved and that nothing uses: they bill twice what one in use does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.model import RemedyKind, VerdictKind
from policies.audit.pricing import UNUSED
from policies.audit.reading import shown, word
from policies.audit.record import Part
from policies.audit.subjects import Subject
from policies.audit.telling import Told, bill_of, day, each, if_seen, length, priced, remedy, tell
from policies.audit.ttl import created

_FINE: Final = ("IN_USE", "RESERVING")
_KINDS: Final = ("", "EXTERNAL", "INTERNAL")


def _look(context: Context) -> Iterator[Told]:
    yield from each(context, Part.ADDRESSES, lambda subject: _verdicts(context, subject))


def _verdicts(context: Context, subject: Subject) -> Iterator[Told]:
    status, kind = word(subject.item, "status"), word(subject.item, "addressType")
    if status in _FINE:
        return
    if status != UNUSED or kind not in _KINDS:
        field, found = ("status", status) if status != UNUSED else ("addressType", kind)
        message = f"{field} is {shown(found or subject.item.get(field))}, which spotrail does not know"
        yield tell(context, subject, VerdictKind.UNKNOWN_STATE, message)
        return
    estimate = context.pricing.estimate(Part.ADDRESSES, subject.item)
    if estimate.free:
        return
    made = created(subject.item)
    age = context.now - made
    if age < context.terms.grace:
        yield tell(context, subject, VerdictKind.TOO_NEW, f"reserved {length(age)} ago and not used yet")
        return
    cost, why = bill_of(estimate)
    ending = remedy(RemedyKind.RELEASE_ADDRESS, "release it", cost)
    message = priced(
        f"reserved since {day(made, context.now)}, nothing uses it; once released, its number is not to be had again",
        why,
    )
    found_idle = tell(context, subject, VerdictKind.ORPHANED, message, waste=cost, remedy=ending)
    yield if_seen(context, found_idle, Part.ADDRESSES)


AUDITOR: Final = Auditor(title="external addresses that nothing uses", look=_look)
