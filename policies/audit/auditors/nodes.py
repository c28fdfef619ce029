"""Nodes of the Cloud TPU API: only READY ones bill chips; the others still hold a name, quota, disks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.model import RemedyKind, Verdict, VerdictKind
from policies.audit.reading import objects, said, shown
from policies.audit.record import Item, Part
from policies.audit.slices.verdict import Judge, Slice
from policies.audit.states import BILLING_NODES, CHANGING_NODES, PREEMPTED, STOPPED_NODES
from policies.audit.subjects import Subject
from policies.audit.telling import Told, bill_of, each, if_seen, many, remedy, tell
from policies.audit.ttl import created
from policies.hardware.errors import HardwareError
from policies.hardware.slices import shape, shape_of_topology
from policies.money import ZERO


def _look(context: Context) -> Iterator[Told]:
    judge = Judge.of(context)
    yield from each(context, Part.NODES, lambda subject: (_verdict(context, judge, subject),))


def _verdict(context: Context, judge: Judge, subject: Subject) -> Verdict:
    state = said(subject.item, "state")
    if state in BILLING_NODES:
        return judge.verdict(_slice(context, subject))
    if state == PREEMPTED:
        message = f"preempted: its chips cost nothing from then on; delete and recreate it{_left(subject.item)}"
        ending = remedy(RemedyKind.DELETE_NODE, "delete and recreate", ZERO)
        found = tell(context, subject, VerdictKind.PREEMPTED, message, waste=ZERO, remedy=ending)
        return if_seen(context, found, Part.NODES)
    if state in STOPPED_NODES:
        message = f"{state}: its chips cost nothing; its boot disk, which no API shows, bills on{_left(subject.item)}"
        # Nothing is proposed: somebody stopped it to start it again, and no snapshot can be taken of its boot disk.
        return if_seen(context, tell(context, subject, VerdictKind.IDLE_STOPPED_HOST, message), Part.NODES)
    if state in CHANGING_NODES:
        return tell(context, subject, VerdictKind.WAITING, f"{state}: no chips bill until it is READY", waste=ZERO)
    message = f"state is {shown(subject.item.get('state'))}, which spotrail does not know"
    return tell(context, subject, VerdictKind.UNKNOWN_STATE, message)


def _slice(context: Context, subject: Subject) -> Slice:
    cost, why = bill_of(context.pricing.estimate(Part.NODES, subject.item))
    made = created(subject.item)
    return Slice(
        subject=subject,
        labels=dict(subject.labels),
        made=made,
        ready=made,
        hosts=tuple(dict.fromkeys(name for name in (said(subject.item, "id"), subject.name) if name)),
        workers=_workers(subject.item),
        cost=cost,
        why=why,
        ending=RemedyKind.DELETE_NODE,
        ending_text="delete the node",
        needs=(Part.NODES,),
    )


def _workers(item: Item) -> int | None:
    """How many VMs the node has: by its shape, else by its endpoints."""
    try:
        kind, topology = said(item, "acceleratorType"), said(item, "acceleratorConfig", "topology")
        return (shape(kind) if kind else shape_of_topology(topology)).hosts
    except HardwareError:
        return len(objects(item, "networkEndpoints")) or None


def _left(item: Item) -> str:
    disks = len(objects(item, "dataDisks"))
    return f"; {many(disks, 'data disk')} of it may bill on" if disks else ""


AUDITOR: Final = Auditor(title="idle, expired, preempted and stopped TPU nodes", look=_look)
