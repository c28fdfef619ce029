"""How findings come about: severity, order, waivers, malformed inputs, what passed and what had nothing to look at."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from policies.changes import Change, Op
from policies.estimate.engine import estimate
from policies.estimate.model import Estimate
from policies.money import Amount
from policies.prices.book import PriceBook, shipped_book
from policies.resources import STACK_TYPE, Resource, ResourceSet, Value
from policies.rules.engine import UNDECIDED, Judgement, run_rules
from policies.rules.model import Context, Rule, Severity, Violation, Waiver
from policies.rules.registry import rule, rules
from policies.usage import Usage

TODAY = datetime.date(2026, 11, 29)
BUCKET = "gcp:storage/bucket:Bucket"
DISK = "gcp:compute/disk:Disk"
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
GROUP = "gcp:compute/instanceGroupManager:InstanceGroupManager"
NOTHING = Estimate(currency="USD", resources=())


def make(token: str, name: str, **inputs: Value) -> Resource:
    urn = f"urn:pulumi:dev::acme::{token}::{name}"
    return Resource(urn=urn, type=token, name=name, inputs=inputs, outputs={"name": name})


def rule_of(check: Callable[[Resource, Context], Iterable[Violation]], **changes: Any) -> Rule:
    """A rule about buckets."""
    fields: dict[str, Any] = {
        "id": "GCS-TEST",
        "title": "A rule of the tests",
        "severity": Severity.WARNING,
        "applies_to": (BUCKET,),
        "remediation": "Mend it.",
        "url": "https://example.com",
        "check": check,
    }
    return Rule(**(fields | changes))


def says(*violations: Violation) -> Callable[[Resource, Context], Iterator[Violation]]:
    """A check that reports the same of every resource."""
    return lambda resource, context: iter(violations)


def judged(*only: Rule, resources: Iterable[Resource] = (), waivers: Iterable[Waiver] = ()) -> Judgement:
    stack = ResourceSet(tuple(resources) or (make(BUCKET, "a"),))
    return run_rules(stack, NOTHING, TODAY, tuple(waivers), only=only)


def waiver(until: datetime.date, urn: str = "*::a", name: str = "GCS-TEST") -> Waiver:
    return Waiver(rule=name, urn=urn, reason="deadline run", until=until)


def test_what_cannot_be_decided_is_info_and_says_so() -> None:
    undecided = Violation(message="size is known after the apply", decided=False)
    (finding,) = judged(rule_of(says(undecided), severity=Severity.ERROR)).findings
    assert (finding.severity, finding.decided) == (Severity.INFO, False)
    assert (
        finding.message
        == f"{UNDECIDED}size is known after the apply"
        == "cannot tell yet: size is known after the apply"
    )


def test_a_violation_may_say_less_than_its_rule_and_never_more() -> None:
    found = judged(
        rule_of(
            says(Violation(message="one", severity=Severity.INFO), Violation(message="two", severity=Severity.ERROR))
        )
    ).findings
    assert [(finding.message, finding.severity) for finding in found] == [
        ("two", Severity.WARNING),
        ("one", Severity.INFO),
    ]


def test_findings_stand_worst_first_then_by_money_then_by_rule_and_place() -> None:
    def money(amount: int) -> Violation:
        return Violation(message=f"{amount}", monthly=Amount.by_month(Decimal(amount)))

    rows = (
        rule_of(says(money(5)), id="GCS-B", severity=Severity.INFO),
        rule_of(says(money(7), money(9)), id="GCS-C"),
        rule_of(says(Violation(message="no money")), id="GCS-A"),
        rule_of(says(Violation(message="bad")), id="GCS-Z", severity=Severity.ERROR),
    )
    found = judged(*rows, resources=(make(BUCKET, "b"), make(BUCKET, "a"))).findings
    assert [(finding.rule.id, finding.message, finding.urn[-1]) for finding in found] == [
        ("GCS-Z", "bad", "a"),
        ("GCS-Z", "bad", "b"),
        ("GCS-C", "9", "a"),
        ("GCS-C", "9", "b"),
        ("GCS-C", "7", "a"),
        ("GCS-C", "7", "b"),
        ("GCS-A", "no money", "a"),
        ("GCS-A", "no money", "b"),
        ("GCS-B", "5", "a"),
        ("GCS-B", "5", "b"),
    ]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        pytest.param(waiver(TODAY), "deadline run, until 2026-11-29", id="the last day counts"),
        pytest.param(waiver(TODAY - datetime.timedelta(days=1)), "", id="the day after does not"),
        pytest.param(waiver(TODAY, urn="*::A"), "", id="case counts"),
        pytest.param(waiver(TODAY, urn="a"), "", id="the pattern is over the whole URN"),
        pytest.param(waiver(TODAY, name="GCS-OTHER"), "", id="another rule"),
    ],
)
def test_a_waiver_covers_its_rule_where_it_says_while_it_lasts(found: Waiver, reason: str) -> None:
    (finding,) = judged(rule_of(says(Violation(message="x"))), waivers=[found]).findings
    assert finding.waived == reason
    assert finding.severity is Severity.WARNING


def test_a_waived_rule_has_not_passed() -> None:
    result = judged(rule_of(says(Violation(message="x"))), waivers=[waiver(TODAY)])
    assert result.passed == ()


def test_what_passed_looked_at_something() -> None:
    looked, idle = rule_of(says()), rule_of(says(), id="GCS-IDLE", applies_to=(DISK,))
    result = judged(looked, idle)
    assert (result.passed, result.idle, result.findings) == ((looked,), (idle,), ())


def test_an_input_that_cannot_be_what_it_says_is_one_error_and_stops_nobody() -> None:
    def read(resource: Resource, context: Context) -> Iterator[Violation]:
        resource.number("size")
        yield Violation(message="never reached")

    one, two = rule_of(read, id="GCS-ONE"), rule_of(read, id="GCS-TWO")
    other = rule_of(says(Violation(message="other")), id="GCS-OTHER")
    result = judged(one, two, other, resources=(make(BUCKET, "a", size="lots"),))
    assert [(finding.rule.id, finding.severity, finding.message) for finding in result.findings] == [
        ("GCS-ONE", Severity.ERROR, "size is 'lots'; it must be a number"),
        ("GCS-OTHER", Severity.WARNING, "other"),
    ]
    assert result.passed == ()


def test_a_rule_that_fails_is_named_and_stops_nobody() -> None:
    def divide(resource: Resource, context: Context) -> Iterator[Violation]:
        yield Violation(message="before it failed")
        yield Violation(message=str(1 / len(resource.inputs)))

    broken, other = rule_of(divide, severity=Severity.ERROR), rule_of(says(Violation(message="other")), id="GCS-OTHER")
    result = judged(broken, other, waivers=[waiver(TODAY)])
    assert [(found.rule.id, found.message, found.decided, found.failed, found.waived) for found in result.findings] == [
        ("GCS-TEST", "before it failed", True, False, "deadline run, until 2026-11-29"),
        ("GCS-OTHER", "other", True, False, ""),
        (
            "GCS-TEST",
            "could not be evaluated: ZeroDivisionError: division by zero. This is a bug in spotrail.",
            False,
            True,
            "",
        ),
    ]
    assert result.passed == ()


def test_a_rule_about_steps_is_shown_what_stands_and_else_what_is_new() -> None:
    seen: list[Resource] = []

    def look(resource: Resource, context: Context) -> Iterator[Violation]:
        seen.append(resource)
        yield Violation(message=context.step_of[resource.urn].op.value)

    old, new, other = make(BUCKET, "old"), make(BUCKET, "new"), make(DISK, "d")
    steps = (
        Change(urn=old.urn, op=Op.DELETE, before=old),
        Change(urn=new.urn, op=Op.CREATE, after=new),
        Change(urn=other.urn, op=Op.DELETE, before=other),
    )
    gate = rule_of(look, gate=True)
    result = run_rules(ResourceSet(()), NOTHING, TODAY, only=(gate,), changes=steps)
    assert [(found.urn, found.message) for found in result.findings] == [(new.urn, "create"), (old.urn, "delete")]
    assert seen == [old, new]
    without = run_rules(ResourceSet((old,)), NOTHING, TODAY, only=(gate,))
    assert (without.idle, without.findings) == ((gate,), ())


def test_what_is_not_there_may_be_hidden() -> None:
    absent = rule_of(says(Violation(message="nothing reads it")), absence=True, severity=Severity.ERROR)
    present = rule_of(says(Violation(message="two write it")), id="GCS-THERE")
    stack = ResourceSet((make(BUCKET, "a"),))
    found = run_rules(stack, NOTHING, TODAY, only=(absent, present), hidden=4).findings
    assert [(each.message, each.severity, each.decided) for each in found] == [
        ("two write it", Severity.WARNING, True),
        ("nothing reads it, as far as is shown: 4 unchanged resources may say otherwise", Severity.INFO, True),
    ]
    (alone,) = run_rules(stack, NOTHING, TODAY, only=(absent,)).findings
    assert (alone.message, alone.severity) == ("nothing reads it", Severity.ERROR)


def test_the_shipped_rules_that_conclude_from_absence_say_so() -> None:
    assert {name for name, found in rules().items() if found.absence} == {
        "BUDGET-MISSING",
        "DISK-NO-READER",
        "DISK-UNREACHABLE-THROUGHPUT",
        "GCS-CACHE",
        "NET-IP-UNUSED",
        "STATE-WAIVER-UNUSED",
    }


def test_a_step_has_the_urn_that_is_new_where_an_alias_has_the_old() -> None:
    old, new = make(DISK, "old", size=10), make(DISK, "new", size=5)
    step = Change(urn=new.urn, op=Op.REPLACE, before=old, after=new, replace_reasons=("size",))
    result = run_rules(ResourceSet((new,)), NOTHING, TODAY, only=(rule("DISK-SHRUNK"),), changes=(step,))
    assert [(found.urn, found.failed) for found in result.findings] == [(new.urn, False)]


def test_a_set_without_its_stack_resource_still_has_a_stack_to_judge() -> None:
    seen: list[Resource] = []

    def look(resource: Resource, context: Context) -> Iterator[Violation]:
        seen.append(resource)
        yield from ()

    judged(rule_of(look, applies_to=(STACK_TYPE,)))
    assert [found.urn for found in seen] == [f"urn:pulumi:dev::acme::{STACK_TYPE}::acme-dev"]
    judged(rule_of(look, applies_to=(STACK_TYPE,)), resources=(make(STACK_TYPE, "own"),))
    assert seen[1].name == "own"


def test_an_empty_stack_passes_nothing() -> None:
    empty = ResourceSet(())
    result = run_rules(empty, estimate(empty, Usage(), shipped_book(), TODAY), TODAY)
    assert not result.findings
    assert not result.passed
    assert len(result.idle) == len(rules())


def test_the_book_of_the_estimate_is_the_book_of_the_rules() -> None:
    seen: list[PriceBook] = []

    def look(resource: Resource, context: Context) -> Iterator[Violation]:
        seen.append(context.book)
        yield from ()

    judged(rule_of(look))
    assert seen == [shipped_book()]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id": "COST-X"}, "the id must start with one of TPU-, DISK-"),
        ({"title": "x" * 81}, "1 to 80 characters"),
        ({"title": "Ends badly."}, "full stop"),
        ({"applies_to": ()}, "must apply to some type"),
        ({"remediation": ""}, "the remediation is empty"),
        ({"url": "http://example.com"}, "https://"),
    ],
)
def test_a_rule_without_its_metadata_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rule_of(says(), **changes)


def test_a_rule_is_found_by_its_id_or_by_what_is_near() -> None:
    assert rule("TPU-ON-DEMAND").id == "TPU-ON-DEMAND"
    with pytest.raises(ValueError, match=r'no rule has the id "tpu-ondemand"\. Did you mean TPU-ON-DEMAND\?'):
        rule("tpu-ondemand")
    with pytest.raises(ValueError, match=r'no rule has the id "x"\. Rules: BUDGET-ALERT-CHANNEL, '):
        rule("x")


def test_a_malformed_stack_is_priced_as_far_as_it_can_be() -> None:
    zone = "us-central1-b"
    good = make(DISK, "good", type="hyperdisk-ml", size=100, provisionedThroughput=400, zone=zone)
    bad = make(DISK, "bad", type="hyperdisk-ml", size="lots", zone=zone)
    found = estimate(ResourceSet((good, bad)), Usage(), shipped_book(), TODAY)
    assert found.amount == Amount.by_month(Decimal("56"))
    assert not found.complete
    (part,) = found.resources[1].unknown
    assert part.reason == "size is 'lots'; it must be a number"


def large_stack(count: int) -> ResourceSet:
    """So many resources of the kinds that rules join with each other: by name, by dependency, by count."""
    resources: list[Resource] = []
    for index in range(count // 8):
        resources += [
            make(TEMPLATE, f"host-{index}", machineType="ct6e-standard-4t", disks=({"source": f"elsewhere-{index}"},)),
            make(GROUP, f"group-{index}", targetSize=4, versions=({"instanceTemplate": f"host-{index}"},)),
            make(DISK, f"volume-{index}", type="hyperdisk-ml", size=100, provisionedThroughput=1000),
            make("gcp:tpu/v2Vm:V2Vm", f"node-{index}", dataDisks=({"sourceDisk": f"volume-{index}"},)),
            make(DISK, f"unread-{index}", type="hyperdisk-ml", size=100),
            make("gcp:compute/routerNat:RouterNat", f"nat-{index}"),
            make("gcp:compute/address:Address", f"ip-{index}", region="us-central1", address=f"192.0.2.{index}"),
            make(BUCKET, f"bucket-{index}", location="US"),
        ]
    return ResourceSet(tuple(resources))


def test_judging_a_large_stack_is_linear() -> None:
    def seconds(count: int) -> float:
        resources = large_stack(count)
        priced = estimate(resources, Usage(), shipped_book(), TODAY)
        start = time.thread_time()
        run_rules(resources, priced, TODAY)
        return time.thread_time() - start

    seconds(400)
    # Ten times the resources: a quadratic step anywhere would take a hundred times as long.
    assert min(seconds(4000), seconds(4000)) < 30 * seconds(400)
