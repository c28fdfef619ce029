"""Budgets: how they are written, what counts against them, and what keeps an answer from being given."""

from __future__ import annotations

import contextlib
import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from policies.budget import Budget, BudgetVerdict, Outcome, Scope, budget_findings, judge_budgets, parse_budget
from policies.changes import Op
from policies.errors import InputError
from policies.estimate.change import ChangedResource, ChangeEstimate
from policies.estimate.model import CostComponent, Estimate, Freshness, ResourceEstimate, UnknownInput, Unpriced
from policies.exit_codes import ExitCode, judge
from policies.money import Amount
from policies.resources import STACK_TYPE, UNKNOWN, Resource, ResourceOptions, ResourceSet, Value
from policies.rules.budgets import BUDGET_RULES
from policies.rules.model import Severity
from policies.rules.registry import rules

DISK = "gcp:compute/disk:Disk"
NODE = "gcp:tpu/v2Vm:V2Vm"
STACK_URN = f"urn:pulumi:prod::acme::{STACK_TYPE}::acme-prod"
NO_PRICE = (Unpriced(item="disk.hyperdisk-ml.capacity", reason="no price for disk.hyperdisk-ml.capacity in eu"),)
NOT_KNOWN = (UnknownInput(path="size", reason="known after the apply"),)


def priced(name: str, *monthly: str, token: str = DISK, labels: Value = None, **more: Any) -> ResourceEstimate:
    """A resource with one line for each amount; one that begins with `~` is stale."""
    urn = f"urn:pulumi:prod::acme::{token}::{name}"
    resource = Resource(urn=urn, type=token, name=name, inputs={} if labels is None else {"labels": labels})
    lines = tuple(line(token, each) for each in monthly)
    return ResourceEstimate(resource=resource, components=lines, **more)


def line(token: str, monthly: str) -> CostComponent:
    return CostComponent(
        name="part",
        item="tpu.v6e.chip" if token == NODE else "disk.hyperdisk-ml.throughput",
        quantity=Decimal(1),
        unit="month",
        unit_price=Decimal(monthly.lstrip("~")),
        amount=Amount.by_month(Decimal(monthly.lstrip("~"))),
        freshness=Freshness.STALE if monthly.startswith("~") else Freshness.FRESH,
        as_of=datetime.date(2026, 1, 1),
    )


def stack(*found: ResourceEstimate, hidden: int = 0) -> ChangeEstimate:
    """What stands, without a before."""
    both = tuple(ChangedResource(urn=each.resource.urn, op=Op.SAME, before=None, after=each) for each in found)
    return ChangeEstimate(resources=both, after=Estimate(currency="USD", resources=found), hidden=hidden)


def step(op: Op, before: ResourceEstimate | None, after: ResourceEstimate | None) -> ChangedResource:
    side = before or after
    assert side is not None
    return ChangedResource(urn=side.resource.urn, op=op, before=before, after=after)


def change(*steps: ChangedResource, hidden: int = 0) -> ChangeEstimate:
    before = tuple(each.before for each in steps if each.before)
    after = tuple(each.after for each in steps if each.after)
    return ChangeEstimate(
        resources=steps,
        after=Estimate(currency="USD", resources=after),
        before=Estimate(currency="USD", resources=before),
        hidden=hidden,
    )


def verdict(text: str, found: ChangeEstimate, *, allow_stale: bool = False) -> BudgetVerdict:
    resources = ResourceSet(tuple(each.resource for each in found.after.resources))
    (only,) = judge_budgets([parse_budget(text)], found, resources, allow_stale=allow_stale)
    return only


