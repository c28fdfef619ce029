"""Which exit code a judged stack deserves: a violation outweighs a doubt, a waiver takes a finding away."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal

import pytest

from policies.budget import BudgetVerdict, Outcome
from policies.estimate.model import CostComponent, Estimate, Freshness, ResourceEstimate, Unpriced
from policies.exit_codes import ExitCode, judge
from policies.money import Amount
from policies.resources import Resource
from policies.rules.model import Finding, Severity
from policies.rules.registry import rules

RULE = next(iter(rules().values()))
LINE = CostComponent(
    name="capacity",
    item="disk.pd-ssd.capacity",
    quantity=Decimal(10),
    unit="GiB-month",
    unit_price=Decimal("0.17"),
    amount=Amount.by_month(Decimal("1.70")),
    as_of=datetime.date(2026, 11, 1),
)
DISK = ResourceEstimate(
    resource=Resource(urn="urn:pulumi:dev::p::gcp:compute/disk:Disk::d", type="gcp:compute/disk:Disk", name="d"),
    components=(LINE,),
)
ERROR = Finding(rule=RULE, severity=Severity.ERROR, urn=DISK.resource.urn, message="wrong")
WARNING = replace(ERROR, severity=Severity.WARNING)
UNDECIDED = replace(ERROR, severity=Severity.INFO, decided=False)


def stack(disk: ResourceEstimate = DISK) -> Estimate:
    return Estimate(currency="USD", resources=(disk,))


STALE = stack(replace(DISK, components=(replace(LINE, freshness=Freshness.STALE),)))
UNDATED = stack(replace(DISK, components=(replace(LINE, freshness=Freshness.UNDATED, as_of=None),)))
AGEING = stack(replace(DISK, components=(replace(LINE, freshness=Freshness.AGEING),)))
INCOMPLETE = stack(replace(DISK, unpriced=(Unpriced(item="disk.pd-ssd.iops", reason="no price"),)))


@pytest.mark.parametrize(
    ("estimate", "findings", "allow_stale", "expected"),
    [
        (stack(), (), False, ExitCode.FINE),
        (stack(), (WARNING,), False, ExitCode.FINE),
        (stack(), (ERROR,), False, ExitCode.VIOLATED),
        (stack(), (replace(ERROR, waived="agreed"),), False, ExitCode.FINE),
        (stack(), (UNDECIDED,), False, ExitCode.UNDECIDED),
        (stack(), (UNDECIDED, ERROR), False, ExitCode.VIOLATED),
        (AGEING, (), False, ExitCode.FINE),
        (STALE, (), False, ExitCode.UNDECIDED),
        (STALE, (), True, ExitCode.FINE),
        (UNDATED, (), False, ExitCode.UNDECIDED),
        (UNDATED, (), True, ExitCode.FINE),
        (INCOMPLETE, (), True, ExitCode.UNDECIDED),
        (INCOMPLETE, (ERROR,), False, ExitCode.VIOLATED),
    ],
)
def test_the_exit_code_of_a_judged_stack(
    estimate: Estimate, findings: tuple[Finding, ...], allow_stale: bool, expected: ExitCode
) -> None:
    assert judge(estimate, findings, allow_stale=allow_stale) is expected


KEPT = BudgetVerdict(
    name="total", limit=Decimal(10), amount=LINE.amount, outcome=Outcome.KEPT, message="1.70 /month is within"
)


@pytest.mark.parametrize(
    ("outcomes", "findings", "expected"),
    [
        ((Outcome.KEPT,), (), ExitCode.FINE),
        ((Outcome.KEPT, Outcome.UNDECIDED), (WARNING,), ExitCode.UNDECIDED),
        ((Outcome.UNDECIDED, Outcome.VIOLATED), (), ExitCode.VIOLATED),
        ((Outcome.UNDECIDED,), (ERROR,), ExitCode.VIOLATED),
        ((Outcome.VIOLATED,), (UNDECIDED,), ExitCode.VIOLATED),
    ],
)
def test_a_budget_weighs_as_a_finding_does(
    outcomes: tuple[Outcome, ...], findings: tuple[Finding, ...], expected: ExitCode
) -> None:
    budgets = [replace(KEPT, outcome=outcome) for outcome in outcomes]
    assert judge(stack(), findings, budgets=budgets) is expected


def test_the_codes_are_those_that_scripts_rely_on() -> None:
    assert [code.value for code in ExitCode] == [0, 1, 2, 3, 4, 5]
