"""What a run of the guard has to say, as messages, and whether it said the same before.

One message a finding and one for the run as a whole, schema `spotrail.guard/1`. An `id` is the same for the same
finding in every run, so that who receives them can tell a repetition. Nothing is said twice on one day unless
something has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from policies.audit.model import Audit, AuditFinding, Verdict, VerdictKind
from policies.audit.remedies.applying import Outcome, Result
from policies.estimate.model import total
from policies.money import Amount, plain
from policies.report.audit_json import Json, audit_document, moment, verdict_document

SCHEMA: Final = "spotrail.guard/1"
NOT_TOLD: Final = frozenset({VerdictKind.IN_USE, VerdictKind.TOO_NEW, VerdictKind.WAITING})
"""Verdicts that are no news."""
MOST_LISTED: Final = 100
"""Entries of a list in the message of a run; the others are counted."""
DIGEST_BITS: Final = 48
"""Of a digest that fits into the double of a metric."""

Document: TypeAlias = Mapping[str, Json]


@final
@dataclass(frozen=True, kw_only=True)
class Message:
    """One message."""

    kind: str
    """`verdict`, `finding`, `step` or `run`."""
    id: str
    resource: str
    """What it is about; of a run, the project."""
    document: Document


@final
@dataclass(frozen=True, kw_only=True)
class Report:
    """What a run has found and done."""

    stack: str
    audit: Audit
    results: tuple[Result, ...] = ()
    """Steps that were tried."""
    refused: tuple[tuple[str, str], ...] = ()
    """Resources whose remedy was not taken, and why."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts that are told."""
        return tuple(verdict for verdict in self.audit.verdicts if verdict.kind not in NOT_TOLD)

    @property
    def changes(self) -> tuple[Result, ...]:
        """Steps that changed something, or failed to."""
        return tuple(result for result in self.results if result.outcome is not Outcome.ALREADY)

    @property
    def ended(self) -> Amount:
        """What the run itself has stopped; a lower bound where a price is missing."""
        done = {result.measure.resource: result.measure for result in self.results if result.outcome is Outcome.DONE}
        return total(measure.saving for measure in done.values() if measure.saving is not None)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell anybody."""
        return not (self.verdicts or self.audit.findings or self.changes or self.audit.missing)


def messages(report: Report) -> tuple[Message, ...]:
    """Everything a run has to say: each finding, each step, and the run last."""
    audit = report.audit
    head: Document = {
        "schema": SCHEMA,
        "project": audit.project,
        "stack": report.stack,
        "recorded_at": moment(audit.recorded_at),
        "currency": audit.currency,
    }
    return (
        *(_verdict(head, verdict) for verdict in report.verdicts),
        *(_finding(head, finding) for finding in audit.findings),
        *(_step(head, result) for result in report.changes),
        Message(
            kind="run",
            id=finding_id(audit.project, report.stack, "run"),
            resource=audit.project,
            document=run_document(report),
        ),
    )


def run_document(report: Report) -> Document:
    """The run as a whole: the money, what was done, what could not be seen. Lists are cut; the worst come first."""
    audit = report.audit
    whole = audit_document(audit)
    found = report.verdicts
    lists: dict[str, Sequence[Json]] = {
        "verdicts": [_listed(verdict) for verdict in found],
        "findings": [
            {"rule": each.rule, "resource": each.resource, "message": each.message} for each in audit.findings
        ],
        "steps": [_step_fields(result) for result in report.changes],
        "refused": [{"resource": resource, "why": why} for resource, why in report.refused],
        "missing": [{"part": gap.part, "why": gap.why} for gap in audit.missing],
    }
    return {
        "schema": SCHEMA,
        "kind": "run",
        **{key: whole[key] for key in ("project", "recorded_at", "currency", "price_book", "window", "complete")},
        "stack": report.stack,
        "monthly_waste": plain(audit.waste.monthly),
        "monthly_ended": plain(report.ended.monthly),
        "wasted_so_far": plain(audit.wasted_so_far),
        **{key: entries[:MOST_LISTED] for key, entries in lists.items()},
        "left_out": {
            key: str(len(entries) - MOST_LISTED) for key, entries in lists.items() if len(entries) > MOST_LISTED
        },
    }


def digest(report: Report) -> int:
    """A number that is the same for what need not be told again: the same findings on the same day.

    Figures that move with every hour, as what was wasted so far, are not in it.
    """
    parts = [
        *(f"{verdict.resource} {verdict.kind.value} {_remedy(verdict)}" for verdict in report.verdicts),
        *(f"{finding.resource} {finding.rule}" for finding in report.audit.findings),
        *(f"{result.step.resource} {result.step.action.value} {result.outcome.value}" for result in report.changes),
        *(f"missing {gap.part}" for gap in report.audit.missing),
    ]
    day = "" if report.empty else report.audit.recorded_at.date().isoformat()
    text = "\n".join((report.audit.project, report.stack, day, *sorted(parts)))
    return int(hashlib.sha256(text.encode()).hexdigest()[: DIGEST_BITS // 4], 16)


def must_tell(report: Report, told: int | None) -> bool:
    """Whether anybody has to hear of this run. `told` is the digest of what was told last; None where nothing was."""
    return digest(report) != told and not (report.empty and told is None)


def finding_id(*parts: str) -> str:
    """16 hex digits that the same finding has in every run."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def summary(report: Report) -> str:
    """A few lines for people: the sum, the worst, what was done."""
    return "\n".join(_summary(report))


