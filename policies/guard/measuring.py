"""From an audit to the figures of the guard's own metrics. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

from policies.audit.model import Audit, RemedyKind, Verdict, VerdictKind
from policies.audit.record import Record
from policies.audit.remedies.applying import Outcome, Result
from policies.audit.slices.heartbeats import Heartbeats
from policies.audit.terms import Terms
from policies.guard.gauges import Gauge

WHOLLY_IDLE: Final = frozenset({VerdictKind.IDLE_UNATTACHED, VerdictKind.IDLE_STOPPED_HOST, VerdictKind.IDLE_ATTACHED})
"""Verdicts on volumes of which nothing is read."""


def figures(audit: Audit, record: Record, terms: Terms, results: Iterable[Result] = ()) -> Mapping[Gauge, Decimal]:
    """What each gauge shows after a run. What was ended or lowered in it counts no more."""
    ended = {result.measure.resource for result in results if result.outcome is Outcome.DONE}
    open_ones = [verdict for verdict in audit.verdicts if verdict.resource not in ended]
    dollars = sum((verdict.waste.monthly for verdict in open_ones if verdict.waste is not None), Decimal())
    return {
        Gauge.IDLE_MIBPS: Decimal(sum(map(idle_mibps, open_ones))),
        Gauge.IDLE_DOLLARS: dollars,
        Gauge.UNATTACHED_VOLUMES: _count(open_ones, VerdictKind.IDLE_UNATTACHED),
        Gauge.EXPIRED_SLICES: _count(open_ones, VerdictKind.EXPIRED),
        Gauge.STALE_HEARTBEATS: Decimal(sum(_stale(verdict, record, terms) for verdict in open_ones)),
        Gauge.UNSEEN_PARTS: Decimal(len({gap.part for gap in audit.missing})),
        Gauge.LAST_RUN: Decimal(int(audit.recorded_at.timestamp())),
    }


def idle_mibps(verdict: Verdict) -> int:
    """MiB/s of a volume that are billed and not read: down to what its remedy would leave, else all of them."""
    provisioned = verdict.usage.provisioned_mibps or 0
    if verdict.remedy is not None and verdict.remedy.kind is RemedyKind.LOWER_THROUGHPUT:
        return max(0, provisioned - (verdict.remedy.to_mibps or 0))
    return provisioned if verdict.kind in WHOLLY_IDLE else 0


def _count(verdicts: Iterable[Verdict], kind: VerdictKind) -> Decimal:
    return Decimal(sum(verdict.kind is kind for verdict in verdicts))


def _stale(verdict: Verdict, record: Record, terms: Terms) -> bool:
    """Whether a slice does nothing and its run has written no heartbeat for too long."""
    if verdict.kind is not VerdictKind.IDLE_SLICE:
        return False
    beat = Heartbeats(record).of(dict(verdict.labels))
    return beat is not None and record.recorded_at - beat.time > terms.heartbeat
