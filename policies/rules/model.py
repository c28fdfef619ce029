"""The words of a rule: what it applies to, what it checks, and what it found."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Final, TypeAlias, final

from policies.changes import Change
from policies.estimate.model import Estimate
from policies.money import Amount
from policies.prices.book import PriceBook
from policies.resources import Opaque, Resource, ResourceSet

PREFIXES: Final = ("TPU-", "DISK-", "GCS-", "NET-", "VM-", "IAM-", "BUDGET-", "PRICE-", "STATE-")
TITLE_LIMIT: Final = 80


class Severity(enum.Enum):
    """How bad a finding is, worst first."""

    ERROR = "error"
    """The stack must not go up; `check` exits 3."""
    WARNING = "warning"
    """Money that is probably wasted; shown, never blocking by itself."""
    INFO = "info"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return _RANKS[self]


_RANKS: Final = {severity: rank for rank, severity in enumerate(Severity)}


@final
@dataclass(frozen=True, kw_only=True)
class Waiver:
    """A decision to live with what a rule finds, with a reason and an end."""

    rule: str
    """Id of the rule."""
    urn: str
    """Pattern that the whole URN must match; `*` stands for anything, case counts."""
    reason: str
    """Why, in the words of the one who decided."""
    until: datetime.date
    """The last day on which it covers."""

    def covers(self, rule: str, urn: str, on: datetime.date) -> bool:
        """Whether a finding of `rule` at `urn` is waived on that day."""
        return not self.expired(on) and self.concerns(rule, urn)

    def concerns(self, rule: str, urn: str) -> bool:
        """Whether it speaks of `rule` at `urn`, whatever the day."""
        return rule == self.rule and fnmatchcase(urn, self.urn)

    def expired(self, on: datetime.date) -> bool:
        """Whether its last day lies before `on`."""
        return on > self.until


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Context:
    """All that a rule may look at beside the resource: plain data, no cloud. One context is one judgement."""

    resources: ResourceSet
    """The whole stack."""
    estimate: Estimate
    """Its price, for rules that speak of money."""
    as_of: datetime.date
    """The day from which ages are counted."""
    book: PriceBook
    """The prices behind the estimate, for what the stack does not ask for but could: spot, another zone."""
    waivers: tuple[Waiver, ...] = ()
    """All waivers given, expired ones too."""
    changes: tuple[Change, ...] = ()
    """The steps of a preview, one a URN; empty where the source is no preview."""
    hidden: int = 0
    """Unchanged resources that the source does not show."""

    @cached_property
    def step_of(self) -> Mapping[str, Change]:
        """The steps by URN."""
        return {change.urn: change for change in self.changes}


@final
@dataclass(frozen=True, kw_only=True)
class Violation:
    """What a check reports about one resource."""

    message: str
    """The value received and the rule it breaks. The resource and the remediation stand beside it."""
    monthly: Amount | None = None
    """What the mistake costs a month, where that is known."""
    severity: Severity | None = None
    """Less than the rule's, where this case is less bad; None for the rule's own."""
    decided: bool = True
    """False where an unknown value keeps the rule from judging: the finding is then `info`, `cannot tell yet`."""

    @classmethod
    def hidden(cls, path: str, value: Opaque) -> Violation:
        """What a check reports where the input at `path` is unknown or secret."""
        return cls(message=f"{path} is {value.value}", decided=False)


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
    """Of its worst violation; a single one may say less."""
    applies_to: tuple[str, ...]
    """Type tokens; `pulumi:pulumi:Stack` for what concerns the stack as a whole."""
    remediation: str
    """What to change, naming the input or the setting."""
    url: str
    """The page that the rule rests on."""
    check: Check
    absence: bool = False
    """Whether it concludes from what is not there: while a preview hides resources, its findings are `info`."""
    gate: bool = False
    """Whether it looks at the steps of a preview: each resource of a step is then handed to the check as it stands,
    or as it will be where it is new. Pulumi shows no step to a policy pack."""

    def __post_init__(self) -> None:
        faults = (
            (not self.id.startswith(PREFIXES), f"the id must start with one of {', '.join(PREFIXES)}"),
            (not 0 < len(self.title) <= TITLE_LIMIT, f"the title must have 1 to {TITLE_LIMIT} characters"),
            (self.title.endswith("."), "the title must not end with a full stop"),
            (not self.applies_to, "it must apply to some type"),
            (not self.remediation, "the remediation is empty"),
            (not self.url.startswith("https://"), "the url must start with https://"),
        )
        for wrong, rule in faults:
            if wrong:
                raise ValueError(f"rule {self.id!r}: {rule}")


@final
@dataclass(frozen=True, kw_only=True)
class Finding:
    """A violation with its place: what reports show."""

    rule: Rule
    severity: Severity
    """The violation's or else the rule's; INFO where the check could not decide."""
    urn: str
    message: str
    monthly: Amount | None = None
    decided: bool = True
    """False where an unknown value, or a failure of the rule itself, kept the rule from judging."""
    failed: bool = False
    """Whether the rule itself failed: a bug in spotrail."""
    waived: str = ""
    """The reason of the waiver that covers it; empty where none does."""
