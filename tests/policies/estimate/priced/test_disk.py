"""Disks: provisioned performance, unset values, unknown types, regional disks, pools."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import SECRET, UNKNOWN, Resource, Value

DISK = "gcp:compute/disk:Disk"
REGION_DISK = "gcp:compute/regionDisk:RegionDisk"
SNAPSHOT = "gcp:compute/snapshot:Snapshot"
ZONE = "us-central1-b"

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]
RefusalOf = Callable[[Resource], str]


@pytest.mark.parametrize(
    ("inputs", "monthly", "names"),
    [
        # 140 x 0.08 + 12,000 x 0.12 = 11.20 + 1,440.00
        ({"type": "hyperdisk-ml", "size": 140, "provisionedThroughput": 12000}, "1451.20", ["capacity", "throughput"]),
        # A GiB is a GiB: 100 x 0.08 = 8.00 of capacity, + 400 x 0.12 = 48.00
        ({"type": "hyperdisk-ml", "size": 100, "provisionedThroughput": 400}, "56.00", ["capacity", "throughput"]),
        # Only what is above 3,000 IOPS and 140 MiB/s: 100 x 0.08 + 60 x 0.04 + 1,000 x 0.005 = 8 + 2.40 + 5
        (
            {"type": "hyperdisk-balanced", "size": 100, "provisionedIops": 4000, "provisionedThroughput": 200},
            "15.40",
            ["capacity", "throughput", "IOPS"],
        ),
        (
            {"type": "hyperdisk-balanced", "size": 100, "provisionedIops": 3000, "provisionedThroughput": 140},
            "8.00",
            ["capacity"],
        ),
        # 1,000 x 0.125 + 10,000 x 0.032 = 125 + 320
        ({"type": "hyperdisk-extreme", "size": 1000, "provisionedIops": 10000}, "445.00", ["capacity", "IOPS"]),
        # 2,048 x 0.005 + 100 x 0.25 = 10.24 + 25
        (
            {"type": "hyperdisk-throughput", "size": 2048, "provisionedThroughput": 100},
            "35.24",
            ["capacity", "throughput"],
        ),
        # 500 x 0.125 + 5,000 x 0.065 = 62.50 + 325
        ({"type": "pd-extreme", "size": 500, "provisionedIops": 5000}, "387.50", ["capacity", "IOPS"]),
        ({"type": "projects/p/zones/z/diskTypes/pd-balanced", "size": 50}, "5.00", ["capacity"]),
        ({"type": "pd-ssd", "size": "100"}, "17.00", ["capacity"]),
    ],
)
def test_capacity_and_performance_bill_each(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], monthly: str, names: list[str]
) -> None:
    found = price_first(make(DISK, inputs={**inputs, "zone": ZONE}))
    assert found.amount.monthly == Decimal(monthly)
    assert [line.name for line in found.components] == names
    assert found.complete


@pytest.mark.parametrize(
    ("gib", "throughput", "monthly"),
    [
        # max(24 x GiB, 400): 500 GiB give 12,000 MiB/s = 1,440 + 40; 10 GiB give 400 = 48 + 0.80
        (500, 12000, "1480.00"),
        (2048, 49152, "6062.08"),
        (10, 400, "48.80"),
    ],
)
def test_unset_throughput_is_what_google_provisions(
    make: Make, price_first: PriceFirst, gib: int, throughput: int, monthly: str
) -> None:
    found = price_first(make(DISK, inputs={"type": "hyperdisk-ml", "size": gib, "zone": ZONE}))
    assert found.components[1].quantity == throughput
    assert found.components[1].note == "not set: Google provisions max(24 x GiB, 400)"
    assert found.amount.monthly == Decimal(monthly)


def test_unset_performance_of_balanced_is_above_what_is_included(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(DISK, inputs={"type": "hyperdisk-balanced", "size": 100, "zone": ZONE}))
    # 3,000 + 6 x 100 = 3,600 IOPS and 140 + 1.5 x 100 = 290 MiB/s: 600 x 0.005 + 150 x 0.04 = 3 + 6, + 8 of capacity
    assert found.amount.monthly == Decimal(17)
    assert "3,600, of which 3,000 are included; not set: Google provisions 3,000 + 6 x GiB" in found.components[2].note


def test_what_the_provider_answered_stands_for_what_was_not_asked(make: Make, price_first: PriceFirst) -> None:
    inputs = {"type": "hyperdisk-ml", "zone": ZONE}
    found = price_first(make(DISK, inputs=inputs, outputs={"size": 140, "provisionedThroughput": 12000}))
    assert found.amount.monthly == Decimal("1451.20")
    assert found.components[1].note == "billed whether read or not"


def test_a_shared_volume_says_what_each_reader_has(make: Make, price_first: PriceFirst) -> None:
    inputs = {
        "type": "hyperdisk-ml",
        "size": 200,
        "zone": ZONE,
        "provisionedThroughput": 1200,
        "accessMode": "READ_ONLY_MANY",
    }
    found = price_first(make(DISK, inputs=inputs), it={"attached_readers": "4"})
    assert found.title == "hyperdisk-ml · read-only to many"
    assert found.components[1].note == "billed whether read or not; 4 readers share it: 300 MiB/s each"


@pytest.mark.parametrize("opaque", [UNKNOWN, SECRET])
def test_an_unseen_size_leaves_the_throughput_known(make: Make, price_first: PriceFirst, opaque: Value) -> None:
    inputs = {"type": "hyperdisk-ml", "size": opaque, "zone": ZONE, "provisionedThroughput": 2400}
    found = price_first(make(DISK, inputs=inputs))
    # 2,400 x 0.12 = 288.00 is a lower bound.
    assert found.amount.monthly == Decimal(288)
    assert [part.path for part in found.unknown] == ["size"]
    assert not found.complete
    assert not found.nothing_known


@pytest.mark.parametrize(
    ("inputs", "paths"),
    [
        ({"type": "hyperdisk-ml", "size": UNKNOWN}, ["size", "provisionedThroughput"]),
        ({"type": UNKNOWN, "size": 10}, ["type"]),
        ({"type": "pd-ssd", "image": "debian-12"}, ["size"]),
        ({"type": "pd-ssd", "snapshot": "elsewhere"}, ["size"]),
        ({"type": "hyperdisk-extreme", "size": 100}, ["provisionedIops"]),
        ({"type": "hyperdisk-ml", "size": 10, "provisionedThroughput": UNKNOWN}, ["provisionedThroughput"]),
    ],
)
def test_what_decides_the_price_and_cannot_be_seen_is_named(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], paths: list[str]
) -> None:
    assert [part.path for part in price_first(make(DISK, inputs={**inputs, "zone": ZONE})).unknown] == paths


def test_a_disk_is_as_large_as_its_snapshot(make: Make, price_first: PriceFirst) -> None:
    source = make(DISK, "source", {"name": "source", "type": "pd-balanced", "size": 80, "zone": ZONE})
    snapshot = make(SNAPSHOT, "copy", {"name": "copy", "sourceDisk": "source"})
    disk = make(DISK, inputs={"type": "pd-balanced", "snapshot": "projects/p/global/snapshots/copy", "zone": ZONE})
    found = price_first(disk, snapshot, source)
    assert found.amount.monthly == Decimal(8)
    assert found.components[0].note == "size not set: that of the snapshot"


def test_a_blank_disk_has_the_default_size_of_its_type(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(DISK, inputs={"type": "pd-balanced", "zone": ZONE}))
    assert found.amount.monthly == Decimal(10)
    assert found.components[0].note == "size not set: Google makes 100 GiB"


@pytest.mark.parametrize("type", ["pd-future", "hyperdisk-max"])
def test_an_unknown_type_is_never_priced_as_another(make: Make, price_first: PriceFirst, type: str) -> None:
    found = price_first(make(DISK, inputs={"type": type, "size": 140, "zone": ZONE}))
    (part,) = found.unpriced
    assert not found.components
    assert (part.item, part.quantity, part.unit) == (f"disk.{type}.capacity", Decimal(140), "GiB-month")
    assert f'"{type}" is not known' in part.reason


def test_a_type_without_a_price_shows_its_quantities(make: Make, price_first: PriceFirst) -> None:
    inputs = {"type": "hyperdisk-throughput", "size": 2048, "provisionedThroughput": 100, "zone": "us-east5-b"}
    found = price_first(make(DISK, inputs=inputs))
    assert [(part.quantity, part.unit) for part in found.unpriced] == [
        (Decimal(2048), "GiB-month"),
        (Decimal(100), "MiB/s-month"),
    ]


@pytest.mark.parametrize("type", [None, ""])
def test_no_type_is_the_default_of_the_provider(make: Make, price_first: PriceFirst, type: Value) -> None:
    found = price_first(make(DISK, inputs={"type": type, "size": 100, "zone": ZONE}))
    assert found.components[0].item == "disk.pd-standard.capacity"
    assert found.components[0].note == "type not set: the provider takes pd-standard"
    missing = price_first(make(DISK, inputs={"type": type, "size": 100, "zone": "us-east5-b"}))
    assert missing.nothing_known


def test_a_regional_disk_has_items_of_its_own(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(REGION_DISK, inputs={"type": "pd-balanced", "size": 100, "region": "us-central1"}))
    assert found.amount.monthly == Decimal(20)
    assert found.title == "pd-balanced · regional"


def test_a_disk_of_a_pool_bills_with_the_pool(make: Make, price_first: PriceFirst) -> None:
    inputs = {"type": "hyperdisk-balanced", "size": 100, "zone": ZONE, "storagePool": UNKNOWN}
    found = price_first(make(DISK, inputs=inputs))
    assert found.free == "its storage pool bills for it"
    assert not found.components


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"size": Decimal("140.5")}, r"::it: size is 140.5; it must be a whole number"),
        ({"size": -1}, r"::it: size is -1"),
        ({"size": 10**18}, r"::it: size is 1,000,000,000,000,000,000; no disk has more than 100,000,000"),
        ({"size": 10, "provisionedThroughput": 10**12}, r"provisionedThroughput is 1,000,000,000,000; no disk"),
        ({"size": 10, "provisionedIops": "many"}, r"provisionedIops is 'many'; it must be a number"),
    ],
)
def test_a_number_that_no_disk_can_have_is_refused(
    make: Make, refusal_of: RefusalOf, inputs: Mapping[str, Value], message: str
) -> None:
    assert re.search(message, refusal_of(make(DISK, inputs={**inputs, "type": "hyperdisk-ml", "zone": ZONE})))


def test_no_zone_no_price(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(DISK, inputs={"type": "pd-ssd", "size": 10}))
    assert [part.path for part in found.unknown] == ["zone"]
