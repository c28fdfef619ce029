"""What `estimate`, `diff` and `check` have to say, as plain data: every report is a function of this."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import final

from policies.budget import BudgetVerdict
from policies.changes import SourceKind
from policies.estimate.change import ChangeEstimate
from policies.exit_codes import ExitCode
from policies.rules.model import Finding


@final
@dataclass(frozen=True, kw_only=True)
class StackReport:
    """A stack or a change of one, priced and judged."""

    project: str
    stack: str
    kind: SourceKind
    """Where the resources were read."""
    place: str
    """What the source is called in a SARIF or JUnit report: `Pulumi.yaml`, `state.json`, `-`."""
    change: ChangeEstimate
    findings: tuple[Finding, ...] = ()
    """Worst first; the waived ones are among them."""
    passed: tuple[str, ...] = ()
    """Ids of the rules that looked at something and found nothing."""
    budgets: tuple[BudgetVerdict, ...] = ()
    book_as_of: datetime.date | None
    """Day of the price book; None where it has none."""
    book_sha256: str
    as_of: datetime.date
    """The day from which ages are counted."""
    usage: tuple[str, ...] = ()
    """What was assumed."""
    notes: tuple[str, ...] = ()
    """What the reader of the source noted."""
    next_steps: tuple[str, ...] = ()
    """Commands that may come next."""
    verdict: ExitCode = ExitCode.FINE
    """What a judge of it exits with: FINE, VIOLATED or UNDECIDED."""

    @property
    def title(self) -> str:
        """What a sentence calls the stack; a source without resources may not name it."""
        return self.stack or "the stack"
