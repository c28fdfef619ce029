"""The exit codes of every spotrail command, and which of them a judged stack deserves."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import final

from policies.budget import BudgetVerdict, Outcome
from policies.estimate.model import Estimate
from policies.rules.model import Finding, Severity


@final
class ExitCode(enum.IntEnum):
    """What a command says to the script that called it."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code

    FINE = 0, "fine"
    BUG = 1, "bug in spotrail"
    BAD_INPUT = 2, "bad usage or unreadable input"
    VIOLATED = 3, "policy or budget violated"
    UNDECIDED = 4, "cannot decide (missing or stale price, unknown value, missing telemetry)"
    CLOUD_FAILED = 5, "cloud API or credentials failed"


def judge(
    estimate: Estimate,
    findings: Iterable[Finding],
    *,
    allow_stale: bool = False,
    budgets: Iterable[BudgetVerdict] = (),
) -> ExitCode:
    """The exit code of a stack that is to be judged.

    A violation outweighs a doubt: VIOLATED where an unwaived finding has severity error or a budget is violated, else
    UNDECIDED where the total is a lower bound, a rule met an unknown value, a budget cannot be decided, or a price is
    stale or undated (unless `allow_stale`).
    """
    open_findings = [finding for finding in findings if not finding.waived]
    outcomes = {verdict.outcome for verdict in budgets}
    wrong = any(finding.severity is Severity.ERROR and finding.decided for finding in open_findings)
    if wrong or Outcome.VIOLATED in outcomes:
        return ExitCode.VIOLATED
    doubtful = not estimate.complete or any(not finding.decided for finding in open_findings)
    if doubtful or Outcome.UNDECIDED in outcomes or not (estimate.fresh or allow_stale):
        return ExitCode.UNDECIDED
    return ExitCode.FINE
