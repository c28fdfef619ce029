"""Custom images whose disk is gone and from which nothing was made.

The newest image of a family is what a template boots from, without a trace in any disk: it is never an orphan unless
it is marked as deprecated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.lineage import Lineage
from policies.audit.model import RemedyKind, VerdictKind
from policies.audit.pricing import GIB
from policies.audit.reading import said, shown, whole, word
from policies.audit.record import Part
from policies.audit.subjects import Subject
from policies.audit.telling import Told, bill_of, day, each, if_seen, priced, remedy, subjects, tell
from policies.audit.ttl import created
from policies.errors import InputError

_STATUSES: Final = ("", "READY", "PENDING", "DELETING", "FAILED")
_RETIRED: Final = ("DEPRECATED", "OBSOLETE", "DELETED")


def _look(context: Context) -> Iterator[Told]:
    lineage, newest = Lineage(context), _newest(context)
    yield from each(context, Part.IMAGES, lambda subject: _verdicts(context, lineage, newest, subject))


def _newest(context: Context) -> Mapping[str, str]:
    """By family, the link of its newest image that is not retired."""
    found: dict[str, tuple[str, str]] = {}
    for image in subjects(context, Part.IMAGES):
        family = said(image.item, "family")
        if not family or said(image.item, "deprecated", "state") in _RETIRED:
            continue
        try:
            age = created(image.item).isoformat()
        except InputError:  # told by whoever judges it
            continue
        found[family] = max(found.get(family, ("", "")), (age, image.resource))
    return {family: link for family, (_, link) in found.items()}


def _verdicts(context: Context, lineage: Lineage, newest: Mapping[str, str], subject: Subject) -> Iterator[Told]:
    item = subject.item
    if word(item, "status") not in _STATUSES:
        message = f"status is {shown(item.get('status'))}, which spotrail does not know"
        yield tell(context, subject, VerdictKind.UNKNOWN_STATE, message)
        return
    if not lineage.source_gone(subject) or lineage.needed(subject):
        return
    if newest.get(said(item, "family")) == subject.resource:
        return
    made = created(item)
    if context.now - made <= context.terms.orphan_age:
        return
    held = whole(item, "archiveSizeBytes")
    cost, why = bill_of(context.pricing.estimate(Part.IMAGES, item))
    size = "size not known" if held is None else f"{held / GIB:,.1f} GiB"
    gone = f"no disk was made of it, its disk {lineage.source_name(subject)} is gone"
    message = f"of {day(made, context.now)}, {size}, {gone}"
    ending = remedy(RemedyKind.DELETE_IMAGE, "delete it", cost)
    found = tell(context, subject, VerdictKind.ORPHANED, priced(message, why), waste=cost, remedy=ending)
    yield if_seen(context, found, Part.IMAGES, Part.DISKS)


AUDITOR: Final = Auditor(title="images that nothing was made of", look=_look)
