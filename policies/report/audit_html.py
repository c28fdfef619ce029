"""The audit as one HTML page: sortable, searchable, offline, in the form of the page of a stack."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

from policies.audit.model import Audit, AuditFinding, Verdict
from policies.audit.record import Missing
from policies.money import decimal_of
from policies.report.audit_json import moment
from policies.report.audit_table import so_far_words, span_words, subject
from policies.report.escapes import line
from policies.report.figures import money
from policies.report.page import ranks, rendered
from policies.rules.model import Severity

COLUMNS: Final = {"waste": "Waste per month", "so_far": "So far", "saving": "Remedy saves"}
KINDS: Final = {Severity.ERROR: "failed", Severity.WARNING: "warning", Severity.INFO: "info"}
ROUNDED: Final = "amounts are rounded to cents; the JSON has them exactly"


def audit_html(audit: Audit) -> str:
    """The page of an audit. A figure that is not known is `?`."""
    least = "" if audit.complete else "at least "
    unknown = sum(verdict.kind.unknown for verdict in audit.verdicts)
    return rendered(
        _data(audit),
        headline=line(f"{audit.project} wastes {least}{money(audit.waste.monthly)} {audit.currency} per month"),
        project=line(audit.project),
        verdict=so_far_words(audit),
        verdict_kind="violated" if audit.waste else "kept" if audit.complete else "undecided",
        counts=f"{len(audit.verdicts):,} resources judged, {span_words(audit)}",
        doubts=[*([f"{unknown} could not be judged"] if unknown else []), *map(_gap, audit.missing)],
        budgets=[],
        issues=[_issue(finding) for finding in audit.findings],
        columns=[
            {"key": "name", "title": "Resource", "number": False},
            {"key": "location", "title": "Place", "number": False},
            *({"key": key, "title": title, "number": True} for key, title in COLUMNS.items()),
        ],
        notes=[line(note) for note in audit.notes],
        dated=f"prices of {audit.book_as_of or 'no date'}",
        currency=audit.currency,
        rounded=ROUNDED,
    )


def _gap(gap: Missing) -> str:
    return line(f"not seen: {gap.part}: {gap.why}")


def _data(audit: Audit) -> dict[str, Any]:
    figures = {key: [_figure(verdict, key) for verdict in audit.verdicts] for key in COLUMNS}
    # What is not known is not the worst: by waste in the order of the audit, by the others like nothing.
    places = {key: ranks([value or Fraction(0) for value in values]) for key, values in figures.items()}
    places["waste"] = [*range(len(audit.verdicts), 0, -1)]
    most = max((value for value in figures["waste"] if value is not None), default=Fraction(0))
    return {
        "columns": tuple(COLUMNS),
        "bar": "waste",
        "order": "waste",
        "rows": [
            {
                **_row(verdict),
                "shown": {key: _shown(figures[key][number]) for key in COLUMNS},
                "rank": {key: places[key][number] for key in COLUMNS},
                "share": _share(figures["waste"][number], most),
            }
            for number, verdict in enumerate(audit.verdicts)
        ],
    }


def _figure(verdict: Verdict, key: str) -> Fraction | None:
    """None where it is not known; what has no remedy saves nothing."""
    if key == "waste":
        return None if verdict.waste is None else verdict.waste.per_month
    if key == "so_far":
        return None if verdict.so_far is None else Fraction(verdict.so_far)
    if verdict.remedy is None:
        return Fraction(0)
    return None if verdict.remedy.monthly_saving is None else verdict.remedy.monthly_saving.per_month


def _shown(value: Fraction | None) -> str:
    return "?" if value is None else money(decimal_of(value))


def _share(value: Fraction | None, most: Fraction) -> str:
    return f"{decimal_of(100 * value / most if value and most else Fraction(0)):.2f}"


def _row(verdict: Verdict) -> dict[str, Any]:
    remedy = "" if verdict.remedy is None else verdict.remedy.text
    what = line(f"{verdict.kind.value} · {verdict.message}{f' → {remedy}' if remedy else ''}")
    name, place = line(subject(verdict)), line(verdict.location)
    return {
        "name": name,
        "what": what,
        "location": place,
        "text": f"{name} {what} {place}".lower(),
        "parts": [dict(part) for part in _parts(verdict)],
        "notes": [line(verdict.resource)],
    }


def _parts(verdict: Verdict) -> Iterator[dict[str, str]]:
    usage = verdict.usage
    if usage.provisioned_mibps is not None:
        yield _part("provisioned", f"{usage.provisioned_mibps:,}", "MiB/s")
    for name, value in (("mean", usage.mean_mibps), ("p99", usage.p99_mibps), ("peak", usage.peak_mibps)):
        if value is not None:
            yield _part(name, money(decimal_of(value)), "MiB/s")
    if usage.coverage is not None:
        yield _part("points present", f"{decimal_of(100 * usage.coverage):.0f}", "%")
    if verdict.since is not None:
        yield _part("since", moment(verdict.since), "", verdict.since_confidence.value)


def _part(name: str, quantity: str, unit: str, note: str = "") -> dict[str, str]:
    return {"name": name, "quantity": quantity, "unit": unit, "price": "", "monthly": "", "note": note}


def _issue(finding: AuditFinding) -> dict[str, str]:
    return {
        "standing": finding.severity.value,
        "kind": KINDS[finding.severity],
        "rule": line(finding.rule),
        "url": "",
        "subject": line(finding.resource.rpartition("/")[2]),
        "message": line(finding.message),
        "advice": line(finding.remediation),
        "monthly": "" if finding.monthly is None else money(finding.monthly.monthly),
    }
