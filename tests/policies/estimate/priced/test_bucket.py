"""Buckets: live and soft-deleted bytes, classes, operations, reads from another region."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import Estimate, ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

BUCKET = "gcp:storage/bucket:Bucket"
VM = "gcp:tpu/v2Vm:V2Vm"
GROUP = "gcp:compute/instanceGroupManager:InstanceGroupManager"
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
REWRITTEN_HOURLY = {"gib": "100", "churn_gib_per_day": "2400"}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]
RefusalOf = Callable[[Resource], str]


def policy(seconds: Value) -> Mapping[str, Value]:
    return {"softDeletePolicy": {"retentionDurationSeconds": seconds}}


@pytest.mark.parametrize(
    ("inputs", "monthly", "title"),
    [
        # 100 GiB live and 24 x 100 x 7 = 16,800 GiB soft-deleted: 16,900 x 0.020 = 338.00
        ({}, "338.00", "bucket · standard · soft delete 7 days"),
        (policy(604800), "338.00", "bucket · standard · soft delete 7 days"),
        (policy(0), "2.00", "bucket · standard · soft delete off"),
        # 90 days: (100 + 2,400 x 90) x 0.020 = 4,322.00
        (policy(7776000), "4322.00", "bucket · standard · soft delete 90 days"),
    ],
)
def test_soft_delete_bills_what_is_deleted_and_overwritten(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], monthly: str, title: str
) -> None:
    found = price_first(make(BUCKET, inputs={"location": "us-east5", **inputs}), it=REWRITTEN_HOURLY)
    assert found.amount.monthly == Decimal(monthly)
    assert found.title == title
    assert found.complete


@pytest.mark.parametrize("seconds", [3600, 604799, 7776001])
def test_a_retention_that_google_refuses_is_refused(make: Make, refusal_of: RefusalOf, seconds: int) -> None:
    assert re.search(
        rf"::it: softDeletePolicy\.retentionDurationSeconds is {seconds}; .* 604800 to 7776000",
        refusal_of(make(BUCKET, inputs={"location": "us-east5", **policy(seconds)})),
    )


def test_an_unseen_retention_matters_only_where_something_is_deleted(make: Make, price_first: PriceFirst) -> None:
    bucket = make(BUCKET, inputs={"location": "us-east5", **policy(UNKNOWN)})
    assert price_first(bucket, it={"gib": "100"}).complete
    churning = price_first(bucket, it=REWRITTEN_HOURLY)
    assert [part.path for part in churning.unknown] == ["softDeletePolicy.retentionDurationSeconds"]
    assert churning.amount.monthly == Decimal(2)


def test_an_unused_bucket_costs_nothing_and_says_what_to_set(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(BUCKET, "checkpoints", {"location": "US-EAST5"}))
    assert found.amount.monthly == 0
    assert found.complete
    assert [line.note for line in found.components] == [
        "set usage.checkpoints.gib",
        "set usage.checkpoints.churn_gib_per_day",
    ]


@pytest.mark.parametrize("location", ["us-east5", "US-EAST5", "Us-East5"])
def test_letter_case_of_a_location_does_not_matter(make: Make, price_first: PriceFirst, location: str) -> None:
    found = price_first(make(BUCKET, inputs={"location": location}), it={"gib": "100"})
    assert (found.location, found.amount.monthly) == ("us-east5", Decimal(2))


def test_a_location_without_a_price_is_unpriced_once_it_is_used(
    make: Make, price_stack: Callable[..., Estimate]
) -> None:
    bucket = make(BUCKET, inputs={"location": "EU"})
    used = price_stack(bucket, it={"gib": "100"})
    assert not used.complete
    assert used.resources[0].unpriced[0].reason.startswith("no on-demand price for storage.standard.capacity in eu")
    assert used.resources[0].nothing_known
    unused = price_stack(bucket)
    assert unused.complete
    assert not unused.resources[0].components
    assert any("unpriced as soon as usage.it.gib is set" in note for note in unused.notes)


def test_a_multi_region_has_a_price_of_its_own(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(BUCKET, inputs={"location": "US"}), it={"gib": "100"})
    assert found.amount.monthly == Decimal("2.6")


def test_a_dual_region_of_ones_own_is_not_a_multi_region(make: Make, price_first: PriceFirst) -> None:
    inputs = {"location": "US", "customPlacementConfig": {"dataLocations": ("US-EAST1", "US-WEST1")}}
    assert price_first(make(BUCKET, inputs=inputs), it={"gib": "100"}).nothing_known


def test_operations_noncurrent_versions_and_internet(make: Make, price_first: PriceFirst) -> None:
    bucket = make(BUCKET, inputs={"location": "us-central1", "versioning": {"enabled": True}, **policy(0)})
    usage = {
        "gib": "50",
        "noncurrent_gib": "10",
        "class_a_operations": "2000000",
        "class_b_operations": "5000000",
        "egress_gib": "10",
    }
    found = price_first(bucket, it=usage)
    # 50 x 0.02; 10 x 0.02; 2,000 x 0.005; 5,000 x 0.0004; 10 x 0.12
    assert [(line.name, line.amount.monthly) for line in found.components] == [
        ("capacity", Decimal(1)),
        ("noncurrent versions", Decimal("0.2")),
        ("writes and listings", Decimal(10)),
        ("reads", Decimal(2)),
        ("to the internet", Decimal("1.2")),
    ]


def test_a_cold_class_bills_retrieval(make: Make, price_first: PriceFirst) -> None:
    bucket = make(BUCKET, inputs={"location": "us-central1", "storageClass": "NEARLINE", **policy(0)})
    found = price_first(bucket, it={"gib": "1000", "retrieval_gib": "300"})
    # 1,000 x 0.010 + 300 x 0.01
    assert [line.amount.monthly for line in found.components] == [Decimal(10), Decimal(3)]


@pytest.mark.parametrize(("retrieval", "billed"), [("0", 1200), ("300", 1200), ("5000", 5000)])
def test_passes_over_a_cold_class_bill_retrieval_even_at_home(
    make: Make, price_first: PriceFirst, retrieval: str, billed: int
) -> None:
    bucket = make(BUCKET, inputs={"location": "us-central1", "storageClass": "NEARLINE", **policy(0)})
    found = price_first(bucket, slice_in(make, "us-central1-b"), it={**EPOCHS, "retrieval_gib": retrieval})
    # 3 x 100 x 4 = 1,200 GiB at 0.01
    (line,) = (line for line in found.components if line.quantity)
    assert (line.item, line.quantity) == ("storage.nearline.retrieval", Decimal(billed))


def test_a_zonal_bucket_has_the_price_of_its_class_where_its_zone_is(make: Make, price_first: PriceFirst) -> None:
    placed = {"customPlacementConfig": {"dataLocations": ("US-CENTRAL1-B",)}}
    bucket = make(BUCKET, inputs={"location": "US-CENTRAL1", "storageClass": "RAPID", **placed, **policy(0)})
    found = price_first(bucket, slice_in(make, "us-central1-b"), it={"gib": "100", **EPOCHS})
    # 100 x 0.11; reads in its zone and region cost no transfer
    assert [(line.item, line.amount.monthly) for line in found.components] == [("storage.rapid.capacity", Decimal(11))]
    assert (found.complete, found.title) == (True, "bucket · rapid · soft delete off")


@pytest.mark.parametrize(("zone", "billed"), [("us-east1-d", 0), ("us-west1-c", 0), ("us-east5-b", 1200)])
def test_reads_in_either_region_of_a_dual_region_of_ones_own_are_at_home(
    make: Make, price_first: PriceFirst, zone: str, billed: int
) -> None:
    inputs = {"location": "US", "customPlacementConfig": {"dataLocations": ("US-EAST1", "US-WEST1")}, **policy(0)}
    found = price_first(make(BUCKET, inputs=inputs), slice_in(make, zone), it=EPOCHS)
    reads = [line.quantity for line in found.components if line.name.startswith("reads from")]
    assert sum(reads) == billed


@pytest.mark.parametrize("where", ["dataLocations", "a place"])
def test_a_place_that_nobody_can_see_is_named(make: Make, price_first: PriceFirst, where: str) -> None:
    places: Value = UNKNOWN if where == "dataLocations" else ("US-EAST1", UNKNOWN)
    inputs = {"location": "US", "customPlacementConfig": {"dataLocations": places}}
    (part,) = price_first(make(BUCKET, inputs=inputs), it={"gib": "1"}).unknown
    assert part.path.startswith("customPlacementConfig.dataLocations")


@pytest.mark.parametrize(
    ("location", "monthly"), [("US", "10"), ("NAM4", "10"), ("EU", "10"), ("ASIA1", "40"), ("us-central1", None)]
)
def test_what_is_written_to_several_regions_bills_its_copies(
    make: Make, price_first: PriceFirst, location: str, monthly: str | None
) -> None:
    found = price_first(make(BUCKET, inputs={"location": location, **policy(0)}), it={"written_gib": "500"})
    # 500 x 0.02, and x 0.08 in Asia
    copied = [line.amount.monthly for line in found.components if line.item == "storage.replication"]
    assert copied == ([Decimal(monthly)] if monthly else [])


def test_autoclass_bills_its_objects_and_no_retrieval(make: Make, price_first: PriceFirst) -> None:
    inputs = {"location": "us-central1", "autoclass": {"enabled": True}, **policy(0)}
    found = price_first(make(BUCKET, inputs=inputs), it={"objects": "400000", "retrieval_gib": "10"})
    # 400 x 0.0025
    assert [(line.name, line.amount.monthly) for line in found.components if line.quantity] == [
        ("autoclass", Decimal(1))
    ]


def test_whether_autoclass_is_on_decides_what_bills(make: Make, price_first: PriceFirst) -> None:
    inputs = {"location": "us-central1", "autoclass": {"enabled": UNKNOWN}, **policy(0)}
    found = price_first(make(BUCKET, inputs=inputs), it={"gib": "100"})
    assert [part.path for part in found.unknown] == ["autoclass.enabled"]
    assert found.amount.monthly == Decimal(2)


@pytest.mark.parametrize("kind", ["nearline", "NEARLINE"])
def test_letter_case_of_a_class_does_not_matter(make: Make, price_first: PriceFirst, kind: str) -> None:
    inputs = {"location": "us-central1", "storageClass": kind, **policy(0)}
    assert price_first(make(BUCKET, inputs=inputs), it={"gib": "100"}).amount.monthly == Decimal(1)


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"location": UNKNOWN}, "location"),
        ({"location": "us", "storageClass": UNKNOWN}, "storageClass"),
        ({}, "location"),
    ],
)
def test_what_cannot_be_seen_stays_unknown(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], path: str
) -> None:
    found = price_first(make(BUCKET, inputs=inputs), it={"gib": "1"})
    assert [part.path for part in found.unknown] == [path]
    assert found.nothing_known


def test_an_unknown_class_is_unpriced_with_its_quantity(make: Make, price_first: PriceFirst) -> None:
    inputs = {"location": "us-central1", "storageClass": "GLACIER"}
    (part,) = price_first(make(BUCKET, inputs=inputs), it={"gib": "7"}).unpriced
    assert (part.item, part.quantity) == ("storage.glacier.capacity", Decimal(7))


EPOCHS = {"epochs": "3", "dataset_gib": "100", "readers": "4"}


def slice_in(make: Make, zone: str) -> Resource:
    return make(VM, f"slice-{zone}", {"acceleratorType": "v6e-16", "zone": zone})


def test_reads_at_home_are_free(make: Make, price_stack: Callable[..., Estimate]) -> None:
    bucket = make(BUCKET, inputs={"location": "US-EAST5", **policy(0)})
    found = price_stack(bucket, slice_in(make, "us-east5-b"), it=EPOCHS)
    assert found.resources[0].amount.monthly == 0
    assert "it: 3 epochs x 100 GiB x 4 readers are read in the bucket's own region: no transfer bills" in found.notes


@pytest.mark.parametrize(
    ("location", "zone", "monthly"),
    [
        # 3 x 100 x 4 = 1,200 GiB a month; x 0.05 across the Atlantic, x 0.02 within North America.
        ("EUROPE-WEST4", "us-east5-b", "60"),
        ("us-central1", "us-east5-b", "24"),
        # A multi-region is nobody's home.
        ("US", "us-east5-b", "24"),
    ],
)
def test_reads_from_elsewhere_bill_every_epoch_and_every_reader(
    make: Make, price_first: PriceFirst, location: str, zone: str, monthly: str
) -> None:
    bucket = make(BUCKET, inputs={"location": location, **policy(0)})
    reads = price_first(bucket, slice_in(make, zone), it=EPOCHS).components[-1]
    assert (reads.name, reads.quantity, reads.amount.monthly) == (f"reads from {zone}", Decimal(1200), Decimal(monthly))
    assert reads.note == "3 epochs x 100 GiB x 4 readers"


def test_a_route_without_a_price_is_unpriced(make: Make, price_first: PriceFirst) -> None:
    bucket = make(BUCKET, inputs={"location": "us-central1", **policy(0)})
    found = price_first(bucket, slice_in(make, "asia-northeast1-b"), it=EPOCHS)
    assert [part.item for part in found.unpriced] == ["transfer.north-america.asia-pacific"]


def test_readers_in_several_places_are_counted_from_the_dearest(make: Make, price_first: PriceFirst) -> None:
    bucket = make(BUCKET, inputs={"location": "europe-west4", **policy(0)})
    template = make(TEMPLATE, "t", {"name": "t", "machineType": "ct6e-standard-4t"})
    group = make(GROUP, "g", {"zone": "us-central1-b", "targetSize": 4, "versions": ({"instanceTemplate": "t"},)})
    found = price_first(bucket, slice_in(make, "europe-west4-a"), template, group, it=EPOCHS)
    assert found.components[-1].name == "reads from us-central1-b"


def test_reads_without_a_tpu_come_from_nowhere(make: Make, price_first: PriceFirst) -> None:
    bucket = make(BUCKET, inputs={"location": "us-central1", **policy(0)})
    assert [part.path for part in price_first(bucket, it=EPOCHS).unknown] == ["usage.it.dataset_gib"]


def test_pools_inside_a_cluster_read_too(make: Make, price_first: PriceFirst) -> None:
    pool = {"name": "a", "nodeCount": 4, "nodeConfig": {"machineType": "ct6e-standard-4t"}}
    cluster = make("gcp:container/cluster:Cluster", "gke", {"location": "us-east5-b", "nodePools": (pool,)})
    bucket = make(BUCKET, inputs={"location": "us-central1", **policy(0)})
    # 1,200 GiB at 0.02
    assert price_first(bucket, cluster, it=EPOCHS).components[-1].amount.monthly == Decimal(24)
