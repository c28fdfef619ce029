"""The exit code that an audit deserves, and the one of a plan that was applied."""

from __future__ import annotations

from collections.abc import Iterable

from policies.audit.model import Audit
from policies.audit.remedies.applying import Outcome, Result
from policies.exit_codes import ExitCode


def audit_exit(audit: Audit) -> ExitCode:
    """UNDECIDED where a part could not be read, else VIOLATED where money is wasted, else UNDECIDED where a verdict or
    its price is unknown, else FINE.
    """
    if audit.missing:
        return ExitCode.UNDECIDED
    if audit.waste:
        return ExitCode.VIOLATED
    return ExitCode.FINE if audit.complete and not unpriced(audit) else ExitCode.UNDECIDED


def unpriced(audit: Audit) -> bool:
    """Whether something is to be done about a resource whose waste has no price."""
    return any(verdict.waste is None and verdict.remedy is not None for verdict in audit.verdicts)


def applied_exit(results: Iterable[Result]) -> ExitCode:
    """CLOUD_FAILED where a call failed, else UNDECIDED where a step was refused or declined, else FINE."""
    outcomes = {result.outcome for result in results}
    if Outcome.FAILED in outcomes:
        return ExitCode.CLOUD_FAILED
    return ExitCode.FINE if all(outcome.good for outcome in outcomes) else ExitCode.UNDECIDED
