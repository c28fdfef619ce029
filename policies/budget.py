"""Budgets: a limit on the total, on a label, on a type or on the change, and whether a stack keeps it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from decimal import Decimal
from typing import final

from policies.money import Amount


@final
class Outcome(enum.Enum):
    """What a budget says of a stack."""

    KEPT = "kept"
    VIOLATED = "violated"
    UNDECIDED = "cannot decide"
    """The amount is a lower bound within the limit, or not that of the whole stack, or rests on stale prices."""


@final
@dataclass(frozen=True, kw_only=True)
class BudgetVerdict:
    """One budget, judged."""

    name: str
    """`total`, `label env=dev`, `type gcp:compute/disk:Disk`, `change`."""
    limit: Decimal
    """Per month, in the currency of the book."""
    amount: Amount
    """What counts against it; a lower bound where the estimate is not complete."""
    outcome: Outcome
    message: str
    """The answer first, then what would decide or mend it: the largest parts, the missing price."""
