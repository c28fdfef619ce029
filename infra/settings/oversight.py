"""The settings of money and people: the budget, who is told, and who may look."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import final


@final
@dataclass(frozen=True, kw_only=True)
class BudgetSettings:
    """`spotrail:budget`: what the month may cost. A budget tells; it stops nothing."""

    monthly: int
    """Whole units of `currency`."""
    billing_account: str
    """`XXXXXX-XXXXXX-XXXXXX`."""
    currency: str = "USD"
    """Must be the currency of the billing account."""
    current_thresholds: tuple[Decimal, ...] = (Decimal("0.5"), Decimal("0.9"), Decimal("1"))
    """Fractions of `monthly` that is spent already, at each of which Google writes."""
    forecast_thresholds: tuple[Decimal, ...] = (Decimal("1"),)
    """Fractions of `monthly` that the month is forecast to reach."""
    quota_project: str = ""
    """Project that budget calls are counted against. Default: the stack's."""


@final
@dataclass(frozen=True, kw_only=True)
class AlertSettings:
    """`spotrail:alerts`: who is told."""

    emails: tuple[str, ...] = ()
    """One channel each; at least one, and at most five channels in all."""
    slack_channel: str = ""
    """`#channel`; needs the secret `spotrail:slack_token`."""


@final
@dataclass(frozen=True, kw_only=True)
class GuardSettings:
    """`spotrail:guard`: the job that audits the project, and when an alert fires."""

    enabled: bool = True
    """Whether the job runs. Without it nobody finds what has no metrics, such as a volume that nobody has attached."""
    apply: bool = False
    """Whether it may lower throughput that is not used, and end slices past their `ttl`; else it only tells."""
    every_hours: int = 1
    """Hours between two runs: 1, 2, 3, 4 or 6."""
    image: str = "guard:latest"
    """Image of the job (`policies/Dockerfile`): `name:tag` in the stack's registry, or a full reference."""
    window_days: int = 7
    """Days of metrics that it looks at, 1 to 42; what is younger is not judged."""
    webhook: str = ""
    """Secret of Secret Manager that holds an https URL, which is told what was found; empty: none."""
    idle_dollars: int = 50
    """The alert fires when what is idle costs more than this a month, 1 to 1,000,000."""
    idle_percent: int = 5
    """A volume that is read at less than this part of its provisioned throughput is idle, 1 to 50."""
    idle_hours: int = 6
    """Hours without a break after which the alert fires, 1 to 23."""


@final
@dataclass(frozen=True, kw_only=True)
class CiSettings:
    """`spotrail:ci`: the repository whose workflows may preview the stack, by Workload Identity Federation."""

    repository: str
    """`owner/name` on GitHub."""
