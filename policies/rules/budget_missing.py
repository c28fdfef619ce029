"""A stack that bills without a budget that looks ahead and tells a machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.model import Estimate
from policies.resources import STACK_TYPE, Opaque, Resource, dig
from policies.rules.bills import a_month
from policies.rules.model import Context, Rule, Severity, Violation

BUDGET: Final = "gcp:billing/budget:Budget"
TOPIC: Final = "gcp:pubsub/topic:Topic"
FORECAST: Final = "FORECASTED_SPEND"


def _check(stack: Resource, context: Context) -> Iterator[Violation]:
    if not context.estimate.amount and context.estimate.complete:
        return
    cost = _cost(context.estimate)
    judged = [(budget, list(_missing(budget, context))) for budget in context.resources.of_type(BUDGET)]
    if not judged:
        yield Violation(message=f"{cost} and no budget in the stack")
    elif all(missing for _, missing in judged):
        budget, missing = min(judged, key=lambda pair: len(pair[1]))
        hidden = [value for _, value in missing if isinstance(value, Opaque)]
        if len(hidden) == len(missing):
            yield Violation.hidden(f"{budget.name}: {missing[0][0]}", hidden[0])
        else:
            lacks = " and ".join(path for path, value in missing if value is None)
            yield Violation(message=f"{cost}, and the budget {budget.name} has no {lacks}")


def _cost(estimate: Estimate) -> str:
    if estimate.complete:
        return a_month(estimate.amount)
    return f"at least {a_month(estimate.amount)}" if estimate.amount else "a price that is not known"


def _missing(budget: Resource, context: Context) -> Iterator[tuple[str, Opaque | None]]:
    """What a budget lacks, and what of it nobody can see."""
    rules = budget.items("thresholdRules")
    bases = [rules] if isinstance(rules, Opaque) else [dig(rule, "spendBasis") for rule in rules]
    if FORECAST not in bases:
        hidden = next((basis for basis in bases if isinstance(basis, Opaque)), None)
        yield f"thresholdRules with spendBasis {FORECAST}", hidden
    topic = budget.value("allUpdatesRule", "pubsubTopic")
    if isinstance(topic, Opaque) and not context.resources.references(budget, "allUpdatesRule", TOPIC):
        yield "allUpdatesRule.pubsubTopic", topic
    elif not topic:
        yield "allUpdatesRule.pubsubTopic", None


RULE: Final = Rule(
    id="BUDGET-MISSING",
    title="A stack that bills has a budget with a forecast threshold and a topic",
    severity=Severity.WARNING,
    applies_to=(STACK_TYPE,),
    remediation=(
        "Set spotrail:budget.monthly and billing_account (CostGuard component): a threshold rule with spendBasis "
        "FORECASTED_SPEND and allUpdatesRule.pubsubTopic. A budget tells; it stops nothing."
    ),
    url="https://docs.cloud.google.com/billing/docs/how-to/budgets",
    check=_check,
    absence=True,
)
