"""The audit as strict JSON, schema `spotrail.audit/1`: every number is a decimal string, and never NaN."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeAlias

from policies.audit.model import Audit, AuditFinding, Remedy, Usage, Verdict
from policies.money import Amount, decimal_of, plain

SCHEMA: Final = "spotrail.audit/1"

Json: TypeAlias = "bool | str | Sequence[Json] | Mapping[str, Json] | None"


def audit_json(audit: Audit) -> str:
    """The audit as text, one key a line, with a final newline."""
    return json.dumps(audit_document(audit), indent=2, allow_nan=False) + "\n"


def audit_document(audit: Audit) -> Mapping[str, Json]:
    """The audit as `spotrail.audit/1`. What is not known is null, and the message of its verdict says why."""
    return {
        "schema": SCHEMA,
        "project": audit.project,
        "recorded_at": moment(audit.recorded_at),
        "currency": audit.currency,
        "price_book": {
            "as_of": None if audit.book_as_of is None else audit.book_as_of.isoformat(),
            "sha256": audit.book_sha256,
        },
        "window": {"start": moment(audit.window.start), "end": moment(audit.window.end)},
        "complete": audit.complete,
        "monthly_waste": plain(audit.waste.monthly),
        "wasted_so_far": plain(audit.wasted_so_far),
        "verdicts": [verdict_document(verdict) for verdict in audit.verdicts],
        "findings": [_finding(finding) for finding in audit.findings],
        "missing": [{"part": gap.part, "why": gap.why} for gap in audit.missing],
        "notes": list(audit.notes),
    }


def verdict_document(verdict: Verdict) -> Mapping[str, Json]:
    """One entry of `verdicts`."""
    return {
        "resource": verdict.resource,
        "type": verdict.type,
        "location": verdict.location,
        "verdict": verdict.kind.value,
        **_usage(verdict.usage),
        "monthly_waste": _monthly(verdict.waste),
        "wasted_so_far": _decimal(verdict.so_far),
        "since": None if verdict.since is None else moment(verdict.since),
        "since_confidence": verdict.since_confidence.value,
        "remedy": None if verdict.remedy is None else _remedy(verdict.remedy),
        "message": verdict.message,
    }


def moment(when: datetime.datetime) -> str:
    """A time as Google writes it: in UTC, to the second."""
    return when.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _usage(usage: Usage) -> Mapping[str, Json]:
    return {
        "coverage": _fraction(usage.coverage),
        "provisioned_mibps": None if usage.provisioned_mibps is None else str(usage.provisioned_mibps),
        "mean_mibps": _fraction(usage.mean_mibps),
        "p99_mibps": _fraction(usage.p99_mibps),
        "peak_mibps": _fraction(usage.peak_mibps),
        "p99_points_s": None if usage.resolution is None else str(int(usage.resolution.total_seconds())),
    }


def _remedy(remedy: Remedy) -> Mapping[str, Json]:
    return {
        "kind": remedy.kind.value,
        "to_mibps": None if remedy.to_mibps is None else str(remedy.to_mibps),
        "monthly_saving": _monthly(remedy.monthly_saving),
        "text": remedy.text,
    }


def _finding(finding: AuditFinding) -> Mapping[str, Json]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "resource": finding.resource,
        "message": finding.message,
        "monthly": _monthly(finding.monthly),
        "remediation": finding.remediation,
    }


def _monthly(amount: Amount | None) -> str | None:
    return None if amount is None else plain(amount.monthly)


def _decimal(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)


def _fraction(value: Fraction | None) -> str | None:
    return None if value is None else plain(decimal_of(value))
