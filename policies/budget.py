"""Budgets: a limit on the total, on a label, on a type or on the change, and whether a stack keeps it.

A lower bound above the limit is decided, whatever is missing from it. Within the limit, what is missing, hidden or
stale decides, and the answer is that nobody can tell.
"""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final, final

from policies.budget_sums import Sum, fitting, sum_of_change, sum_of_label, sum_of_total, sum_of_type
from policies.errors import InputError
from policies.estimate.change import ChangeEstimate
from policies.estimate.registry import priced_types
from policies.money import Amount, plain
from policies.resources import STACK_TYPE, ResourceSet
from policies.rules import budgets as rules
from policies.rules.model import Finding, Severity

FORMS: Final = "80000, label:env=dev=4000, type:gcp:compute/disk:Disk=500 or change=1000"
LARGEST: Final = 3
"""Parts that a broken budget names."""
_LIMIT: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,12})?")
_AMOUNT: Final = "at most 15 digits, and at most 12 after a point, as in 80000 or 99.50"


@final
class Scope(enum.Enum):
    """What counts against a budget."""

    TOTAL = "total"
    LABEL = "label"
    TYPE = "type"
    CHANGE = "change"


_RULES: Final = MappingProxyType(
    {Scope.TOTAL: rules.TOTAL, Scope.LABEL: rules.LABEL, Scope.TYPE: rules.TYPE, Scope.CHANGE: rules.CHANGE}
)


@final
class Outcome(enum.Enum):
    """What a budget says of a stack."""

    KEPT = "kept"
    VIOLATED = "violated"
    UNDECIDED = "cannot decide"
    """The amount is a lower bound within the limit, or not that of the whole stack, or rests on stale prices."""


@final
@dataclass(frozen=True, kw_only=True)
class Budget:
    """A limit per month."""

    scope: Scope
    limit: Decimal
    """In the currency of the book; a sum that equals it keeps it."""
    key: str = ""
    """Of a label, its key."""
    value: str = ""
    """Of a label, its value; of a type, its token."""

    @property
    def name(self) -> str:
        """`total`, `label env=dev`, `type gcp:compute/disk:Disk`, `change`."""
        detail = f" {self.key}=" if self.key else " " if self.value else ""
        return f"{self.scope.value}{detail}{self.value}"


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
    scope: Scope = Scope.TOTAL
    """What counts against it."""
    urn: str = ""
    """URN of the stack, as far as the source names one."""


def parse_budget(text: str) -> Budget:
    """A budget as it is written on a command line, in one of `FORMS`. Raises InputError."""
    head, sign, number = text.strip().rpartition("=")
    if not _LIMIT.fullmatch(number):
        raise _refused(text, f'"{number}" is no amount per month: {_AMOUNT}')
    kind, _, rest = head.partition(":") if sign else (Scope.TOTAL.value, "", "")
    if kind not in {scope.value for scope in Scope}:
        close = difflib.get_close_matches(kind, [scope.value for scope in Scope], n=1)
        advice = f". Did you mean {close[0]}?" if close else ""
        raise _refused(text, f'"{kind}" is nothing to budget{advice}')
    scope, limit = Scope(kind), Decimal(number)
    if scope is Scope.LABEL:
        key, _, value = rest.partition("=")
        if not key or not value:
            raise _refused(text, "a label is named by key and value, as in label:env=dev=4000")
        return Budget(scope=scope, limit=limit, key=key, value=value)
    if scope is Scope.TYPE:
        return Budget(scope=scope, limit=limit, value=_token(rest, text))
    if rest:
        raise _refused(text, f"{kind} takes no name")
    return Budget(scope=scope, limit=limit)


def judge_budgets(
    budgets: Iterable[Budget], change: ChangeEstimate, resources: ResourceSet, *, allow_stale: bool = False
) -> tuple[BudgetVerdict, ...]:
    """Judge a stack that will stand as `resources` and was priced as `change`, one verdict a budget, in their order.

    `allow_stale` trusts prices whatever their age.
    """
    urn = _stack_urn(change, resources)
    return tuple(_judge(budget, _sum(budget, change, resources, allow_stale), urn, allow_stale) for budget in budgets)


