"""Findings as SARIF 2.1.0, for code scanning: stable fingerprints, waivers as suppressions, doubts as open results."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final
from urllib.parse import quote

from policies.money import plain
from policies.report.escapes import line
from policies.report.headline import doubts, headline
from policies.report.issues import Issue, Standing, issues, source_file
from policies.report.stack import StackReport
from policies.rules.model import Severity

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
OPEN_LEVEL: Final = "none"
"""What the standard demands of a result that is no failure."""
MOST: Final = 25_000
"""Results that code scanning takes of a run; with more it refuses the file."""


def stack_sarif(report: StackReport) -> str:
    """The findings and the budgets that are not kept, as one SARIF run in ASCII, with a final newline."""
    found = issues(report)
    shown = found[:MOST]
    money = f"monthlyCost{report.change.after.currency.capitalize()}"
    document = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "spotrail", **_version(), "rules": list(_rules(shown))}},
                "invocations": [{"executionSuccessful": True, **_notifications(report, len(found))}],
                "automationDetails": {"id": line(f"spotrail/{report.project}/{report.stack}/")},
                "results": list(_results(shown, _uri(source_file(report)), money)),
                "columnKind": "unicodeCodePoints",
            }
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _notifications(report: StackReport, number: int) -> dict[str, Any]:
    """What the reader of the results should know: the price, its doubts, and what is left out."""
    left_out = [f"{number - MOST:,} results are left out, the least grave ones"] if number > MOST else []
    told = [("note", headline(report)), *(("warning", text) for text in (*doubts(report), *left_out))]
    return {"toolExecutionNotifications": [{"level": level, "message": {"text": line(text)}} for level, text in told]}


def _version() -> dict[str, str]:
    try:
        return {"version": version("spotrail")}
    except PackageNotFoundError:  # run from a checkout that nobody installed
        return {}


def _rules(found: Iterable[Issue]) -> Iterator[dict[str, Any]]:
    """Each rule once, in the order of its first result."""
    first: dict[str, Issue] = {}
    for issue in found:
        first.setdefault(issue.rule, issue)
    for issue in first.values():
        yield {
            "id": line(issue.rule),
            "shortDescription": {"text": line(issue.title)},
            "help": {"text": line(issue.remediation)},
            **({"helpUri": issue.url} if issue.url else {}),
            "properties": {"tags": ["cost", "cloud"]},
        }


def _results(found: Iterable[Issue], uri: str, money: str) -> Iterator[dict[str, Any]]:
    """One result an issue; `money` is the name of the property that holds its amount."""
    seen: Counter[str] = Counter()
    for issue in found:
        hashed = _fingerprint(issue)
        seen[hashed] += 1
        yield {
            "ruleId": line(issue.rule),
            **_judgement(issue),
            "message": {"text": line(f"{issue.subject}: {issue.message}").replace("](", "] (")},
            "locations": [
                {
                    "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}},
                    "logicalLocations": [{"name": line(issue.subject), "fullyQualifiedName": line(issue.urn)}],
                }
            ],
            # Code scanning tells alerts of one line apart by this fingerprint alone, and all of ours are on line 1.
            "partialFingerprints": {
                "spotrailRuleUrn/v1": hashed,
                "primaryLocationLineHash": f"{hashed}:{seen[hashed]}",
            },
            **({} if issue.monthly is None else {"properties": {money: plain(issue.monthly.monthly)}}),
        }


def _judgement(issue: Issue) -> dict[str, Any]:
    open_ = not issue.decided
    judged = {"kind": "open", "level": OPEN_LEVEL} if open_ else {"kind": "fail", "level": LEVELS[issue.severity]}
    if issue.standing is not Standing.WAIVED:
        return judged
    return {**judged, "suppressions": [{"kind": "external", "status": "accepted", "justification": line(issue.waived)}]}


def _fingerprint(issue: Issue) -> str:
    """Of the rule and the resource, or the budget; never of an amount, which changes with the prices."""
    return hashlib.sha256(f"{issue.rule}\0{issue.urn}\0{issue.subject}".encode(errors="backslashreplace")).hexdigest()


def _uri(place: str) -> str:
    """The source as a URI reference."""
    return ("file://" if place.startswith("/") else "") + quote(place, safe="/", errors="replace")
