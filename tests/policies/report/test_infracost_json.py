"""Infracost's JSON 0.2: the keys that its schema demands and no other, exact amounts, and null where none is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.report.infracost_json import stack_infracost
from policies.report.stack import StackReport

AMOUNT = {"type": ["string", "null"], "pattern": r"^-?[0-9]+\.[0-9]{2,}$"}
TEXT = {"type": "string"}
NUMBER = {"type": "integer", "minimum": 0}
TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT00:00:00Z$"}


def closed(*amounts: str, **others: Any) -> dict[str, Any]:
    """An object with exactly these keys."""
    known = {**dict.fromkeys(amounts, AMOUNT), **others}
    return {"type": "object", "required": list(known), "properties": known, "additionalProperties": False}


def every(item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item}


def named(value: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value}


COMPONENT = closed("hourlyQuantity", "monthlyQuantity", "price", "hourlyCost", "monthlyCost",
                   name=TEXT, unit=TEXT, usageBased={"type": "boolean"}, priceNotFound={"type": "boolean"})  # fmt: skip
HEAD = {"name": TEXT, "resourceType": TEXT, "tags": named(TEXT), "metadata": closed(urn=TEXT, location=TEXT)}
RESOURCE = closed("hourlyCost", "monthlyCost", "monthlyUsageCost", costComponents=every(COMPONENT), **HEAD)
TOTALS = ("totalHourlyCost", "totalMonthlyCost", "totalMonthlyUsageCost")
SIDE = closed(*TOTALS, resources=every(RESOURCE), freeResources=every(closed(**HEAD)))
SUMMARY = closed(
    **dict.fromkeys(("totalResources", "totalDetectedResources", "totalSupportedResources", "totalUnsupportedResources",
                     "totalUsageBasedResources", "totalNoPriceResources"), NUMBER),
    **dict.fromkeys(("supportedResourceCounts", "unsupportedResourceCounts", "noPriceResourceCounts"), named(NUMBER)),
)  # fmt: skip
VCS = ("vcsBranch", "vcsCommitSha", "vcsCommitAuthorName", "vcsCommitAuthorEmail", "vcsCommitMessage")
COMMAND = {"enum": ["breakdown", "diff"]}
SHAPE = closed(
    *TOTALS,
    *(f"{side}{total[0].upper()}{total[1:]}" for side in ("past", "diff") for total in TOTALS),
    version={"const": "0.2"},
    currency={"const": "USD"},
    timeGenerated=TIME,
    metadata=closed(infracostCommand=COMMAND, vcsCommitTimestamp=TIME, **dict.fromkeys(VCS, TEXT)),
    projects=every(closed(name=TEXT, displayName=TEXT, metadata=closed(path=TEXT, type=TEXT), pastBreakdown=SIDE,
                          breakdown=SIDE, diff=closed(*TOTALS, resources=every(RESOURCE)), summary=SUMMARY)),
    summary=SUMMARY,
)  # fmt: skip
"""What the schema of Infracost requires and allows, with our own stricter words for amounts and times."""
VALIDATOR = jsonschema.Draft202012Validator(SHAPE)


def read(report: StackReport) -> dict[str, Any]:
    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    document: dict[str, Any] = json.loads(stack_infracost(report), parse_constant=refuse)
    VALIDATOR.validate(document)
    return document


def resources(document: dict[str, Any], side: str) -> dict[str, Any]:
    return {each["name"].rpartition(".")[2]: each for each in document["projects"][0][side]["resources"]}


def test_totals_and_their_difference(stack_report: StackReport) -> None:
    document = read(stack_report)
    assert (document["pastTotalMonthlyCost"], document["totalMonthlyCost"], document["diffTotalMonthlyCost"]) == (
        "162.00", "3568.00", "3406.00",
    )  # fmt: skip
    # 3,568 / 730 = 4.8876712328767..., to 12 places
    assert document["totalHourlyCost"] == "4.887671232877"
    assert (document["pastTotalMonthlyUsageCost"], document["totalMonthlyUsageCost"]) == ("2.00", "0.00")
    assert document["diffTotalMonthlyUsageCost"] == "-2.00"
    assert document["metadata"]["infracostCommand"] == "diff"
    assert document["timeGenerated"] == "2026-11-15T00:00:00Z"


def test_the_parts_of_a_change(stack_report: StackReport) -> None:
    moved = resources(read(stack_report), "diff")
    assert {name: each["monthlyCost"] for name, each in moved.items()} == {
        "trainer": "3504.00",
        "checkpoints": "-2.00",
        "llama": "-96.00",
    }
    (part,) = moved["llama"]["costComponents"]
    assert part == {
        "name": "throughput",
        "unit": "MiB/s-month",
        "hourlyQuantity": "-1.095890410959",
        "monthlyQuantity": "-800.00",
        "price": "0.00",
        "hourlyCost": "-0.131506849315",
        "monthlyCost": "-96.00",
        "usageBased": False,
        "priceNotFound": False,
    }


def components(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for side in ("pastBreakdown", "breakdown"):
        for resource in document["projects"][0][side]["resources"]:
            yield from resource["costComponents"]


def test_quantity_times_price_is_the_cost(stack_report: StackReport, doubtful_report: StackReport) -> None:
    found = [part for report in (stack_report, doubtful_report) for part in components(read(report))]
    priced = [part for part in found if not part["priceNotFound"]]
    assert len(priced) > 10
    for part in priced:
        assert Decimal(part["monthlyQuantity"]) * Decimal(part["price"]) == Decimal(part["monthlyCost"]), part
    (chips,) = {part["monthlyQuantity"] for part in priced if part["unit"] == "chip-hour"}
    assert chips == "5840.00"


def test_what_has_no_price_is_said_and_never_zero(
    doubtful_report: StackReport, stack_report_of: Callable[..., StackReport]
) -> None:
    document = read(doubtful_report)
    volume = resources(document, "breakdown")["llama-eu"]
    assert (volume["monthlyCost"], volume["hourlyCost"]) == (None, None)
    assert [(part["priceNotFound"], part["price"], part["monthlyCost"]) for part in volume["costComponents"]] == [
        (True, None, None),
        (True, None, None),
    ]
    # 12 resources are hidden: no total is that of the stack, the difference is
    assert (document["totalMonthlyCost"], document["pastTotalMonthlyCost"]) == (None, None)
    assert document["diffTotalMonthlyCost"] == "3.50"
    (unknown,) = (each.after for each in doubtful_report.change.resources if each.after and each.after.nothing_known)
    alone = read(stack_report_of(None, (unknown.resource,)))
    assert (alone["totalMonthlyCost"], alone["diffTotalMonthlyCost"], alone["pastTotalMonthlyCost"]) == (
        None,
        None,
        None,
    )
    assert alone["metadata"]["infracostCommand"] == "breakdown"


def test_the_summary_counts_what_has_a_price(doubtful_report: StackReport) -> None:
    summary = read(doubtful_report)["summary"]
    assert summary["totalDetectedResources"] == 8
    assert summary["noPriceResourceCounts"] == {
        "gcp:compute/network:Network": 1,
        "gcp:projects/iAMMember:IAMMember": 2,
    }
    assert summary["totalSupportedResources"] == 5
    assert summary["totalUsageBasedResources"] == 3


def test_a_type_that_nobody_prices_is_unsupported(
    stack_report_of: Callable[..., StackReport], doubtful_report: StackReport
) -> None:
    first = doubtful_report.change.after.resources[0].resource
    cache = type(first)(urn="urn:pulumi:dev::acme::gcp:redis/instance:Instance::c", type="gcp:redis/instance:Instance",
                        name="c", inputs={"labels": {"env": "dev"}})  # fmt: skip
    document = read(stack_report_of(None, (first, cache)))
    assert document["summary"]["unsupportedResourceCounts"] == {"gcp:redis/instance:Instance": 1}
    assert resources(document, "breakdown")["c"]["tags"] == {"env": "dev"}
    assert document["totalMonthlyCost"] == "3504.00"


def test_the_shape_can_refuse(stack_report: StackReport) -> None:
    document = read(stack_report)
    document["projects"][0]["diff"]["resources"][0]["cost"] = "1.00"
    with pytest.raises(jsonschema.ValidationError, match="'cost' was unexpected"):
        VALIDATOR.validate(document)


@settings(max_examples=40)
@given(text=st.text(min_size=1, max_size=60))
def test_no_text_breaks_it(text: str, poisoned: Callable[[str], StackReport]) -> None:
    check(text, poisoned)


def test_no_hostile_text_breaks_it(hostile: str, poisoned: Callable[[str], StackReport]) -> None:
    check(hostile, poisoned)


def check(text: str, poisoned: Callable[[str], StackReport]) -> None:
    shown = stack_infracost(poisoned(text))
    assert shown.isascii()
    assert len(resources(read(poisoned(text)), "breakdown")) == 2
