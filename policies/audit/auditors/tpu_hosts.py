"""Slices of Compute Engine: TPU machines alone, and managed groups of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.audit.clusters import in_cluster
from policies.audit.context import Auditor, Context
from policies.audit.model import RemedyKind, VerdictKind
from policies.audit.reading import at, labels_of, said, shown
from policies.audit.record import Part
from policies.audit.slices.hosts import Hosts, tpu_hosts
from policies.audit.slices.verdict import Judge, Slice
from policies.audit.states import RUNNING, STOPPED
from policies.audit.subjects import Subject
from policies.audit.telling import Told, bill_of, tell, unreadable
from policies.audit.times import when
from policies.audit.ttl import created
from policies.errors import InputError
from policies.estimate.model import total
from policies.money import Amount


def _look(context: Context) -> Iterator[Told]:
    judge = Judge.of(context)
    for hosts in tpu_hosts(context):
        for member in hosts.members:
            status = said(member.item, "status")
            if status not in RUNNING and status not in STOPPED:
                message = f"status is {shown(member.item.get('status'))}, which spotrail does not know"
                yield tell(context, member, VerdictKind.UNKNOWN_STATE, message)
        running = tuple(member for member in hosts.members if said(member.item, "status") in RUNNING)
        try:
            yield from tuple(judge.verdict(each) for each in _slices(context, hosts, running))
        except InputError as error:
            yield from (unreadable(context, member, error) for member in running)


def _slices(context: Context, hosts: Hosts, running: tuple[Subject, ...]) -> Iterator[Slice]:
    """One for the group; where there is none, one a host, each judged by all of them."""
    if not running:
        return
    # A node pool is resized in its cluster, which would bring back what is taken from it.
    kept = any(map(in_cluster, running))
    if hosts.group is not None:
        ending, text = None if kept else RemedyKind.RESIZE_GROUP, "resize the group to 0"
        yield _slice(context, hosts.group, running, running, ending, text, Part.INSTANCES, Part.GROUPS)
        return
    ending = None if hosts.managed or kept else RemedyKind.STOP_INSTANCE
    for host in running:
        yield _slice(context, host, (host,), running, ending, "stop it", Part.INSTANCES)


def _slice(
    context: Context,
    subject: Subject,
    billed: tuple[Subject, ...],
    together: tuple[Subject, ...],
    ending: RemedyKind | None,
    text: str,
    *needs: Part,
) -> Slice:
    cost, why = _cost(context, billed)
    born = [created(host.item) for host in together]
    started = [when(host.item, "lastStartTimestamp") or made for host, made in zip(together, born, strict=True)]
    return Slice(
        subject=subject,
        labels=_labels(subject, together),
        made=min(born),
        ready=max(started),
        hosts=tuple(name for host in together for name in (said(host.item, "id"), host.name) if name),
        workers=len(together),
        cost=cost,
        why=why,
        ending=ending,
        ending_text=text,
        needs=needs,
    )


def _labels(subject: Subject, hosts: tuple[Subject, ...]) -> dict[str, str]:
    """What all hosts of a slice agree on, and what its group gives to each of them."""
    shared = set(hosts[0].labels).intersection(*(host.labels for host in hosts[1:]))
    given = at(subject.item, "allInstancesConfig", "properties")
    return dict(shared) | dict(labels_of(given))


def _cost(context: Context, hosts: tuple[Subject, ...]) -> tuple[Amount | None, str]:
    bills = [bill_of(context.pricing.estimate(Part.INSTANCES, host.item)) for host in hosts]
    why = next((why for cost, why in bills if cost is None), "")
    return (None, why) if why else (total(cost for cost, _ in bills if cost is not None), "")


AUDITOR: Final = Auditor(title="idle and expired slices of Compute Engine", look=_look)
