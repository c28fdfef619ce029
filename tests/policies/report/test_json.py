"""The JSON of a plan: exactly the keys of `spotrail.estimate/1`, exact decimals, null only where nothing is known."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from policies.report.json import plan_document, plan_json
from policies.report.plan import PlanReport

TOP = {
    "schema", "currency", "price_book", "complete", "fresh", "hourly", "monthly", "before", "delta", "resources",
    "findings", "notes", "quotas", "one_off",
}  # fmt: skip
RESOURCE = {"urn", "type", "name", "location", "op", "hourly", "monthly", "components", "unknown", "unpriced"}
COMPONENT = {"name", "item", "quantity", "unit", "unit_price", "hourly", "monthly", "note"}
FINDING = {"rule", "severity", "urn", "message", "monthly", "remediation", "waived"}
DECIMAL = re.compile(r"-?[0-9]+\.[0-9]{2,}")


def read(report: PlanReport) -> dict[str, Any]:
    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is a number, not a decimal string")

    document: dict[str, Any] = json.loads(
        plan_json(report), parse_float=refuse, parse_int=refuse, parse_constant=refuse
    )
    return document


def test_the_keys_are_those_of_the_schema(plan: PlanReport) -> None:
    document = read(plan)
    assert document["schema"] == "spotrail.estimate/1"
    assert set(document) == TOP
    assert all(set(resource) == RESOURCE for resource in document["resources"])
    assert all(set(line) == COMPONENT for resource in document["resources"] for line in resource["components"])
    assert all(set(finding) == FINDING for finding in document["findings"])
    assert document["before"] is None
    assert document["delta"] is None
    assert document["price_book"] == {"as_of": "2026-11-01", "sha256": plan.book_sha256}


def numbers(node: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from numbers(value, name)
    elif isinstance(node, list):
        for value in node:
            yield from numbers(value, key)
    elif key in {"hourly", "monthly", "quantity", "unit_price", "cost"} and node is not None:
        yield key, node


def test_every_number_is_a_plain_decimal(plan: PlanReport, incomplete_plan: PlanReport) -> None:
    for report in (plan, incomplete_plan):
        found = list(numbers(read(report)))
        assert found
        assert [pair for pair in found if not DECIMAL.fullmatch(pair[1])] == []


def test_a_month_is_exact_by_the_month_and_an_hour_by_the_hour(plan: PlanReport) -> None:
    lines = {line["item"]: line for resource in read(plan)["resources"] for line in resource["components"]}
    chips = lines["tpu.v6e.chip"]
    assert (chips["hourly"], chips["monthly"]) == ("4.80", "3504.00")
    # 144 / 730 = 0.19726027397260..., to 12 places half-even
    throughput = lines["disk.hyperdisk-ml.throughput"]
    assert (throughput["hourly"], throughput["monthly"]) == ("0.197260273973", "144.00")


def test_totals_add_first_and_divide_once(plan: PlanReport, rounded_plan: PlanReport) -> None:
    document = read(plan)
    assert document["monthly"] == "3667.50"
    assert sum(Decimal(resource["monthly"]) for resource in document["resources"]) == Decimal("3667.50")
    assert read(rounded_plan)["monthly"] == "1.005"


def test_a_free_resource_costs_nothing_and_an_unknown_one_null(plan: PlanReport, incomplete_plan: PlanReport) -> None:
    (network,) = (resource for resource in read(plan)["resources"] if resource["name"] == "net")
    assert (network["monthly"], network["components"]) == ("0.00", [])
    document = read(incomplete_plan)
    assert document["complete"] is False
    assert document["monthly"] == "3504.00"
    (volume,) = (resource for resource in document["resources"] if resource["name"] == "llama-eu")
    assert (volume["hourly"], volume["monthly"]) == (None, None)
    assert volume["unpriced"][0] == {
        "item": "disk.hyperdisk-ml.capacity",
        "reason": volume["unpriced"][0]["reason"],
        "quantity": "200.00",
        "unit": "GiB-month",
    }
    assert "europe-west4" in volume["unpriced"][0]["reason"]


def test_a_total_of_which_nothing_is_known_is_null(unknown_plan: PlanReport) -> None:
    document = read(unknown_plan)
    assert (document["hourly"], document["monthly"], document["complete"]) == (None, None, False)


def test_findings_carry_their_money_and_their_waiver(plan: PlanReport) -> None:
    error, warning, waived = read(plan)["findings"]
    assert (error["severity"], error["monthly"], error["waived"]) == ("error", None, "")
    assert (warning["rule"], warning["monthly"]) == ("DISK-EXAMPLE", "96.00")
    assert waived["waived"] == "deadline run, until 2026-12-15"


def test_quotas_and_notes(plan: PlanReport) -> None:
    document = read(plan)
    assert document["quotas"][0] == {
        "metric": "v6e spot chips",
        "location": "us-central1-b",
        "needed": "8",
        "default": "0",
        "note": "PREEMPTIBLE-TPU-V6E",
    }
    assert document["quotas"][1]["default"] is None
    assert "the list price of alerting.condition is undated: it counts as stale" in document["notes"]
    assert document["fresh"] is False


def test_text_and_document_are_one(plan: PlanReport) -> None:
    assert json.loads(plan_json(plan)) == plan_document(plan)
    assert plan_json(plan).endswith("}\n")
