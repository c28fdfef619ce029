"""Who says what in the pack: every finding once, an error at the level of its rule, and the stack priced once."""

from __future__ import annotations

import datetime
import itertools

import pytest

from policies.policy_desk import Desk, shared_out
from policies.resources import Resource, ResourceSet
from policies.rules.model import Finding, Rule, Severity

AS_OF = datetime.date(2026, 11, 29)
KINDS = list(itertools.product(Severity, (True, False), ("", "deadline run")))


def rule(severity: Severity) -> Rule:
    return Rule(
        id="DISK-EXAMPLE",
        title="A volume is an example",
        severity=severity,
        applies_to=("gcp:compute/disk:Disk",),
        remediation="Make it one.",
        url="https://example.com",
        check=lambda resource, context: (),
    )


def findings(of: Rule) -> list[Finding]:
    """One of each kind."""
    return [
        Finding(rule=of, severity=severity, urn=f"u{number}", message="m", decided=decided, waived=waived)
        for number, (severity, decided, waived) in enumerate(KINDS)
    ]


@pytest.mark.parametrize("severity", Severity)
def test_every_finding_is_said_by_exactly_one(severity: Severity) -> None:
    found = findings(rule(severity))
    shares = shared_out(rule(severity), found)
    said = [each.urn for each in (*shares.own, *shares.advice, *shares.undecided)]
    assert sorted(said) == sorted(each.urn for each in found)


def test_a_mandatory_rule_reports_errors_alone_and_an_advisory_one_all_that_is_decided() -> None:
    for severity, reported in ((Severity.ERROR, {Severity.ERROR}), (Severity.WARNING, set(Severity))):
        shares = shared_out(rule(severity), findings(rule(severity)))
        assert {each.severity for each in shares.own} == reported
        assert all(each.decided and not each.waived for each in shares.own)
        assert not any(each.decided or each.waived for each in shares.undecided)


def test_the_same_stack_is_priced_once() -> None:
    urn = "urn:pulumi:dev::acme::gcp:compute/disk:Disk::v"
    inputs = {"type": "pd-balanced", "size": 100, "zone": "us-central1-b"}
    stack = ResourceSet((Resource(urn=urn, type="gcp:compute/disk:Disk", name="v", inputs=inputs),))
    desk = Desk()
    first = desk.price(stack, AS_OF)
    assert desk.price(ResourceSet(stack.resources), AS_OF) is first
    assert desk.price(stack, AS_OF + datetime.timedelta(days=1)) is not first
