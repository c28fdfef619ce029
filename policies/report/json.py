"""The estimate as strict JSON, schema `spotrail.estimate/1`: every number is an exact decimal string."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from policies.estimate.model import CostComponent, OneOff, ResourceEstimate, Unpriced
from policies.money import plain
from policies.report.plan import PlanReport, QuotaNeed
from policies.rules.model import Finding

SCHEMA: Final = "spotrail.estimate/1"

Json: TypeAlias = "bool | str | Sequence[Json] | Mapping[str, Json] | None"


def plan_json(report: PlanReport) -> str:
    """The plan as text, one key a line, with a final newline."""
    return json.dumps(plan_document(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def plan_document(report: PlanReport) -> Mapping[str, Json]:
    """The plan as `spotrail.estimate/1`, with `quotas` and `one_off`, which a plan adds."""
    estimate = report.estimate
    known = not estimate.nothing_known
    return {
        "schema": SCHEMA,
        "currency": estimate.currency,
        "price_book": {
            "as_of": report.book_as_of.isoformat() if report.book_as_of else None,
            "sha256": report.book_sha256,
        },
        "complete": estimate.complete,
        "fresh": estimate.fresh,
        "hourly": plain(estimate.amount.hourly) if known else None,
        "monthly": plain(estimate.amount.monthly) if known else None,
        "before": None,
        "delta": None,
        "resources": [resource_document(found, op="create") for found in estimate.resources],
        "findings": [finding_document(finding) for finding in report.findings],
        "notes": list(estimate.notes),
        "quotas": [_quota(need) for need in report.quotas],
        "one_off": [_one_off(once) for once in estimate.one_off],
    }


def resource_document(found: ResourceEstimate, *, op: str) -> Mapping[str, Json]:
    """One entry of `resources`; `op` is the step of the deployment, such as `create`."""
    known = not found.nothing_known
    return {
        "urn": found.resource.urn,
        "type": found.resource.type,
        "name": found.resource.name,
        "location": found.location,
        "op": op,
        "hourly": plain(found.amount.hourly) if known else None,
        "monthly": plain(found.amount.monthly) if known else None,
        "components": [_component(line) for line in found.components],
        "unknown": [{"path": part.path, "reason": part.reason} for part in found.unknown],
        "unpriced": [_unpriced(part) for part in found.unpriced],
    }


def finding_document(finding: Finding) -> Mapping[str, Json]:
    """One entry of `findings`; `waived` is the reason of the waiver, empty where none covers it."""
    return {
        "rule": finding.rule.id,
        "severity": finding.severity.value,
        "urn": finding.urn,
        "message": finding.message,
        "monthly": None if finding.monthly is None else plain(finding.monthly.monthly),
        "remediation": finding.rule.remediation,
        "waived": finding.waived,
    }


def _component(line: CostComponent) -> Mapping[str, Json]:
    return {
        **_line(line),
        "hourly": plain(line.amount.hourly),
        "monthly": plain(line.amount.monthly),
        "note": line.note,
    }


def _line(line: CostComponent) -> Mapping[str, Json]:
    return {
        "name": line.name,
        "item": line.item,
        "quantity": plain(line.quantity),
        "unit": line.unit,
        "unit_price": plain(line.unit_price),
    }


def _unpriced(part: Unpriced) -> Mapping[str, Json]:
    return {
        "item": part.item,
        "reason": part.reason,
        "quantity": None if part.quantity is None else plain(part.quantity),
        "unit": part.unit,
    }


def _quota(need: QuotaNeed) -> Mapping[str, Json]:
    return {
        "metric": need.metric,
        "location": need.location,
        "needed": str(need.needed),
        "default": None if need.default is None else str(need.default),
        "note": need.note,
    }


def _one_off(once: OneOff) -> Mapping[str, Json]:
    return {
        "name": once.name,
        "urn": once.urn,
        "cost": plain(once.cost) if once.lines or not once.unpriced else None,
        "lines": [{**_line(line), "cost": plain(line.amount.monthly), "note": line.note} for line in once.lines],
        "unpriced": [_unpriced(part) for part in once.unpriced],
        "note": once.note,
    }