def budget_findings(verdicts: Iterable[BudgetVerdict]) -> tuple[Finding, ...]:
    """What reports show of budgets that are not kept: an error where one is violated, else what keeps it undecided."""
    return tuple(
        Finding(
            rule=_RULES[verdict.scope],
            severity=Severity.ERROR if verdict.outcome is Outcome.VIOLATED else Severity.INFO,
            urn=verdict.urn,
            message=f"{verdict.name}: {verdict.message}",
            monthly=verdict.amount - Amount.by_month(verdict.limit) if verdict.outcome is Outcome.VIOLATED else None,
            decided=verdict.outcome is Outcome.VIOLATED,
        )
        for verdict in verdicts
        if verdict.outcome is not Outcome.KEPT
    )


def _refused(text: str, why: str) -> InputError:
    return InputError(f'budget "{text}": {why}{"" if why.endswith("?") else "."} A budget is {FORMS}')


def _token(token: str, text: str) -> str:
    """A type token that is known to bill: a mistyped one would keep any budget."""
    known = priced_types()
    if token in known:
        return token
    close = difflib.get_close_matches(token, known, n=1)
    advice = f". Did you mean {close[0]}?" if close else ""
    raise _refused(text, f'no resource of the type "{token}" has a price{advice}')


def _sum(budget: Budget, change: ChangeEstimate, resources: ResourceSet, allow_stale: bool) -> Sum:
    match budget.scope:
        case Scope.TOTAL:
            return sum_of_total(change, allow_stale)
        case Scope.LABEL:
            return sum_of_label(budget.key, budget.value, change, resources, allow_stale)
        case Scope.TYPE:
            return sum_of_type(budget.value, change, allow_stale)
        case Scope.CHANGE:
            return sum_of_change(change, allow_stale)


def _judge(budget: Budget, found: Sum, urn: str, allow_stale: bool) -> BudgetVerdict:
    limit = Amount.by_month(budget.limit)
    over = found.amount > limit
    doubts = (*(found.doubts_over if over else found.doubts_within), *found.doubts)
    if found.floor is not None and found.floor > limit:
        outcome, message = Outcome.VIOLATED, _violated(budget, found, allow_stale)
    elif doubts:
        shown = f"{_shown(found)} of {budget.limit:,.2f}" if found.amount else f"not known, of {budget.limit:,.2f}"
        outcome, message = Outcome.UNDECIDED, "; ".join((shown, *doubts))
    else:
        nothing = "" if found.parts else "; nothing counts against it"
        state = _state(budget, found, allow_stale)
        message = f"{_shown(found)} is within the budget of {budget.limit:,.2f} ({state}){nothing}"
        outcome = Outcome.KEPT
    return BudgetVerdict(
        name=budget.name,
        limit=budget.limit,
        amount=found.amount,
        outcome=outcome,
        message=message,
        scope=budget.scope,
        urn=urn,
    )


def _violated(budget: Budget, found: Sum, allow_stale: bool) -> str:
    excess = (found.amount - Amount.by_month(budget.limit)).monthly
    state = _state(budget, found, allow_stale)
    said = f"{_shown(found)} is {_exact(excess)} over the budget of {budget.limit:,.2f} ({state})"
    largest = [f"{part.name} {part.amount.monthly:,.2f}" for part in found.parts[:LARGEST] if part.amount > Amount()]
    if largest:
        said += f"; largest: {', '.join(largest)}"
    slices = fitting(found, Amount.by_month(budget.limit))
    fits = "1 slice less fits" if slices == 1 else f"{slices} slices less fit"
    return f"{said}; {fits}" if slices else said


def _shown(found: Sum) -> str:
    lead = "" if found.whole else "at least " if found.bound else "as far as known "
    return f"{lead}{_exact(found.amount.monthly)} /month"


def _exact(value: Decimal) -> str:
    """To the cent, unless that would make nothing of it."""
    return plain(value) if value and not round(value, 2) else f"{value:,.2f}"


def _state(budget: Budget, found: Sum, allow_stale: bool) -> str:
    counted = "complete" if found.whole else "a lower bound" if found.bound else "not complete"
    age = "of any age" if allow_stale else "fresh" if found.fresh else "stale"
    return f"{budget.name}, {counted}, prices {age}"


def _stack_urn(change: ChangeEstimate, resources: ResourceSet) -> str:
    stack = next(iter(resources.of_type(STACK_TYPE)), None)
    if stack:
        return stack.urn
    urns = (*(found.urn for found in resources), *(found.urn for found in change.resources))
    if not urns:
        return ""
    name, project = urns[0].removeprefix("urn:pulumi:").split("::")[:2]
    return f"urn:pulumi:{name}::{project}::{STACK_TYPE}::{project}-{name}"
