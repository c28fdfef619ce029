"""What a report has to tell, one shape for findings and budgets: worst first, doubts and waivers told apart."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import Final, final

from policies.budget import BudgetVerdict, Outcome, budget_findings
from policies.exit_codes import ExitCode
from policies.money import Amount
from policies.report.figures import money, rules_passed
from policies.report.names import name_of
from policies.report.stack import StackReport
from policies.resources import STACK_TYPE
from policies.rules.model import Finding, Severity

VERDICTS: Final = MappingProxyType({ExitCode.FINE: "PASS", ExitCode.VIOLATED: "FAIL", ExitCode.UNDECIDED: "UNDECIDED"})
"""What a judgement is called."""
PROGRAM: Final = "Pulumi.yaml"
"""Where a result lies whose source is no file: a forge shows none without one."""
TO_DECIDE: Final = "Supply what the message names: a budget is judged by what is known, and not by guesses."
"""What to do about a budget that nobody can judge yet; to shrink the stack may be needless."""


@final
class Standing(enum.Enum):
    """Where an issue belongs, in the order of a report."""

    FAILED = "failed"
    WARNING = "warning"
    NOTE = "note"
    UNDECIDED = "cannot decide"
    WAIVED = "waived"


@final
@dataclass(frozen=True, kw_only=True)
class Issue:
    """A finding or a budget that is not kept."""

    rule: str
    title: str
    severity: Severity
    standing: Standing
    urn: str
    subject: str
    """Name of the resource, or of the budget."""
    message: str
    remediation: str
    monthly: Amount | None = None
    decided: bool = True
    """False where something unknown kept it from being judged, waived or not."""
    waived: str = ""
    """Reason of the waiver."""
    url: str = ""
    """Page that the rule rests on."""

    @property
    def worth(self) -> str:
        """`96.00 /month`; empty where no money is known or the message says it already."""
        text = "" if self.monthly is None else f"{money(self.monthly.monthly)} /month"
        return "" if text in self.message else text


def issues(report: StackReport) -> tuple[Issue, ...]:
    """Everything that is not well, by standing; within one, budgets first and then the order of the findings."""
    broken = tuple(verdict for verdict in report.budgets if verdict.outcome is not Outcome.KEPT)
    pairs = zip(broken, budget_findings(broken), strict=True)
    budgets = (_of_budget(verdict, finding, report) for verdict, finding in pairs)
    found = (*budgets, *map(_of_finding, report.findings))
    return tuple(sorted(found, key=lambda issue: tuple(Standing).index(issue.standing)))


def counts(report: StackReport) -> str:
    """`1 failed, 2 warnings, 1 cannot be decided, 3 rules passed`: one line that is never empty."""
    number = Counter(issue.standing for issue in issues(report))
    return ", ".join((*_counted(number), rules_passed(len(report.passed))))


def budget_subject(verdict: BudgetVerdict) -> str:
    """What a budget is called in place of a resource: `budget label env=dev`."""
    return f"budget {verdict.name}"


def stack_urn(report: StackReport) -> str:
    """The URN of the stack itself, where a budget belongs."""
    return f"urn:pulumi:{report.stack}::{report.project}::{STACK_TYPE}::{report.project}-{report.stack}"


def source_file(report: StackReport) -> str:
    """The file in which results lie, with forward slashes."""
    place = report.place.strip()
    return PROGRAM if place in ("", "-") else PurePath(place).as_posix()


def _counted(number: Counter[Standing]) -> Iterator[str]:
    words = {
        Standing.FAILED: "failed",
        Standing.WARNING: f"warning{_s(number[Standing.WARNING])}",
        Standing.NOTE: f"note{_s(number[Standing.NOTE])}",
        Standing.UNDECIDED: "cannot be decided",
        Standing.WAIVED: "waived",
    }
    yield from (f"{number[standing]:,} {word}" for standing, word in words.items() if number[standing])


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def _of_finding(finding: Finding) -> Issue:
    return Issue(
        rule=finding.rule.id,
        title=finding.rule.title,
        severity=finding.severity,
        standing=_standing(finding),
        urn=finding.urn,
        subject=name_of(finding.urn),
        message=finding.message,
        remediation=finding.rule.remediation,
        monthly=finding.monthly,
        decided=finding.decided,
        waived=finding.waived,
        url=finding.rule.url,
    )


def _standing(finding: Finding) -> Standing:
    if finding.waived:
        return Standing.WAIVED
    if not finding.decided:
        return Standing.UNDECIDED
    of_severity = {Severity.ERROR: Standing.FAILED, Severity.WARNING: Standing.WARNING, Severity.INFO: Standing.NOTE}
    return of_severity[finding.severity]


def _of_budget(verdict: BudgetVerdict, finding: Finding, report: StackReport) -> Issue:
    """The finding of a budget, which belongs to the stack and is told apart by the name of the budget."""
    found = _of_finding(finding)
    return replace(
        found,
        urn=found.urn or stack_urn(report),
        subject=budget_subject(verdict),
        message=verdict.message,
        remediation=found.remediation if found.decided else TO_DECIDE,
    )
