"""The words of a rule: what it applies to, what it checks, and what it found."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, final

from policies.estimate.model import Estimate
from policies.money import Amount
from policies.resources import Resource, ResourceSet


class Severity(enum.Enum):
    """How bad a finding is, worst first."""

    ERROR = "error"
    """The stack must not go up; `check` exits 3."""
    WARNING = "warning"
    """Money that is probably wasted; shown, never blocking by itself."""
    INFO = "info"
    """Worth knowing."""


@final
@dataclass(frozen=True, kw_only=True)
class Context:
    """All that a rule may look at beside the resource: plain data, no cloud."""

    resources: ResourceSet
    """The whole stack."""
    estimate: Estimate
    """Its price, for rules that speak of money."""
    as_of: datetime.date
    """The day from which ages are counted."""


@final
@dataclass(frozen=True, kw_only=True)
class Violation:
    """What a check reports about one resource."""

    message: str
    """The value received and the rule it breaks. The resource and the remediation stand beside it."""
    monthly: Amount | None = None
    """What the mistake costs a month, where that is known."""
    decided: bool = True
    """False where an unknown value keeps the rule from judging: the finding is then `info`, `cannot tell yet`."""


Check: TypeAlias = Callable[[Resource, Context], Iterable[Violation]]


@final
@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule: metadata and a pure check. Each lives in a file of its own as the module's `RULE`."""

    id: str
    """`TPU-`, `DISK-`, `GCS-`, `NET-`, `VM-`, `IAM-`, `BUDGET-`, `PRICE-` or `STATE-` and a name. Never reused."""
    title: str
    """One sentence of at most 80 characters, without a full stop."""
    severity: Severity
    applies_to: tuple[str, ...]
    """Type tokens; `pulumi:pulumi:Stack` for what concerns the stack as a whole."""
    remediation: str
    """What to change, naming the input or the setting."""
    url: str
    """The page that the rule rests on."""
    check: Check


@final
@dataclass(frozen=True, kw_only=True)
class Finding:
    """A violation with its place: what reports show."""

    rule: Rule
    severity: Severity
    """The rule's, or INFO where the check could not decide."""
    urn: str
    message: str
    monthly: Amount | None = None
    waived: str = ""
    """The reason of the waiver that covers it; empty where none does."""
