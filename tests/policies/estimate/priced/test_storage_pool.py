"""Storage pools: the pool bills, its disks do not, and what the book does not have is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import Estimate, ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

POOL = "gcp:compute/storagePool:StoragePool"
DISK = "gcp:compute/disk:Disk"
INPUTS: Mapping[str, Value] = {
    "name": "shared",
    "zone": "us-central1-b",
    "storagePoolType": "projects/p/zones/us-central1-b/storagePoolTypes/hyperdisk-balanced",
    "capacityProvisioningType": "ADVANCED",
    "performanceProvisioningType": "STANDARD",
    "poolProvisionedCapacityGb": "10240",
    "poolProvisionedIops": "20000",
    "poolProvisionedThroughput": "1024",
}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def test_a_pool_bills_and_its_disks_do_not(make: Make, price_stack: Callable[..., Estimate]) -> None:
    pool = make(POOL, "shared", INPUTS)
    member = {"type": "hyperdisk-balanced", "size": 500, "zone": "us-central1-b", "storagePool": "shared"}
    found, disk = price_stack(pool, make(DISK, "member", member)).resources
    assert found.title == "storage pool · hyperdisk-balanced"
    # 10,240 x 0.10 = 1,024 and 20,000 x 0.004 = 80; the book has no throughput
    assert [(line.name, line.amount.monthly) for line in found.components] == [
        ("capacity", Decimal(1024)),
        ("IOPS", Decimal(80)),
    ]
    assert [(part.item, part.quantity, part.unit) for part in found.unpriced] == [
        ("storage-pool.hyperdisk-balanced-standard.throughput", Decimal(1024), "MiB/s-month")
    ]
    assert disk.free == "its storage pool bills for it"


def test_standard_capacity_is_not_priced_as_advanced(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(POOL, inputs={**INPUTS, "capacityProvisioningType": "STANDARD"}))
    assert "storage-pool.hyperdisk-balanced-standard.capacity" in [part.item for part in found.unpriced]


def test_a_throughput_pool_has_no_iops(make: Make, price_first: PriceFirst) -> None:
    inputs = {**INPUTS, "storagePoolType": "hyperdisk-throughput", "poolProvisionedIops": None}
    found = price_first(make(POOL, inputs=inputs))
    assert [(part.item, part.quantity) for part in found.unpriced] == [
        ("storage-pool.hyperdisk-throughput-advanced.capacity", Decimal(10240)),
        ("storage-pool.hyperdisk-throughput-standard.throughput", Decimal(1024)),
    ]
    assert not found.unknown


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"storagePoolType": UNKNOWN}, ["storagePoolType"]),
        ({"storagePoolType": None}, ["storagePoolType"]),
        ({"zone": None}, ["zone"]),
        ({"capacityProvisioningType": None}, ["capacityProvisioningType"]),
        ({"performanceProvisioningType": UNKNOWN}, ["performanceProvisioningType"]),
        ({"poolProvisionedCapacityGb": UNKNOWN}, ["poolProvisionedCapacityGb"]),
        ({"poolProvisionedIops": None}, ["poolProvisionedIops"]),
    ],
)
def test_what_decides_and_cannot_be_seen_is_named(
    make: Make, price_first: PriceFirst, changes: Mapping[str, Value], paths: list[str]
) -> None:
    found = price_first(make(POOL, inputs={**INPUTS, **changes}))
    assert [part.path for part in found.unknown] == paths


@pytest.mark.parametrize(
    ("value", "rule"),
    [("much", "is 'much'; it must be a number"), ("999999999", "is 999,999,999; no pool has more than 100,000,000")],
)
def test_a_capacity_that_cannot_be_is_refused(
    make: Make, refusal_of: Callable[[Resource], str], value: str, rule: str
) -> None:
    refused = refusal_of(make(POOL, inputs={**INPUTS, "poolProvisionedCapacityGb": value}))
    assert f"poolProvisionedCapacityGb {rule}" in refused
