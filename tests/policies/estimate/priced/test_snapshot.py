"""Snapshots and images: upper bounds, where they are stored, what usage says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

SNAPSHOT = "gcp:compute/snapshot:Snapshot"
IMAGE = "gcp:compute/image:Image"
DISK = "gcp:compute/disk:Disk"
STAGING: Mapping[str, Value] = {"name": "staging", "type": "pd-balanced", "size": 200, "zone": "us-central1-b"}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def test_a_snapshot_bills_at_most_the_size_of_its_disk(make: Make, price_first: PriceFirst) -> None:
    disk = make(DISK, "staging", STAGING)
    literal = make(SNAPSHOT, inputs={"sourceDisk": "staging", "storageLocations": ("us-central1",)})
    joined = make(
        SNAPSHOT,
        inputs={"sourceDisk": UNKNOWN, "storageLocations": ("US-CENTRAL1",)},
        property_dependencies={"sourceDisk": (disk.urn,)},
    )
    for snapshot in (literal, joined):
        found = price_first(snapshot, disk)
        # 200 x 0.05 in the region
        assert (found.location, found.amount.monthly) == ("us-central1", Decimal(10))
        assert found.components[0].note.startswith("at most: the size of the disk")
        assert found.title == "snapshot · standard"


@pytest.mark.parametrize(
    "inputs",
    [
        {"sourceDisk": "staging", "zone": "us-central1-b"},
        {"sourceDisk": "staging"},
        {"sourceDisk": "projects/p/zones/us-central1-b/disks/staging"},
    ],
)
def test_a_snapshot_without_a_place_goes_to_the_nearest_multi_region(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value]
) -> None:
    found = price_first(make(SNAPSHOT, inputs=inputs), make(DISK, "staging", STAGING))
    # 200 x 0.065
    assert (found.location, found.amount.monthly) == ("us", Decimal(13))


@pytest.mark.parametrize(
    ("inputs", "outputs", "gib"),
    [
        ({"labels": {"spotrail-size-gib": "200"}}, {}, 200),
        ({}, {"diskSizeGb": 150}, 150),
    ],
)
def test_a_disk_outside_the_stack_has_its_size_in_a_label_or_in_the_answer(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], outputs: Mapping[str, Value], gib: int
) -> None:
    snapshot = make(SNAPSHOT, inputs={"sourceDisk": "job-made", "storageLocations": ("us",), **inputs}, outputs=outputs)
    assert price_first(snapshot).components[0].quantity == gib


def test_usage_knows_better_than_the_size_of_the_disk(make: Make, price_first: PriceFirst) -> None:
    snapshot = make(SNAPSHOT, inputs={"sourceDisk": "staging", "storageLocations": ("us",)})
    found = price_first(snapshot, make(DISK, "staging", STAGING), it={"gib": "40"})
    assert (found.components[0].quantity, found.components[0].note) == (Decimal(40), "as usage says")


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"sourceDisk": "job-made", "storageLocations": ("us",)}, "sourceDisk"),
        (
            {"sourceDisk": "job-made", "labels": {"spotrail-size-gib": UNKNOWN}, "zone": "us-central1-b"},
            "labels.spotrail-size-gib",
        ),
        ({"sourceDisk": "staging", "storageLocations": UNKNOWN}, "storageLocations"),
        ({"sourceDisk": "staging", "storageLocations": (UNKNOWN,)}, "storageLocations[0]"),
        ({"sourceDisk": "staging", "storageLocations": ("us",), "snapshotType": UNKNOWN}, "snapshotType"),
        ({"sourceDisk": "staging", "zone": "southamerica-west1-a"}, "storageLocations"),
    ],
)
def test_what_decides_and_cannot_be_seen_is_named(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], path: str
) -> None:
    found = price_first(make(SNAPSHOT, inputs=inputs), make(DISK, "staging", STAGING))
    assert [part.path for part in found.unknown] == [path]
    assert found.nothing_known


def test_an_unseen_size_of_the_disk_is_an_unseen_size_of_the_snapshot(make: Make, price_first: PriceFirst) -> None:
    snapshot = make(SNAPSHOT, inputs={"sourceDisk": "staging", "storageLocations": ("us",)})
    found = price_first(snapshot, make(DISK, "staging", {**STAGING, "size": UNKNOWN}))
    assert [part.path for part in found.unknown] == ["sourceDisk.size"]


def test_of_two_disks_with_one_name_the_zone_decides(make: Make, price_first: PriceFirst) -> None:
    near = make(DISK, "near", {**STAGING, "size": 200})
    far = make(DISK, "far", {**STAGING, "size": 999, "zone": "us-east5-b"})
    places: tuple[Mapping[str, Value], ...] = (
        {"sourceDisk": "staging", "zone": "us-central1-b"},
        {"sourceDisk": "projects/p/zones/us-central1-b/disks/staging"},
    )
    for place in places:
        snapshot = make(SNAPSHOT, inputs={**place, "storageLocations": ("us",)})
        assert price_first(snapshot, far, near).components[0].quantity == 200


def test_a_disk_of_default_size_gives_that_size(make: Make, price_first: PriceFirst) -> None:
    snapshot = make(SNAPSHOT, inputs={"sourceDisk": "staging", "storageLocations": ("us",)})
    found = price_first(snapshot, make(DISK, "staging", {**STAGING, "size": None}))
    assert found.components[0].quantity == 100


def test_an_archive_snapshot_has_a_price_of_its_own_or_none(make: Make, price_first: PriceFirst) -> None:
    inputs = {"sourceDisk": "staging", "snapshotType": "ARCHIVE", "storageLocations": ("us",)}
    found = price_first(make(SNAPSHOT, inputs=inputs), make(DISK, "staging", STAGING))
    assert [part.item for part in found.unpriced] == ["snapshot.archive.capacity"]


def test_an_image_bills_like_a_snapshot(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(IMAGE, inputs={"sourceDisk": "staging"}), make(DISK, "staging", STAGING))
    # 200 x 0.05
    assert (found.title, found.amount.monthly) == ("image", Decimal(10))
    sized = price_first(make(IMAGE, inputs={"diskSizeGb": 20, "storageLocations": ("us",)}))
    assert sized.amount.monthly == Decimal(1)


def test_a_snapshot_of_a_disk_in_two_zones_is_stored_near_its_region(make: Make, price_first: PriceFirst) -> None:
    disk = make("gcp:compute/regionDisk:RegionDisk", "pair", {"name": "pair", "region": "us-central1", "size": 200})
    found = price_first(make(SNAPSHOT, inputs={"sourceDisk": "pair"}), disk)
    # 200 x 0.065
    assert (found.location, found.amount.monthly) == ("us", Decimal(13))
    elsewhere = {"sourceDisk": "projects/p/regions/us-east5/disks/gone", "labels": {"spotrail-size-gib": "200"}}
    assert price_first(make(SNAPSHOT, inputs=elsewhere)).amount.monthly == Decimal(13)
