"""What an auditor sees, and what an auditor is."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, final

from policies.audit.model import AuditFinding, Verdict
from policies.audit.pricing import Pricing
from policies.audit.record import Record
from policies.audit.terms import Terms


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Context:
    """All that an auditor may look at: plain data, no cloud."""

    record: Record
    terms: Terms
    pricing: Pricing
    """What the things of the record cost, by the code that prices a stack."""

    @property
    def now(self) -> datetime.datetime:
        """The time of the record, from which ages are counted."""
        return self.record.recorded_at


Look: TypeAlias = Callable[[Context], Iterable[Verdict | AuditFinding]]


@final
@dataclass(frozen=True, kw_only=True)
class Auditor:
    """One thing that the audit looks for."""

    title: str
    """What it finds, in a few words for `--help` and the docs."""
    look: Look
    """Pure; verdicts and findings in any order."""
