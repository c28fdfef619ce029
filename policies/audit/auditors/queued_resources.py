"""Queued resources: which of them are dead and hold quota, which wait and may begin to bill at any hour.

Source: https://docs.cloud.google.com/tpu/docs/queued-resources#queued-resource-states
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.model import RemedyKind, Verdict, VerdictKind
from policies.audit.reading import at, objects, said, shown, whole
from policies.audit.record import Item, Json, Part
from policies.audit.states import ENDING_REQUESTS, SERVED_REQUESTS, STALE_REQUESTS, WAITING_REQUESTS
from policies.audit.subjects import Subject
from policies.audit.telling import Told, bill_of, day, each, if_seen, money, remedy, tell
from policies.audit.times import when
from policies.estimate.model import total
from policies.money import ZERO, Amount

_STALE: Final = {
    "SUSPENDED": "never served again",
    "FAILED": "stays until it is deleted",
}


def _look(context: Context) -> Iterator[Told]:
    yield from each(context, Part.QUEUED_RESOURCES, lambda subject: (_verdict(context, subject),))


def _verdict(context: Context, subject: Subject) -> Verdict:
    state = said(subject.item, "state", "state")
    if state in STALE_REQUESTS:
        message = f"{state}: {_STALE[state]}, costs no chips, holds quota"
        ending = remedy(RemedyKind.DELETE_QUEUED_RESOURCE, "delete the request", ZERO)
        found = tell(context, subject, VerdictKind.STALE_REQUEST, message, waste=ZERO, remedy=ending)
        return if_seen(context, found, Part.QUEUED_RESOURCES)
    if state in WAITING_REQUESTS:
        return tell(context, subject, VerdictKind.WAITING, _waiting(context, subject, state), waste=ZERO)
    if state in ENDING_REQUESTS:
        return tell(context, subject, VerdictKind.WAITING, f"{state}: on its way out, costs nothing", waste=ZERO)
    if state in SERVED_REQUESTS:
        return tell(context, subject, VerdictKind.IN_USE, f"{state}: its nodes are judged one by one")
    message = f"state is {shown(at(subject.item, 'state', 'state'))}, which spotrail does not know"
    return tell(context, subject, VerdictKind.UNKNOWN_STATE, message)


def _waiting(context: Context, subject: Subject, state: str) -> str:
    made = when(subject.item, "createTime")
    since = f" since {day(made, context.now)}" if made else ""
    cost = _cost(context, subject.item)
    then = f"{money(cost)} as soon as it is served" if cost is not None else "bills as soon as it is served"
    return f"{state}{since}: costs nothing now, {then}"


def _cost(context: Context, item: Item) -> Amount | None:
    """What all its nodes would bill; None where one has no price, or says nothing of itself."""
    found = [_node_cost(context, item, spec) for spec in objects(item, "tpu", "nodeSpec")]
    costs = [each for each in found if each is not None]
    return total(costs) if costs and len(costs) == len(found) else None


def _node_cost(context: Context, item: Item, spec: Item) -> Amount | None:
    node = at(spec, "node")
    if not isinstance(node, Mapping):
        return None
    params = at(spec, "multisliceParams")
    count = whole(params, "nodeCount") if isinstance(params, Mapping) else None
    place = said(spec, "parent") or said(item, "name").rpartition("/queuedResources/")[0]
    scheduling: Json = {"spot": True} if "spot" in item else at(node, "schedulingConfig") or {}
    asked = {**node, "name": f"{place}/nodes/{said(spec, 'nodeId') or 'node'}", "schedulingConfig": scheduling}
    cost, _ = bill_of(context.pricing.node(asked))
    return None if cost is None else cost * (1 if count is None else count)


AUDITOR: Final = Auditor(title="queued resources that are dead, or that wait", look=_look)
