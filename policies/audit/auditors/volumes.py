"""Volumes: throughput and capacity that nobody reads, and more throughput than anybody reads."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Final

from policies.audit.clusters import in_cluster
from policies.audit.context import Auditor, Context
from policies.audit.model import Remedy, RemedyKind, Since, Usage, Verdict, VerdictKind
from policies.audit.reading import said
from policies.audit.record import Part
from policies.audit.shares import split
from policies.audit.slices.heartbeats import ENV
from policies.audit.subjects import Subject
from policies.audit.telemetry.spans import moment
from policies.audit.telling import Told, bill_of, each, money, priced, subjects, tell
from policies.audit.volumes.facts import FactFinder, VolumeFacts
from policies.audit.volumes.money import Money, money_of
from policies.audit.volumes.verdict import Decision, decide
from policies.audit.volumes.words import forgotten, rate, why

READY: Final = "READY"
_BY_TELEMETRY: Final = frozenset(
    {VerdictKind.IDLE_ATTACHED, VerdictKind.UNREACHABLE, VerdictKind.BURSTY, VerdictKind.OVERPROVISIONED}
)


def _look(context: Context) -> Iterator[Told]:
    finder = FactFinder(context.record, context.terms)
    yield from each(context, Part.DISKS, lambda disk: (_verdict(context, disk, finder.facts(disk.item)),))


def _verdict(context: Context, disk: Subject, facts: VolumeFacts) -> Verdict:
    decision = decide(facts, context.terms)
    spent = money_of(context.pricing, disk.item, facts, decision)
    since, confidence = _since(facts, decision.kind)
    found = tell(
        context,
        disk,
        decision.kind,
        _message(context, disk, facts, decision, spent),
        waste=spent.waste,
        since=since,
        confidence=confidence,
        remedy=_remedy(context, disk, facts, decision, spent),
    )
    return replace(found, usage=_usage(facts), shares=_shares(context, disk, facts))


def _message(context: Context, disk: Subject, facts: VolumeFacts, decision: Decision, spent: Money) -> str:
    text = priced(why(facts, decision, context.terms, context.record), spent.reason)
    if disk.item.get("storagePool"):
        return f"{text}; its storage pool bills for it"
    if decision.kind is VerdictKind.TOO_NEW and forgotten(facts, context.terms):
        bill, _ = bill_of(context.pricing.estimate(Part.DISKS, disk.item))
        return f"{text}; it costs {money(bill)}" if bill is not None else text
    cluster = in_cluster(disk)
    if decision.kind is VerdictKind.IDLE_UNATTACHED and cluster:
        return f"{text}; a volume of {cluster}, where its PersistentVolumeClaim is what to delete"
    resting = ", ".join(_resting(context, disk))
    if decision.kind is VerdictKind.IDLE_UNATTACHED and resting:
        text = f"{text}; its stack has groups at 0 machines that may come back for it: {resting}"
    origin = said(disk.item, "sourceSnapshot") or said(disk.item, "sourceImage")
    if decision.kind is VerdictKind.IDLE_UNATTACHED and origin:
        return f"{text}; made from {origin.rpartition('/')[2]}"
    return text


def _resting(context: Context, disk: Subject) -> Iterator[str]:
    """Groups of its stack and place that have no machine now: what their template attaches, no list shows."""
    env = disk.label(ENV)
    for group in subjects(context, Part.GROUPS):
        near = group.location == disk.location or group.location.startswith(f"{disk.location}-")
        if env and near and group.name.startswith(f"{env}-") and str(group.item.get("targetSize") or 0) == "0":
            yield group.name


def _since(facts: VolumeFacts, kind: VerdictKind) -> tuple[datetime.datetime | None, Since]:
    """Since when it is so, and how sure that is."""
    if kind is VerdictKind.IDLE_UNATTACHED:
        since = facts.loose_since
        return since, Since.ESTIMATED if since == facts.attached else Since.EXACT
    if kind is VerdictKind.IDLE_STOPPED_HOST:
        stops = [host.stopped for host in facts.hosts]
        known = [stop for stop in (*stops, facts.attached) if stop is not None]
        return (max(known), Since.EXACT) if known and None not in stops else (None, Since.UNKNOWN)
    if kind in _BY_TELEMETRY and facts.flow.first is not None:
        return moment(facts.flow.first), Since.AT_LEAST
    return None, Since.UNKNOWN


def _remedy(context: Context, disk: Subject, facts: VolumeFacts, decision: Decision, spent: Money) -> Remedy | None:
    if (spent.waste is None and not spent.reason) or not _touchable(context, disk, facts, decision):
        return None
    if decision.kind is VerdictKind.IDLE_UNATTACHED:
        kind = RemedyKind.SNAPSHOT_THEN_DELETE
        ending = Remedy(kind=kind, monthly_saving=spent.saving, text="delete after snapshot")
        return None if in_cluster(disk) else ending
    if decision.target is None or facts.provisioned is None or decision.target >= facts.provisioned:
        return None
    if decision.kind is VerdictKind.BURSTY:
        kind, text = RemedyKind.SCHEDULE_THROUGHPUT, f"throughput by schedule, {rate(decision.target)} while unread"
        saves = bool(decision.saved)
    else:
        kind, text, saves = RemedyKind.LOWER_THROUGHPUT, f"throughput to {rate(decision.target)}", True
    remedy = Remedy(kind=kind, to_mibps=decision.target, monthly_saving=spent.saving, text=text)
    return remedy if saves else None


def _touchable(context: Context, disk: Subject, facts: VolumeFacts, decision: Decision) -> bool:
    """Whether something may be proposed: not for what is being made or deleted, nor for a host just stopped."""
    if disk.item.get("storagePool") or said(disk.item, "status") not in ("", READY):
        return False
    since, _ = _since(facts, decision.kind)
    just = decision.kind is VerdictKind.IDLE_STOPPED_HOST and since is not None
    return not just or since is None or context.now - since >= context.terms.grace


def _usage(facts: VolumeFacts) -> Usage:
    return Usage(
        coverage=facts.flow.coverage,
        provisioned_mibps=facts.provisioned,
        mean_mibps=facts.flow.mean,
        p99_mibps=facts.flow.p99,
        peak_mibps=facts.peak,
        resolution=facts.flow.resolution,
    )


def _shares(context: Context, disk: Subject, facts: VolumeFacts) -> tuple[tuple[str, Decimal], ...]:
    """The price of a shared volume, once, in equal parts for the machines that have it."""
    if facts.machines < 2:
        return ()
    bill, _ = bill_of(context.pricing.estimate(Part.DISKS, disk.item))
    if bill is None:
        return ()
    parts = split(bill.per_month, [host.machines for host in facts.hosts])
    return tuple(zip((host.name for host in facts.hosts), parts, strict=True))


AUDITOR: Final = Auditor(title="volumes that are idle, or have more throughput than anybody reads", look=_look)
