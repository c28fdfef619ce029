"""Snapshots whose disk is gone and that nothing needs. Those of a schedule are a mistake of its retention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.findings import find
from policies.audit.lineage import Lineage
from policies.audit.model import RemedyKind, VerdictKind
from policies.audit.pricing import GIB
from policies.audit.reading import flag, shown, whole, word
from policies.audit.record import Item, Part
from policies.audit.subjects import Subject
from policies.audit.telling import Told, bill_of, day, each, if_seen, money, priced, remedy, tell
from policies.audit.ttl import created

_STATUSES: Final = ("", "READY", "CREATING", "DELETING", "FAILED", "UPLOADING")


def _look(context: Context) -> Iterator[Told]:
    lineage = Lineage(context)
    yield from each(context, Part.SNAPSHOTS, lambda subject: _verdicts(context, lineage, subject))


def _verdicts(context: Context, lineage: Lineage, subject: Subject) -> Iterator[Told]:
    if word(subject.item, "status") not in _STATUSES:
        message = f"status is {shown(subject.item.get('status'))}, which spotrail does not know"
        yield tell(context, subject, VerdictKind.UNKNOWN_STATE, message)
        return
    if not lineage.source_gone(subject) or lineage.needed(subject):
        return
    made = created(subject.item)
    if context.now - made <= context.terms.orphan_age:
        return
    cost, why = bill_of(context.pricing.estimate(Part.SNAPSHOTS, subject.item))
    what = f"of {day(made, context.now)}, {_size(subject.item)}, its disk {lineage.source_name(subject)} is gone"
    if flag(subject.item, "autoCreated"):
        if context.record.seen(Part.DISKS) and context.record.seen(Part.SNAPSHOTS):
            bills = f": {money(cost)}" if cost is not None else ""
            message = f"{what}, and the schedule that took it has not deleted it{bills}"
            yield find("DISK-SNAPSHOT-RETENTION", subject, message, monthly=cost)
        return
    ending = remedy(RemedyKind.DELETE_SNAPSHOT, "delete it", cost)
    found = tell(context, subject, VerdictKind.ORPHANED, priced(what, why), waste=cost, remedy=ending)
    yield if_seen(context, found, Part.SNAPSHOTS, Part.DISKS)


def _size(item: Item) -> str:
    held = whole(item, "storageBytes")
    return "size not known" if held is None else f"{held / GIB:,.1f} GiB"


AUDITOR: Final = Auditor(title="snapshots of disks that are gone", look=_look)
