"""The CSV in the columns of FOCUS: costs that add up, empty where a bill would be needed, no formula in any cell."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.report.focus_csv import COLUMNS, stack_focus
from policies.report.stack import StackReport
from policies.resources import SECRET

FORMULA = tuple("=+-@\t\r\n＝＋－＠")

SHOWN = ("ResourceName", "ChargeDescription", "PricingQuantity", "PricingUnit", "ListUnitPrice", "ListCost",
         "PricingCategory", "ServiceName")  # fmt: skip


def rows(report: StackReport) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(stack_focus(report)), strict=True)
    found = list(reader)
    assert tuple(reader.fieldnames or ()) == COLUMNS
    assert all(None not in row and None not in row.values() for row in found)
    return found


def test_every_component_is_a_row_dearest_resource_first(stack_report: StackReport) -> None:
    shown = [tuple(row[name] for name in SHOWN) for row in rows(stack_report)]
    assert shown == [
        # 8 chips for 730 hours
        ("trainer", "TPU v6e chip, spot", "5840.00", "chip-hour", "0.60", "3504.00", "Dynamic", "Cloud TPU"),
        ("llama", "capacity", "200.00", "GiB-month", "0.08", "16.00", "Standard", "Compute Engine"),
        ("llama", "throughput", "400.00", "MiB/s-month", "0.12", "48.00", "Standard", "Compute Engine"),
    ]


def test_the_costs_add_up_and_what_only_a_bill_knows_is_empty(stack_report: StackReport) -> None:
    found = rows(stack_report)
    assert sum(Decimal(row["ListCost"]) for row in found) == stack_report.change.after.amount.monthly
    for row in found:
        assert Decimal(row["PricingQuantity"]) * Decimal(row["ListUnitPrice"]) == Decimal(row["ListCost"])
        assert {row[name] for name in ("BilledCost", "ContractedCost", "EffectiveCost", "BillingAccountId")} == {""}
        assert (row["RegionId"], row["AvailabilityZone"]) == ("us-central1", "us-central1-b")
        assert (row["ChargeCategory"], row["BillingCurrency"]) == ("Usage", "USD")


def test_what_has_no_price_has_no_cost(doubtful_report: StackReport) -> None:
    found = rows(doubtful_report)
    missing = [row for row in found if row["x_Estimate"] == "no price"]
    assert [(row["ResourceName"], row["SkuMeter"], row["PricingQuantity"], row["ListCost"]) for row in missing] == [
        ("llama-eu", "disk.hyperdisk-ml.capacity", "200.00", ""),
        ("llama-eu", "disk.hyperdisk-ml.throughput", "1200.00", ""),
    ]
    assert {row["x_Confidence"] for row in found} == {"fresh", "undated", ""}
    assert {row["RegionId"] for row in found if row["ResourceName"] == "checkpoints"} == {"us-central1"}


def test_labels_are_tags_and_secrets_are_not(
    stack_report: StackReport, stack_report_of: Callable[..., StackReport]
) -> None:
    volume = next(each.after for each in stack_report.change.resources if each.urn.endswith("llama"))
    assert volume is not None
    inputs = {**volume.resource.inputs, "labels": {"env": "dev", "token": SECRET}}
    found = rows(stack_report_of(None, (dataclasses.replace(volume.resource, inputs=inputs),)))
    assert {row["Tags"] for row in found} == {'{"env": "dev"}'}


@settings(max_examples=60)
@given(text=st.text(min_size=1, max_size=60) | st.text(alphabet=" \t\n\r=+-@\"',;", min_size=1, max_size=20))
def test_no_text_is_a_formula(text: str, poisoned: Callable[[str], StackReport]) -> None:
    check(text, poisoned)


def test_no_hostile_text_is_a_formula(hostile: str, poisoned: Callable[[str], StackReport]) -> None:
    check(hostile, poisoned)


def check(text: str, poisoned: Callable[[str], StackReport]) -> None:
    report = poisoned(text)
    found = rows(report)
    assert len(found) == len(rows(poisoned("tame")))
    assert stack_focus(report).count("\n") == len(found) + 1
    for row in found:
        json.loads(row["Tags"])
        for value in row.values():
            assert value.isprintable()
            assert not value.startswith(FORMULA)
