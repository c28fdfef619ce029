"""The plan of a preview: where its waivers come from, and what its heading says."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from infra.planning import plan_report
from infra.preview import Preview
from policies.errors import InputError
from policies.prices.book import shipped_book
from policies.report.plan import PlanReport
from policies.resources import Resource, ResourceSet, Value
from policies.rules.model import Severity
from policies.usage import Usage

TODAY = datetime.date(2026, 11, 29)
ON_DEMAND = Resource(
    urn="urn:pulumi:dev::p::gcp:tpu/v2Vm:V2Vm::eval",
    type="gcp:tpu/v2Vm:V2Vm",
    name="eval",
    inputs={"acceleratorType": "v6e-8", "runtimeVersion": "v2-alpha-tpuv6e", "zone": "us-central1-b"},
)
WAIVER = {"rule": "TPU-ON-DEMAND", "urn": "*::eval", "reason": "deadline run", "until": "2026-12-15"}


def planned(config: Mapping[str, Value], resource: Resource = ON_DEMAND) -> PlanReport:
    seen = Preview(project="p", stack="dev", resources=ResourceSet((resource,)), config=config)
    return plan_report(seen, Usage(), shipped_book(), TODAY)


@pytest.mark.parametrize(
    ("config", "waived"),
    [
        ({}, ""),
        ({"spotrail:waivers": json.dumps([WAIVER])}, "deadline run"),
        # As a preview writes it that keeps objects as they are.
        ({"spotrail:waivers": (WAIVER,)}, "deadline run"),
    ],
)
def test_waivers_come_from_the_stack_file(config: Mapping[str, Value], waived: str) -> None:
    (finding,) = (each for each in planned(config).findings if each.rule.id == "TPU-ON-DEMAND")
    assert waived in finding.waived
    assert bool(finding.waived) == bool(waived)


def test_severities_come_from_the_stack_file() -> None:
    severities = [each.severity for each in planned({}).findings if each.rule.id == "TPU-ON-DEMAND"]
    assert severities == [Severity.ERROR]
    turned = planned({"spotrail:severity": json.dumps({"TPU-ON-DEMAND": "info"})})
    assert [each.severity for each in turned.findings if each.rule.id == "TPU-ON-DEMAND"] == [Severity.INFO]
    off = planned({"spotrail:severity": json.dumps({"TPU-ON-DEMAND": "off"})})
    assert "TPU-ON-DEMAND" not in {each.rule.id for each in off.findings}


def test_a_wrong_severity_names_its_file() -> None:
    with pytest.raises(InputError, match=r"^Pulumi\.dev\.yaml: spotrail:severity\.TPU-ON-DEMAND.*warning"):
        planned({"spotrail:severity": json.dumps({"TPU-ON-DEMAND": "warnin"})})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("whatever", r'^Pulumi\.dev\.yaml: spotrail:waivers is "whatever"; it must be a list'),
        (json.dumps([{**WAIVER, "rule": "TPU-ONDEMAND"}]), r"^Pulumi\.dev\.yaml: spotrail:waivers\[0\].*TPU-ON-DEMAND"),
    ],
)
def test_a_wrong_waiver_names_its_file(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        planned({"spotrail:waivers": text})


@pytest.mark.parametrize(
    ("scheduling", "place"),
    [(None, "us-central1-b · not spot"), ({"spot": True}, "us-central1-b · spot")],
)
def test_the_heading_says_where_and_how_chips_are_bought(scheduling: Value, place: str) -> None:
    resource = replace(ON_DEMAND, inputs={**ON_DEMAND.inputs, "schedulingConfig": scheduling})
    assert planned({}, resource).place == place