@pytest.mark.parametrize(
    ("text", "budget", "name"),
    [
        ("80000", Budget(scope=Scope.TOTAL, limit=Decimal(80000)), "total"),
        (" total=99.50 ", Budget(scope=Scope.TOTAL, limit=Decimal("99.50")), "total"),
        ("change=0", Budget(scope=Scope.CHANGE, limit=Decimal(0)), "change"),
        (
            "label:env=dev=4000",
            Budget(scope=Scope.LABEL, limit=Decimal(4000), key="env", value="dev"),
            "label env=dev",
        ),
        (f"type:{DISK}=500", Budget(scope=Scope.TYPE, limit=Decimal(500), value=DISK), f"type {DISK}"),
    ],
)
def test_a_budget_is_read_as_it_is_written(text: str, budget: Budget, name: str) -> None:
    assert parse_budget(text) == budget
    assert budget.name == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", '"" is no amount per month: at most 15 digits'),
        ("9" * 16, "at most 15 digits"),
        ("0." + "1" * 13, "at most 12 after a point"),
        ("80,000", '"80,000" is no amount per month'),
        ("-5", '"-5" is no amount'),
        ("1e9", '"1e9" is no amount'),
        ("NaN", '"NaN" is no amount'),
        ("80000 USD", '"80000 USD" is no amount'),
        ("change", '"change" is no amount'),
        ("total=", '"" is no amount'),
        ("lable:env=dev=4000", r'"lable" is nothing to budget\. Did you mean label\?'),
        ("x=5", '"x" is nothing to budget'),
        ("label:env=4000", "a label is named by key and value, as in label:env=dev=4000"),
        ("label:=dev=4000", "a label is named by key and value"),
        ("change:dev=5", "change takes no name"),
        (
            "type:gcp:compute/disk:Dsik=5",
            r'of the type "gcp:compute/disk:Dsik" has a price\. Did you mean gcp:compute/disk',
        ),
        ("type:=5", r'of the type "" has a price\. A budget is'),
    ],
)
def test_a_budget_that_is_none_is_refused_with_the_forms(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        parse_budget(text)
    assert str(refused.value).startswith(f'budget "{text}": ')
    assert "A budget is 80000, label:env=dev=4000, type:gcp:compute/disk:Disk=500 or change=1000" in str(refused.value)


@given(st.text())
def test_no_text_is_a_crash_or_an_infinite_budget(text: str) -> None:
    with contextlib.suppress(InputError):
        assert parse_budget(text).limit.is_finite()


TRAINERS = (
    priced("trainer-a", "30000", token=NODE),
    priced("trainer-b", "55378.07", token=NODE),
    priced("llama", "6736.33"),
)


def test_a_broken_budget_names_the_largest_parts_and_how_many_slices_less_fit() -> None:
    found = verdict("80000", stack(*TRAINERS))
    assert (found.outcome, found.amount.monthly, found.urn) == (Outcome.VIOLATED, Decimal("92114.40"), STACK_URN)
    assert found.message == (
        "92,114.40 /month is 12,114.40 over the budget of 80,000.00 (total, complete, prices fresh); "
        "largest: trainer-b 55,378.07, trainer-a 30,000.00, llama 6,736.33; 1 slice less fits"
    )
    assert verdict("10000", stack(*TRAINERS)).message.endswith("; 2 slices less fit")
    assert verdict("5000", stack(*TRAINERS)).message.endswith("llama 6,736.33"), "no number of slices is enough"


@pytest.mark.parametrize(
    ("text", "found", "outcome", "words"),
    [
        pytest.param(
            "100",
            stack(priced("a", "60"), priced("b", "40")),
            Outcome.KEPT,
            "100.00 /month is within the budget of 100.00 (total, complete, prices fresh)",
            id="a sum that equals the limit",
        ),
        pytest.param(
            "100",
            stack(priced("a", "100.000000001")),
            Outcome.VIOLATED,
            "100.00 /month is 0.000000001 over the budget of 100.00",
            id="less than a cent more",
        ),
        pytest.param(
            "100",
            stack(priced("a", "60", unpriced=NO_PRICE)),
            Outcome.UNDECIDED,
            "at least 60.00 /month of 100.00; a: no price for disk.hyperdisk-ml.capacity in eu; spotrail prices",
            id="a missing price within the limit",
        ),
        pytest.param(
            "100",
            stack(priced("a", "160", unpriced=NO_PRICE)),
            Outcome.VIOLATED,
            "at least 160.00 /month is 60.00 over the budget of 100.00 (total, a lower bound, prices fresh)",
            id="a lower bound above the limit",
        ),
        pytest.param(
            "100",
            stack(priced("a", unknown=NOT_KNOWN)),
            Outcome.UNDECIDED,
            "not known, of 100.00; a: size: known after the apply",
            id="an input that is not known",
        ),
        pytest.param(
            "100",
            stack(priced("a", "60"), hidden=4),
            Outcome.UNDECIDED,
            "at least 60.00 /month of 100.00; 4 unchanged resources are not shown; pulumi preview --json --show-sames",
            id="what the preview hides",
        ),
        pytest.param(
            "50",
            stack(priced("a", "60"), hidden=1),
            Outcome.VIOLATED,
            "at least 60.00 /month is 10.00 over",
            id="what the preview shows is too much already",
        ),
        pytest.param(
            "100",
            stack(priced("a", "60", "~20")),
            Outcome.UNDECIDED,
            "80.00 /month of 100.00; 20.00 /month rest on stale prices (disk.hyperdisk-ml.throughput): "
            "spotrail prices refresh, or --allow-stale",
            id="a stale price within the limit",
        ),
        pytest.param(
            "70",
            stack(priced("a", "60", "~20")),
            Outcome.UNDECIDED,
            "80.00 /month of 70.00; 20.00 /month rest on stale prices",
            id="over the limit by a stale price, which may have fallen",
        ),
        pytest.param(
            "50",
            stack(priced("a", "60", "~20")),
            Outcome.VIOLATED,
            "80.00 /month is 30.00 over the budget of 50.00 (total, complete, prices stale)",
            id="over the limit without the stale price",
        ),
        pytest.param(
            f"type:{DISK}=50",
            stack(priced("a", "60"), priced("t", "900", token=NODE)),
            Outcome.VIOLATED,
            "60.00 /month is 10.00 over the budget of 50.00 (type gcp:compute/disk:Disk, complete",
            id="of a type",
        ),
        pytest.param(
            f"type:{NODE}=50",
            stack(priced("a", "60", unpriced=NO_PRICE)),
            Outcome.KEPT,
            "0.00 /month is within the budget of 50.00 (type gcp:tpu/v2Vm:V2Vm, complete, prices fresh); "
            "nothing counts against it",
            id="of a type that is not there, whatever else is missing",
        ),
        pytest.param(
            f"type:{NODE}=50",
            stack(priced("a", "60"), hidden=1),
            Outcome.UNDECIDED,
            "1 unchanged resource is not shown",
            id="of a type that may be hidden",
        ),
        pytest.param(
            "label:env=dev=50",
            stack(
                priced("a", "60", labels={"env": "dev"}), priced("b", "70", labels={"env": "prod"}), priced("c", "8")
            ),
            Outcome.VIOLATED,
            "60.00 /month is 10.00 over the budget of 50.00 (label env=dev",
            id="of a label",
        ),
        pytest.param(
            "label:env=dev=100",
            stack(priced("a", "60", labels={"env": "dev"}), priced("b", "70", labels={"env": UNKNOWN})),
            Outcome.UNDECIDED,
            "at least 60.00 /month of 100.00; b: label env is known after the apply",
            id="of a label that nobody can see yet",
        ),
    ],
)
def test_what_stands_is_judged(text: str, found: ChangeEstimate, outcome: Outcome, words: str) -> None:
    judged = verdict(text, found)
    assert judged.outcome is outcome, judged.message
    assert words in judged.message


OLD, NEW = priced("a", "60"), priced("a", "160")


@pytest.mark.parametrize(
    ("limit", "found", "outcome", "words"),
    [
        pytest.param(99, change(step(Op.UPDATE, OLD, NEW)), Outcome.VIOLATED, "100.00 /month is 1.00 over", id="over"),
        pytest.param(100, change(step(Op.UPDATE, OLD, NEW)), Outcome.KEPT, "100.00 /month is within", id="equal"),
        pytest.param(
            100,
            change(step(Op.UPDATE, OLD, NEW), hidden=7),
            Outcome.KEPT,
            "(change, complete, prices fresh)",
            id="what is hidden does not change",
        ),
        pytest.param(0, change(step(Op.DELETE, OLD, None)), Outcome.KEPT, "-60.00 /month is within", id="less"),
        pytest.param(
            0,
            change(step(Op.SAME, priced("s", "5", unpriced=NO_PRICE), priced("s", "5", unpriced=NO_PRICE))),
            Outcome.KEPT,
            "0.00 /month is within the budget of 0.00 (change, complete, prices fresh); nothing counts against it",
            id="what stays without a price",
        ),
        pytest.param(
            0,
            change(step(Op.SAME, priced("s", "~5"), priced("s", "~5"))),
            Outcome.KEPT,
            "prices fresh",
            id="what stays at a stale price",
        ),
        pytest.param(
            100,
            change(step(Op.CREATE, None, priced("n", "60", unpriced=NO_PRICE))),
            Outcome.UNDECIDED,
            "at least 60.00 /month of 100.00; n: no price",
            id="a new thing without a price",
        ),
        pytest.param(
            50,
            change(step(Op.CREATE, None, priced("n", "60", unpriced=NO_PRICE))),
            Outcome.VIOLATED,
            "at least 60.00 /month is 10.00 over",
            id="a new thing that is too dear without it",
        ),
        pytest.param(
            0,
            change(step(Op.DELETE, priced("o", "60", unpriced=NO_PRICE), None)),
            Outcome.KEPT,
            "as far as known -60.00 /month is within",
            id="an old thing without a price goes: the change is that or less",
        ),
        pytest.param(
            0,
            change(step(Op.DELETE, priced("o", unpriced=NO_PRICE), None), step(Op.UPDATE, OLD, NEW)),
            Outcome.UNDECIDED,
            "as far as known 100.00 /month of 0.00; o: no price",
            id="an old thing without a price may make room",
        ),
        pytest.param(
            100,
            change(step(Op.UPDATE, OLD, priced("a", "60", "~20"))),
            Outcome.UNDECIDED,
            "20.00 /month of 100.00; 20.00 /month rest on stale prices",
            id="new at a stale price",
        ),
        pytest.param(
            50,
            change(step(Op.DELETE, priced("o", "~20"), None), step(Op.UPDATE, OLD, NEW)),
            Outcome.UNDECIDED,
            "80.00 /month of 50.00; 20.00 /month rest on stale prices",
            id="an old thing at a stale price may make room",
        ),
        pytest.param(
            0,
            change(step(Op.UPDATE, priced("o", "~20"), priced("o", "20"))),
            Outcome.UNDECIDED,
            "20.00 /month rest on stale prices",
            id="as dear as before by a stale price: the difference is not known to be nothing",
        ),
        pytest.param(
            50, stack(NEW), Outcome.UNDECIDED, "not known, of 50.00; the source shows no change", id="no before"
        ),
    ],
)
def test_a_change_is_judged(limit: int, found: ChangeEstimate, outcome: Outcome, words: str) -> None:
    judged = verdict(f"change={limit}", found)
    assert judged.outcome is outcome, judged.message
    assert words in judged.message


@st.composite
def sides(draw: st.DrawFn, name: str) -> tuple[ResourceEstimate | None, int]:
    """One side of a resource as it is shown, and what it costs in truth: more than shown where a price is missing,
    anything where one is stale."""
    how = draw(st.sampled_from(("absent", "seen", "missing", "stale")))
    truth, shown = draw(st.integers(0, 50)), draw(st.integers(0, 50))
    match how:
        case "absent":
            return None, 0
        case "seen":
            return priced(name, str(truth)), truth
        case "missing":
            return priced(name, str(shown), unpriced=NO_PRICE), shown + truth
        case _:
            return priced(name, f"~{shown}"), truth


@given(
    steps=st.lists(st.sampled_from("abcd").flatmap(lambda name: st.tuples(sides(name), sides(name))), max_size=4),
    limit=st.integers(0, 100),
    hidden=st.integers(0, 2),
    hidden_cost=st.integers(0, 60),
)
def test_no_verdict_is_belied_by_the_prices_that_come_later(
    steps: list[tuple[tuple[ResourceEstimate | None, int], tuple[ResourceEstimate | None, int]]],
    limit: int,
    hidden: int,
    hidden_cost: int,
) -> None:
    named = [(old, new) for old, new in steps if old[0] or new[0]]
    # What is the same on both sides costs the same, however stale the price that it is shown at.
    assume(all(old[1] == new[1] for old, new in named if old[0] == new[0] and old[0] and old[0].complete))
    found = change(*(step(Op.UPDATE, old[0], new[0]) for old, new in named), hidden=hidden)
    total = sum(new[1] for _, new in named) + (hidden_cost if hidden else 0)
    added = sum(new[1] - old[1] for old, new in named)
    budgets = [parse_budget(f"{limit}"), parse_budget(f"change={limit}")]
    for truth, judged in zip((total, added), judge_budgets(budgets, found, ResourceSet(())), strict=True):
        if judged.outcome is not Outcome.UNDECIDED:
            assert (judged.outcome is Outcome.VIOLATED) == (truth > limit), judged.message


def test_stale_prices_are_trusted_on_demand() -> None:
    assert verdict("100", stack(priced("a", "~60")), allow_stale=True).outcome is Outcome.KEPT
    assert verdict("50", stack(priced("a", "~60")), allow_stale=True).outcome is Outcome.VIOLATED
    new = change(step(Op.CREATE, None, priced("a", "~60")))
    assert verdict("change=100", new, allow_stale=True).outcome is Outcome.KEPT


def test_the_hosts_of_a_group_carry_the_labels_of_its_template() -> None:
    template = Resource(
        urn="urn:pulumi:prod::acme::gcp:compute/instanceTemplate:InstanceTemplate::t",
        type="gcp:compute/instanceTemplate:InstanceTemplate",
        name="t",
        inputs={"labels": {"env": "dev"}},
    )
    group = Resource(
        urn="urn:pulumi:prod::acme::gcp:compute/instanceGroupManager:InstanceGroupManager::g",
        type="gcp:compute/instanceGroupManager:InstanceGroupManager",
        name="g",
        options=ResourceOptions(property_dependencies={"versions": (template.urn,)}),
    )
    found = stack(ResourceEstimate(resource=group, components=(line(NODE, "500"),)))
    (judged,) = judge_budgets([parse_budget("label:env=dev=400")], found, ResourceSet((template, group)))
    assert judged.outcome is Outcome.VIOLATED


def test_a_stack_without_anything_has_a_budget_too() -> None:
    (judged,) = judge_budgets([parse_budget("0")], stack(), ResourceSet(()))
    assert (judged.outcome, judged.urn) == (Outcome.KEPT, "")


def test_budgets_that_are_not_kept_are_findings() -> None:
    found = stack(priced("a", "160", labels={"env": "dev"}), priced("b", unpriced=NO_PRICE))
    texts = ("100", "label:env=dev=100", f"type:{DISK}=1000", "change=5", "label:env=dev=200")
    resources = ResourceSet(tuple(each.resource for each in found.after.resources))
    verdicts = judge_budgets([parse_budget(text) for text in texts], found, resources)
    shown = [
        (each.rule.id, each.severity, each.decided, each.monthly and each.monthly.monthly, each.urn)
        for each in budget_findings(verdicts)
    ]
    assert shown == [
        ("BUDGET-TOTAL", Severity.ERROR, True, Decimal(60), STACK_URN),
        ("BUDGET-LABEL", Severity.ERROR, True, Decimal(60), STACK_URN),
        ("BUDGET-TYPE", Severity.INFO, False, None, STACK_URN),
        ("BUDGET-CHANGE", Severity.INFO, False, None, STACK_URN),
    ]
    assert budget_findings(verdicts)[1].message.startswith("label env=dev: 160.00 /month is 60.00 over")
    assert judge(found.after, budget_findings(verdicts)) is ExitCode.VIOLATED


def test_the_ids_of_budgets_are_their_own() -> None:
    assert set(BUDGET_RULES) == {"BUDGET-TOTAL", "BUDGET-LABEL", "BUDGET-TYPE", "BUDGET-CHANGE"}
    assert not set(BUDGET_RULES) & set(rules())
    assert {rule.severity for rule in BUDGET_RULES.values()} == {Severity.ERROR}
