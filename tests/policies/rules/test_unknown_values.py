"""A first preview, with values that nobody can see yet: what can be judged is judged, the rest is counted apart."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from policies.estimate.engine import estimate
from policies.exit_codes import ExitCode, judge
from policies.prices.book import shipped_book
from policies.resources import SECRET, UNKNOWN, Opaque, Resource, ResourceSet, Value
from policies.rules.engine import Judgement, run_rules
from policies.rules.model import Severity
from policies.usage import Usage

TODAY = datetime.date(2026, 11, 29)
DISK = "gcp:compute/disk:Disk"
LABELS = {"owner": "ml", "env": "dev", "ttl": "7d", "managed-by": "spotrail"}


def disk(name: str, **inputs: Value) -> Resource:
    found: dict[str, Value] = {"type": "hyperdisk-ml", "zone": "us-central1-b", "labels": LABELS}
    return Resource(urn=f"urn:pulumi:dev::acme::{DISK}::{name}", type=DISK, name=name, inputs=found | inputs)


def judged(*disks: Resource) -> tuple[Judgement, ExitCode]:
    stack = ResourceSet(disks)
    priced = estimate(stack, Usage(), shipped_book(), TODAY)
    result = run_rules(stack, priced, TODAY)
    return result, judge(priced, result.findings)


def told(result: Judgement, rule: str) -> list[tuple[str, Severity, bool]]:
    return [(each.urn[-2:], each.severity, each.decided) for each in result.findings if each.rule.id == rule]


FAST = disk("D2", size=100, provisionedThroughput=1_200_000)


@pytest.mark.parametrize("hidden", [UNKNOWN, SECRET])
def test_a_violation_elsewhere_is_found_beside_what_cannot_be_judged(hidden: Opaque) -> None:
    result, code = judged(disk("D1", size=hidden, provisionedThroughput=400), FAST)
    assert told(result, "DISK-LIMITS") == [("D2", Severity.ERROR, True), ("D1", Severity.INFO, False)]
    assert code is ExitCode.VIOLATED
    (apart,) = [each for each in result.findings if each.rule.id == "DISK-LIMITS" and not each.decided]
    assert apart.message == f"cannot tell yet: size is {hidden.value}"


def test_alone_it_cannot_be_decided() -> None:
    result, code = judged(disk("D1", size=UNKNOWN, provisionedThroughput=400))
    assert told(result, "DISK-LIMITS") == [("D1", Severity.INFO, False)]
    assert not [each for each in result.findings if each.decided and each.severity is Severity.ERROR]
    assert "DISK-LIMITS" not in {each.id for each in result.passed}
    assert code is ExitCode.UNDECIDED


def test_a_rule_about_something_else_judges_both() -> None:
    bare = [disk("D1", size=UNKNOWN, labels=None), disk("D2", size=100, provisionedThroughput=400, labels={})]
    result, _ = judged(*bare)
    assert told(result, "DISK-LABELS") == [("D1", Severity.WARNING, True), ("D2", Severity.WARNING, True)]


def test_known_at_last_it_is_an_error_again() -> None:
    result, code = judged(disk("D1", size=100, provisionedThroughput=1_200_000))
    assert told(result, "DISK-LIMITS") == [("D1", Severity.ERROR, True)]
    assert code is ExitCode.VIOLATED


def test_a_malformed_user_of_disks_is_told_of_itself_alone() -> None:
    """Its number of machines is not known then; no disk is reported for it, attached or not."""
    tpu = Resource(
        urn="urn:pulumi:dev::acme::gcp:tpu/v2Vm:V2Vm::T1",
        type="gcp:tpu/v2Vm:V2Vm",
        name="T1",
        inputs={"acceleratorType": ("v6e-8",), "zone": "us-central1-b", "labels": LABELS},
    )
    attached = {"dataDisks": ({"sourceDisk": "D1", "mode": "READ_ONLY"},)}
    bought = [disk(name, size=100, provisionedThroughput=400, accessMode="READ_ONLY_MANY") for name in ("D1", "D2")]
    disks = [replace(each, inputs={**each.inputs, "name": each.name}) for each in bought]
    bare, _ = judged(tpu, *disks)
    assert told(bare, "DISK-LIMITS") == told(bare, "DISK-SHARED-WRITE") == []
    assert told(bare, "TPU-SHAPE") == [("T1", Severity.ERROR, True)]
    reading, _ = judged(replace(tpu, inputs={**tpu.inputs, **attached}), *disks)
    assert told(reading, "DISK-LIMITS") == [("D1", Severity.INFO, False)]
    assert told(reading, "DISK-SHARED-WRITE") == [("D1", Severity.INFO, False)]
