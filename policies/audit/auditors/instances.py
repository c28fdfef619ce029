"""Machines without chips: those that run and do nothing, and what stopped ones keep."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Final

from policies.audit.clusters import in_cluster
from policies.audit.context import Auditor, Context
from policies.audit.findings import find
from policies.audit.links import last
from policies.audit.model import VerdictKind
from policies.audit.reading import link_of, linked, names, objects, said, shown
from policies.audit.record import Item, Metric, Part, Series
from policies.audit.slices.hosts import is_tpu_host
from policies.audit.states import OFF, RUNNING, STOPPED
from policies.audit.subjects import Subject
from policies.audit.telemetry.grid import grid_of
from policies.audit.telemetry.spans import Span, common, length, micros, united
from policies.audit.telling import Told, bill_of, day, each, many, money, tell
from policies.audit.telling import length as span_of
from policies.audit.times import stopped_at, when
from policies.audit.ttl import created
from policies.estimate.model import total

IDLE_PERCENT: Final = Decimal(5)
"""A machine whose CPUs stay below for 19 of 20 points does nothing."""


def _look(context: Context) -> Iterator[Told]:
    cpu: dict[str, list[Series]] = {}
    for series in context.record.series(Metric.CPU):
        cpu.setdefault(series.resource_labels.get("instance_id", ""), []).append(series)
    disks = {link_of(disk): disk for disk in context.record.items(Part.DISKS)}
    yield from each(context, Part.INSTANCES, lambda subject: _told(context, subject, cpu, disks))


def _told(context: Context, subject: Subject, cpu: dict[str, list[Series]], disks: dict[str, Item]) -> Iterator[Told]:
    status = said(subject.item, "status")
    if status in OFF:
        yield from _stopped(context, subject, disks)
    elif is_tpu_host(subject):
        return
    elif status in RUNNING:
        yield from _idle(context, subject, cpu.get(said(subject.item, "id"), []))
    elif status not in STOPPED:
        message = f"status is {shown(subject.item.get('status'))}, which spotrail does not know"
        yield tell(context, subject, VerdictKind.UNKNOWN_STATE, message)


def _idle(context: Context, subject: Subject, cpu: list[Series]) -> Iterator[Told]:
    record, window = context.record, context.record.window
    started = when(subject.item, "lastStartTimestamp") or created(subject.item)
    if started > window.start or not (record.seen(Metric.CPU) and record.seen(Part.INSTANCES)):
        return
    found = _p95(cpu, micros(window.start), micros(window.end), context.terms.coverage)
    if found is None or found >= IDLE_PERCENT:
        return
    cost, _ = bill_of(context.pricing.estimate(Part.INSTANCES, subject.item))
    machine = last(said(subject.item, "machineType"))
    bills = f": {money(cost)}" if cost is not None else ""
    cluster = in_cluster(subject)
    pool = f"; a node of {cluster}: its node pool is what to make smaller" if cluster else ""
    message = f"{machine}, CPU p95 {found:.1f} % over {span_of(window.length)}{bills}{pool}"
    yield find("VM-IDLE", subject, message, monthly=cost)


def _p95(cpu: list[Series], start: int, end: int, least: Fraction) -> Decimal | None:
    """The 95th percentile of CPU utilization in percent; None where too few points are there."""
    values: list[float] = []
    spans: list[Span] = []
    for series in cpu:
        grid = grid_of(series, (start, end))
        spans.extend(grid.covered)
        values.extend(series.values if grid.kept is None else (series.values[at] for at in grid.kept))
    covered = length(common(united(spans), ((start, end),)))
    if not values or Fraction(covered, end - start) < least:
        return None
    return Decimal(repr(float(sorted(values)[math.ceil(len(values) * 19 / 20) - 1]))) * 100


def _stopped(context: Context, subject: Subject, disks: dict[str, Item]) -> Iterator[Told]:
    """What the disks bill that only this machine uses."""
    off = stopped_at(subject.item)
    if off is None or context.now - off < context.terms.grace or not context.record.seen(Part.DISKS):
        return
    kept = [disks[link] for link in dict.fromkeys(_disks(subject.item)) if link in disks]
    own = [disk for disk in kept if {linked(user) for user in names(disk, "users")} <= {subject.resource}]
    bills = [bill_of(context.pricing.estimate(Part.DISKS, disk))[0] for disk in own]
    cost = total(each for each in bills if each is not None)
    if not own or not cost:
        return
    verb = "bills" if len(own) == 1 else "bill"
    least = "" if None not in bills else "at least "
    state = f"{said(subject.item, 'status')} since {day(off, context.now)}"
    message = f"{state}; {many(len(own), 'disk')} of it {verb} {least}{money(cost)}"
    yield find("VM-STOPPED", subject, message, monthly=cost)


def _disks(item: Item) -> Iterator[str]:
    yield from (linked(source) for disk in objects(item, "disks") if (source := said(disk, "source")))


AUDITOR: Final = Auditor(title="machines that do nothing, and disks of stopped ones", look=_look)