def _summary(report: Report) -> Iterator[str]:
    audit = report.audit
    least = "" if audit.complete else "at least "
    ended = f", {report.ended.monthly:,.2f} of it ended now" if report.ended.monthly > 0 else ""
    idle = f"{least}{audit.waste.monthly:,.2f} {audit.currency} a month idle"
    yield f"spotrail {report.stack}: {idle} in {audit.project}{ended}"
    wasteful = [verdict for verdict in report.verdicts if verdict.waste is not None and verdict.waste.monthly > 0]
    for verdict in wasteful[:WORST]:
        money = f"{verdict.waste.monthly:,.2f}" if verdict.waste is not None else "?"
        yield f"- {money}  {verdict.kind.value}  {verdict.name}: {verdict.message}"
    if len(wasteful) > WORST:
        yield f"- and {len(wasteful) - WORST} more"
    for result in report.changes:
        yield f"- {result.outcome.value}: {result.step.text}" + (f" ({result.why})" if result.why else "")
    for gap in audit.missing[:WORST]:
        yield f"- not seen: {gap.part}: {gap.why}"


WORST: Final = 5
"""Findings that the lines for people name."""


def _verdict(head: Document, verdict: Verdict) -> Message:
    name = finding_id(verdict.resource, verdict.kind.value)
    document = {**head, "kind": "verdict", "id": name, **verdict_document(verdict), "labels": dict(verdict.labels)}
    return Message(kind="verdict", id=name, resource=verdict.resource, document=document)


def _finding(head: Document, finding: AuditFinding) -> Message:
    name = finding_id(finding.resource, finding.rule)
    monthly = None if finding.monthly is None else plain(finding.monthly.monthly)
    document: Document = {
        **head,
        "kind": "finding",
        "id": name,
        "rule": finding.rule,
        "severity": finding.severity.value,
        "resource": finding.resource,
        "message": finding.message,
        "monthly": monthly,
        "remediation": finding.remediation,
    }
    return Message(kind="finding", id=name, resource=finding.resource, document=document)


def _step(head: Document, result: Result) -> Message:
    name = finding_id(result.step.resource, result.step.action.value, str(head["recorded_at"]))
    document = {**head, "kind": "step", "id": name, **_step_fields(result)}
    return Message(kind="step", id=name, resource=result.step.resource, document=document)


def _step_fields(result: Result) -> Document:
    return {
        "resource": result.step.resource,
        "action": result.step.action.value,
        "text": result.step.text,
        "outcome": result.outcome.name,
        "why": result.why,
        "because": result.measure.why,
        "setting": result.measure.setting,
    }


def _listed(verdict: Verdict) -> Document:
    waste = None if verdict.waste is None else plain(verdict.waste.monthly)
    return {
        "resource": verdict.resource,
        "verdict": verdict.kind.value,
        "monthly_waste": waste,
        "message": verdict.message,
    }


def _remedy(verdict: Verdict) -> str:
    return "" if verdict.remedy is None else verdict.remedy.kind.value
