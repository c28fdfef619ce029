"""Cloud Functions: both generations are counted by what their memory brings with it, and neither is free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

FIRST = "gcp:cloudfunctions/function:Function"
SECOND = "gcp:cloudfunctionsv2/function:Function"
PLACE: Mapping[str, Value] = {"region": "us-central1", "location": "us-central1"}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def missing(found: ResourceEstimate) -> list[tuple[str, Decimal | None, str]]:
    return [(part.item, part.quantity, part.unit) for part in found.unpriced]


def test_a_function_of_the_first_generation_has_items_of_its_own(make: Make, price_first: PriceFirst) -> None:
    inputs = {**PLACE, "availableMemoryMb": 512, "minInstances": 1}
    found = price_first(make(FIRST, inputs=inputs), it={"executions": "2000000", "execution_seconds": "0.1"})
    # One kept: 730 x 3,600 = 2,628,000 s of 0.8 GHz and 0.5 GiB. Calls: 200,000 s of the same.
    assert missing(found) == [
        ("functions.cpu-kept", Decimal("2102400.0"), "GHz-second"),
        ("functions.cpu", Decimal(160000), "GHz-second"),
        ("functions.memory-kept", Decimal(1314000), "GiB-second"),
        ("functions.memory", Decimal(100000), "GiB-second"),
        ("functions.requests", Decimal(2), "million"),
    ]
    assert (found.title, found.location) == ("function", "us-central1")


@pytest.mark.parametrize(
    ("config", "vcpus", "gib"),
    [
        ({}, "0.167", "0.25"),
        ({"availableMemory": "1Gi"}, "0.583", "1"),
        ({"availableMemory": "3Gi"}, "2", "3"),
        ({"availableMemory": "512Mi", "availableCpu": "1"}, "1", "0.5"),
    ],
)
def test_a_function_of_the_second_bills_as_a_service(
    make: Make, price_first: PriceFirst, config: Mapping[str, Value], vcpus: str, gib: str
) -> None:
    found = price_first(make(SECOND, inputs={**PLACE, "serviceConfig": config}), it={"executions": "1000"})
    # 1,000 calls of 60 s
    assert missing(found) == [
        ("run.service.vcpu", 60000 * Decimal(vcpus), "vCPU-second"),
        ("run.service.memory", 60000 * Decimal(gib), "GiB-second"),
        ("run.service.requests", Decimal("0.001"), "million"),
    ]


@pytest.mark.parametrize("type", [FIRST, SECOND])
def test_a_function_that_nobody_calls_says_what_to_set(make: Make, price_first: PriceFirst, type: str) -> None:
    found = price_first(make(type, inputs=PLACE))
    assert found.complete
    assert len(found.notes) == 3
    assert all("unpriced as soon as usage.it.executions is set" in note for note in found.notes)


@pytest.mark.parametrize(
    ("type", "inputs", "path"),
    [
        (FIRST, {"region": UNKNOWN}, "region"),
        (FIRST, {"availableMemoryMb": UNKNOWN}, "availableMemoryMb"),
        (FIRST, {"availableMemoryMb": 16384}, "availableMemoryMb"),
        (FIRST, {"minInstances": UNKNOWN}, "minInstances"),
        (SECOND, {"location": None}, "location"),
        (SECOND, {"serviceConfig": {"availableMemory": UNKNOWN}}, "serviceConfig.availableMemory"),
        (SECOND, {"serviceConfig": {"availableCpu": UNKNOWN}}, "serviceConfig.availableCpu"),
        (SECOND, {"serviceConfig": {"availableMemory": "64Gi"}}, "serviceConfig.availableCpu"),
        (SECOND, {"serviceConfig": {"minInstanceCount": UNKNOWN}}, "serviceConfig.minInstanceCount"),
    ],
)
def test_what_decides_and_cannot_be_seen_is_named(
    make: Make, price_first: PriceFirst, type: str, inputs: Mapping[str, Value], path: str
) -> None:
    found = price_first(make(type, inputs={**PLACE, **inputs}))
    assert [part.path for part in found.unknown] == [path]
    assert found.nothing_known


def test_memory_that_is_no_quantity_is_refused(make: Make, refusal_of: Callable[[Resource], str]) -> None:
    said = refusal_of(make(SECOND, inputs={**PLACE, "serviceConfig": {"availableMemory": "much"}}))
    assert "serviceConfig.availableMemory is 'much'; it must be a quantity such as" in said
