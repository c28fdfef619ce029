"""What a slice that is gone left behind: the disks that it names, and the addresses that carry its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.findings import find
from policies.audit.links import last
from policies.audit.pricing import UNUSED
from policies.audit.reading import linked, names, objects, said
from policies.audit.record import Item, Part
from policies.audit.states import PREEMPTED, STOPPED_NODES
from policies.audit.subjects import Subject
from policies.audit.telling import Told, bill_of, many, money, readable, subjects
from policies.estimate.model import total

_GONE: Final = STOPPED_NODES | {PREEMPTED}
_NEEDS: Final = (Part.NODES, Part.DISKS, Part.ADDRESSES)


def _look(context: Context) -> Iterator[Told]:
    if all(context.record.seen(part) for part in _NEEDS):
        disks = {disk.resource: disk for disk in subjects(context, Part.DISKS)}
        addresses = list(subjects(context, Part.ADDRESSES))
        living = {link for node in subjects(context, Part.NODES) if _lives(node.item) for link in _named(node.item)}
        gone = (node for node in subjects(context, Part.NODES) if said(node.item, "state") in _GONE)
        yield from readable(gone, lambda node: _left(context, node, disks, addresses, living))


def _left(
    context: Context, node: Subject, disks: dict[str, Subject], addresses: list[Subject], living: set[str]
) -> Iterator[Told]:
    kept = [disks[link] for link in _named(node.item) if link in disks and link not in living]
    unused = [disk for disk in kept if all(last(user).startswith(node.name) for user in names(disk.item, "users"))]
    idle = [each for each in addresses if said(each.item, "status") == UNUSED and _is_of(each.name, node.name)]
    bills = [bill_of(context.pricing.estimate(each.part, each.item))[0] for each in (*unused, *idle)]
    cost = total(each for each in bills if each is not None)
    if not cost:
        return
    what = " and ".join(
        [many(len(unused), "disk")] * bool(unused) + [many(len(idle), "address", "addresses")] * bool(idle)
    )
    least = "" if None not in bills else "at least "
    listed = ", ".join(each.name for each in (*unused, *idle))
    message = f"{said(node.item, 'state')}, and its {what} ({listed}) still bill {least}{money(cost)}"
    yield find("TPU-LEFTOVER", node, message, monthly=cost)


def _lives(node: Item) -> bool:
    return said(node, "state") not in _GONE


def _named(node: Item) -> list[str]:
    """Links of the data disks of a node."""
    return [linked(link) for disk in objects(node, "dataDisks") if (link := said(disk, "sourceDisk"))]


def _is_of(name: str, node: str) -> bool:
    return name == node or name.startswith(f"{node}-")


AUDITOR: Final = Auditor(title="what preempted and stopped nodes left behind", look=_look)
