"""What a finding is known by outlives its amounts, and each resource is shown by its whole name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias
from xml.etree import ElementTree

import pytest

Command: TypeAlias = Callable[..., Any]
DISK = "gcp:compute/disk:Disk"
FORMATS = ("table", "markdown", "html", "json", "sarif", "junit", "github", "focus-csv", "infracost-json")


def volume(name: str, mibps: int) -> dict[str, Any]:
    inputs = {"type": "hyperdisk-ml", "size": 200, "provisionedThroughput": mibps, "zone": "us-central1-b"}
    return {"urn": f"urn:pulumi:dev::reef::{DISK}::{name}", "custom": True, "type": DISK, "inputs": inputs}


def exported(*resources: dict[str, Any]) -> bytes:
    return json.dumps({"version": 3, "deployment": {"resources": resources}}).encode()


def by_fingerprint(text: str) -> set[tuple[str, ...]]:
    results = json.loads(text)["runs"][0]["results"]
    return {(result["ruleId"], *sorted(result["partialFingerprints"].values())) for result in results}


def by_test_case(text: str) -> set[tuple[str, ...]]:
    return {(case.attrib["classname"], case.attrib["name"]) for case in ElementTree.fromstring(text).iter("testcase")}


def by_rule_and_urn(text: str) -> set[tuple[str, ...]]:
    return {(each["rule"], each["urn"]) for each in json.loads(text)["findings"]}


@pytest.mark.parametrize(
    ("form", "identities"), [("sarif", by_fingerprint), ("junit", by_test_case), ("json", by_rule_and_urn)]
)
def test_what_findings_are_known_by_outlives_amounts(
    spotrail: Command, form: str, identities: Callable[[str], set[tuple[str, ...]]]
) -> None:
    """Twice the throughput, another limit and another day: other amounts and messages, the same findings."""
    runs = [
        spotrail("check", "-", "--format", form, "--budget", limit, "--as-of", day, stdin=exported(volume("v", mibps)))
        for mibps, limit, day in ((1200, "100", "2026-11-29"), (2400, "50", "2026-11-30"))
    ]
    assert [ran.returncode for ran in runs] == [3, 3]
    one, two = (identities(ran.stdout) for ran in runs)
    assert one == two
    assert len({each[0] for each in one}) > 2
    assert runs[0].stdout != runs[1].stdout


@pytest.mark.parametrize("form", FORMATS)
def test_names_that_hold_the_sign_between_the_parts_of_a_urn_are_told_apart(spotrail: Command, form: str) -> None:
    stack = exported(volume("blue::reef", 1200), volume("red::reef", 400))
    text = spotrail("check", "-", "--format", form, stdin=stack).stdout
    for name in ("blue::reef", "red::reef"):
        assert any(name in shown.replace("%3A", ":") for shown in (text, text.replace("\\", ""))), name


@pytest.mark.parametrize("form", ["markdown", "html", "sarif", "github"])
@pytest.mark.parametrize(("limit", "advice"), [("total=1", "shrink"), ("change=1000", "Supply what the message names")])
def test_a_budget_that_nobody_can_judge_asks_for_what_is_missing(
    spotrail: Command, form: str, limit: str, advice: str
) -> None:
    ran = spotrail("check", "-", "--format", form, "--budget", limit, stdin=exported(volume("v", 400)))
    assert advice in ran.stdout
    assert ("Supply what" in ran.stdout) == (limit == "change=1000")


def test_a_table_names_a_resource_whole(spotrail: Command) -> None:
    for command in ("check", "estimate"):
        text = spotrail(command, "-", stdin=exported(volume("blue::reef", 1200))).stdout
        assert "DISK-THROUGHPUT-ABOVE-FLOOR  blue::reef  1,200 MiB/s" in text
