"""From a record to an audit: all auditors, worst first. Pure: the same record gives the same audit, in any order."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from policies.audit.context import Context
from policies.audit.doubts import price_doubts
from policies.audit.model import Audit, AuditFinding, Verdict, VerdictKind
from policies.audit.pricing import Pricing
from policies.audit.record import Metric, Part, Record
from policies.audit.registry import auditors
from policies.audit.resting import in_a_whole_world, on_what_was_seen
from policies.audit.telling import many
from policies.audit.terms import Terms
from policies.audit.volumes.facts import FactFinder
from policies.audit.volumes.verdict import MINUTE, decide, hours_leave_open
from policies.errors import InputError
from policies.prices.book import PriceBook

_FINE: Final = (VerdictKind.TOO_NEW, VerdictKind.IN_USE, VerdictKind.WAITING)
"""Verdicts by which nothing is wasted."""


def judge(record: Record, terms: Terms, book: PriceBook, as_of: datetime.date) -> Audit:
    """Everything that the audit says of a record. `as_of` is the day from which the age of a price is counted."""
    context = Context(record=record, terms=terms, pricing=Pricing(record=record, book=book, as_of=as_of))
    told = [each for auditor in auditors().values() for each in auditor.look(context)]
    # What a paged list holds twice is one thing.
    sure = (on_what_was_seen(each, record) for each in told if isinstance(each, Verdict))
    verdicts = dict.fromkeys(in_a_whole_world(each, record) for each in sure)
    findings = dict.fromkeys(each for each in told if isinstance(each, AuditFinding))
    ranked = _ranked(tuple(verdicts))
    return Audit(
        project=record.project,
        recorded_at=record.recorded_at,
        window=record.window,
        currency=book.currency,
        book_as_of=book.as_of,
        book_sha256=book.sha256,
        verdicts=ranked,
        findings=tuple(sorted(findings, key=_weight)),
        missing=tuple(sorted(set(record.missing), key=lambda gap: (gap.part, gap.why))),
        notes=(*record.notes, *_notes(record, ranked), *price_doubts(context, ranked)),
    )


def minute_candidates(record: Record, terms: Terms) -> tuple[tuple[str, str], ...]:
    """(instance id, device name) of the volumes of which hourly points leave the verdict open, the dearest first.

    To be asked for minute points, which may stand in the record beside the hourly ones.
    """
    finder = FactFinder(record, terms)
    found: list[tuple[int, tuple[tuple[str, str], ...]]] = []
    for disk in record.items(Part.DISKS):
        try:
            facts = finder.facts(disk)
        except InputError:  # the audit says what is wrong with it
            continue
        decision = decide(facts, terms)
        if hours_leave_open(facts, decision, terms):
            excess = (facts.provisioned or 0) - (decision.target or 0)
            found.append((-excess, tuple(finder.pairs(facts))))
    # The pairs of a volume stay together: its sum needs all of them.
    return tuple(dict.fromkeys(pair for _, pairs in sorted(found) for pair in pairs))


def _ranked(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Worst first: by what is wasted, then what cannot be said, then the rest; each by resource."""
    times = Counter(verdict.resource for verdict in verdicts)
    # Of what has one name the whole text decides, so that the order of the record does not.
    return tuple(sorted(verdicts, key=lambda each: (*_rank(each), repr(each) if times[each.resource] > 1 else "")))


def _rank(verdict: Verdict) -> tuple[int, Fraction, str]:
    waste = verdict.waste.per_month if verdict.waste is not None else Fraction()
    unsaid = verdict.kind.unknown or (verdict.waste is None and verdict.kind not in _FINE)
    return 0 if waste > 0 else 1 if unsaid else 2, -waste, verdict.resource


def _weight(finding: AuditFinding) -> tuple[int, Fraction, str, str, str]:
    monthly = finding.monthly.per_month if finding.monthly is not None else Fraction()
    return finding.severity.rank, -monthly, finding.rule, finding.resource, finding.message


def _notes(record: Record, verdicts: Sequence[Verdict]) -> Iterator[str]:
    if record.missing:
        yield f"no remedy is proposed: {many(len(record.missing), 'part')} of the project could not be read"
    coarse = [each for each in verdicts if (points := each.usage.resolution) is not None and points > MINUTE]
    if coarse:
        volumes = many(len(coarse), "volume")
        yield f"p99 of {volumes} is over points longer than a minute: bursts within them are averaged"
    lost = sum(series.unreadable for found in record.metrics.values() for series in found)
    if lost:
        yield f"{many(lost, 'point')} had no finite number and count as not seen"
    if Metric.READ_BYTES in record.metrics and Metric.WRITE_BYTES not in record.metrics:
        yield f"{Metric.WRITE_BYTES.value} is not in the record: volumes are judged by what is read of them"
