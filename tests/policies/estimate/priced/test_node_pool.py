"""Node pools of GKE: nodes times zones, their disks and addresses, and what cannot be seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import Estimate, ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"
PRIVATE: Mapping[str, Value] = {"enablePrivateNodes": True}
TPU: Mapping[str, Value] = {
    "cluster": "train",
    "location": "us-central1-b",
    "nodeCount": 4,
    "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"},
    "nodeConfig": {"machineType": "ct6e-standard-4t", "spot": True, "diskSizeGb": 50},
    "networkConfig": PRIVATE,
}
PLAIN: Mapping[str, Value] = {
    "cluster": "train",
    "location": "us-central1-b",
    "nodeCount": 3,
    "nodeConfig": {"machineType": "e2-standard-4", "diskSizeGb": 50, "diskType": "pd-balanced"},
    "networkConfig": PRIVATE,
}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def lines(found: ResourceEstimate) -> list[tuple[str, Decimal, Decimal]]:
    return [(line.name, line.quantity, line.amount.monthly) for line in found.components]


@pytest.fixture(scope="session")
def cluster(make: Make) -> Resource:
    return make(CLUSTER, "train", {"name": "train", "location": "us-central1-b", "removeDefaultNodePool": True})


def test_a_tpu_pool_bills_chips_and_the_boot_disk_that_its_machines_take(
    make: Make, price_first: PriceFirst, cluster: Resource
) -> None:
    found = price_first(make(POOL, "slice", TPU), cluster)
    assert found.title == "v6e-16 · 4 hosts · 16 chips · spot"
    # 16 x 0.60 x 730 = 7,008; 4 x 50 x 0.08 = 16. Unset performance is 140 + 1.5 x 50 and 3,000 + 6 x 50, of which
    # 140 and 3,000 are included: 4 x 75 x 0.04 = 12 and 4 x 300 x 0.005 = 6
    assert lines(found) == [
        ("TPU v6e chip, spot", Decimal(16), Decimal(7008)),
        ("boot disk hyperdisk-balanced", Decimal(200), Decimal(16)),
        ("boot disk throughput", Decimal(300), Decimal(12)),
        ("boot disk IOPS", Decimal(1200), Decimal(6)),
    ]
    assert found.components[1].note == "type not set: GKE takes hyperdisk-balanced"
    assert found.complete


def test_a_pool_bills_machines_disks_and_addresses(make: Make, price_first: PriceFirst, cluster: Resource) -> None:
    found = price_first(make(POOL, "heads", {**PLAIN, "networkConfig": None}), cluster)
    # 12 x 0.02 x 730 = 175.20; 48 x 0.003 x 730 = 105.12; 150 x 0.10 = 15; 3 x 0.005 x 730 = 10.95
    assert lines(found) == [
        ("vCPU", Decimal(12), Decimal("175.2")),
        ("memory", Decimal(48), Decimal("105.12")),
        ("boot disk pd-balanced", Decimal(150), Decimal(15)),
        ("external address", Decimal(3), Decimal("10.95")),
    ]
    assert found.title == "3 × e2-standard-4 · not spot"


@pytest.mark.parametrize(
    ("pool", "zones", "nodes"),
    [
        ({"location": "us-central1"}, None, 9),
        ({"location": None}, None, 9),
        ({"location": "us-central1"}, ("us-central1-a", "us-central1-b"), 6),
        ({"location": "us-central1", "nodeLocations": ("us-central1-b",)}, ("us-central1-a", "us-central1-c"), 3),
    ],
)
def test_nodes_are_counted_in_each_zone(
    make: Make,
    price_first: PriceFirst,
    pool: Mapping[str, Value],
    zones: tuple[str, ...] | None,
    nodes: int,
) -> None:
    regional = make(CLUSTER, "train", {"name": "train", "location": "us-central1", "nodeLocations": zones})
    found = price_first(make(POOL, "heads", {**PLAIN, **pool}), regional)
    # 4 vCPUs a node at 0.02
    vcpu = [line.amount.monthly for line in found.components if line.name == "vCPU"]
    assert sum(vcpu) == nodes * 4 * Decimal("0.02") * 730
    assert found.complete


def test_a_zonal_cluster_with_more_zones_has_its_own_too(make: Make, price_first: PriceFirst) -> None:
    zonal = make(CLUSTER, "train", {"name": "train", "location": "us-central1-b", "nodeLocations": ("us-central1-a",)})
    found = price_first(make(POOL, "heads", PLAIN), zonal)
    assert [line.quantity for line in found.components if line.name == "vCPU"] == [Decimal(12), Decimal(12)]


def test_the_answer_of_the_provider_changes_nothing(make: Make, price_first: PriceFirst) -> None:
    answer = {"nodeCount": 9, "nodeLocations": ("us-central1-a", "us-central1-b", "us-central1-c")}
    asked = {**PLAIN, "location": "us-central1"}
    regional = {"name": "train", "location": "us-central1"}
    planned = price_first(make(POOL, "heads", asked), make(CLUSTER, "train", regional))
    deployed = price_first(
        make(POOL, "heads", asked, answer), make(CLUSTER, "train", regional, {"nodeLocations": answer["nodeLocations"]})
    )
    assert planned.amount == deployed.amount
    assert planned.title == deployed.title


def test_an_imported_pool_is_read_from_its_answer(make: Make, price_first: PriceFirst, cluster: Resource) -> None:
    found = price_first(make(POOL, "heads", {}, PLAIN), cluster)
    assert lines(found)[0] == ("vCPU", Decimal(12), Decimal("175.2"))


@pytest.mark.parametrize(
    ("scaling", "vcpus", "reason"),
    [
        ({"minNodeCount": 2, "maxNodeCount": 2}, 8, None),
        ({"minNodeCount": 1, "maxNodeCount": 5}, 4, "1 to 5 nodes a zone, as the autoscaler decides"),
        ({"maxNodeCount": 5}, 0, "0 to 5 nodes a zone, as the autoscaler decides"),
        ({"totalMinNodeCount": 3, "totalMaxNodeCount": 6}, 12, "3 to 6 nodes, as the autoscaler decides"),
    ],
)
def test_an_autoscaler_leaves_a_range(
    make: Make, price_first: PriceFirst, cluster: Resource, scaling: Mapping[str, Value], vcpus: int, reason: str | None
) -> None:
    found = price_first(make(POOL, "heads", {**PLAIN, "nodeCount": None, "autoscaling": scaling}), cluster)
    assert sum(line.quantity for line in found.components if line.name == "vCPU") == vcpus
    assert [part.reason.partition(":")[0] for part in found.unknown] == ([reason] if reason else [])


def test_a_total_over_zones_is_not_multiplied(make: Make, price_first: PriceFirst) -> None:
    regional = make(CLUSTER, "train", {"name": "train", "location": "us-central1"})
    scaling = {"totalMinNodeCount": 2, "totalMaxNodeCount": 2}
    inputs = {**PLAIN, "location": "us-central1", "nodeCount": None, "autoscaling": scaling}
    assert lines(price_first(make(POOL, "heads", inputs), regional))[0][:2] == ("vCPU", Decimal(8))


def test_what_gke_takes_where_nothing_is_said(make: Make, price_first: PriceFirst, cluster: Resource) -> None:
    bare = {"cluster": "train", "location": "us-central1-b", "initialNodeCount": 1, "networkConfig": PRIVATE}
    found = price_first(make(POOL, "bare", bare), cluster)
    # e2-medium: 1 x 0.02 x 730 = 14.60 and 4 x 0.003 x 730 = 8.76; 100 x 0.10 = 10
    assert [line.amount.monthly for line in found.components] == [Decimal("14.6"), Decimal("8.76"), Decimal(10)]
    assert found.components[0].note == "machine type not set: GKE takes e2-medium"
    assert found.components[2].note == "type not set: GKE takes pd-balanced; size not set: GKE makes 100 GiB"


def test_local_ssds_and_gpus_are_counted(make: Make, price_first: PriceFirst, cluster: Resource) -> None:
    config = {
        "machineType": "n1-standard-8",
        "diskSizeGb": 50,
        "localNvmeSsdBlockConfig": {"localSsdCount": 2},
        "guestAccelerators": ({"type": "nvidia-l4", "count": 2},),
    }
    found = price_first(make(POOL, "gpu", {**PLAIN, "nodeConfig": config}), cluster)
    # 3 nodes x 2 x 375 GiB x 0.08
    assert ("local SSD", Decimal(2250), Decimal(180)) in lines(found)
    assert [(part.item, part.quantity) for part in found.unpriced] == [("accelerator.nvidia-l4", Decimal(6))]


def test_boot_disks_in_a_storage_pool_bill_with_it(make: Make, price_first: PriceFirst, cluster: Resource) -> None:
    config = {"machineType": "e2-standard-4", "storagePools": ("projects/p/zones/z/storagePools/shared",)}
    found = price_first(make(POOL, "heads", {**PLAIN, "nodeConfig": config}), cluster)
    assert [line.name for line in found.components] == ["vCPU", "memory"]


def test_flex_start_is_counted_and_unpriced(make: Make, price_first: PriceFirst, cluster: Resource) -> None:
    config = {"machineType": "ct6e-standard-4t", "flexStart": True, "diskSizeGb": 50}
    found = price_first(make(POOL, "slice", {**TPU, "nodeConfig": config}), cluster)
    assert [(part.item, part.quantity) for part in found.unpriced] == [("tpu.v6e.chip", Decimal(16))]


def test_terms_that_cannot_be_are_refused(make: Make, refusal_of: Callable[[Resource], str]) -> None:
    config = {"spot": True, "reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"}}
    refused = refusal_of(make(POOL, "slice", {**TPU, "nodeConfig": config}))
    assert "nodeConfig asks for spot and reserved; capacity is one of the two" in refused


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"nodeCount": UNKNOWN}, ["nodeCount"]),
        ({"nodeCount": None}, ["nodeCount"]),
        ({"autoscaling": UNKNOWN}, ["autoscaling"]),
        ({"autoscaling": {"maxNodeCount": UNKNOWN}}, ["autoscaling.maxNodeCount"]),
        ({"nodeLocations": UNKNOWN}, ["nodeLocations"]),
        ({"nodeLocations": (UNKNOWN,)}, ["nodeLocations[0]"]),
        ({"location": UNKNOWN}, ["location"]),
        ({"nodeConfig": {"machineType": UNKNOWN}}, ["nodeConfig.machineType"]),
        ({"nodeConfig": {"spot": UNKNOWN}}, ["nodeConfig.spot"]),
        ({"nodeConfig": {"diskSizeGb": UNKNOWN}}, ["nodeConfig.diskSizeGb"]),
        ({"nodeConfig": {"machineType": "z9-standard-4", "diskSizeGb": 9}}, ["nodeConfig.diskType"]),
        ({"networkConfig": {"enablePrivateNodes": UNKNOWN}}, ["networkConfig.enablePrivateNodes"]),
    ],
)
def test_what_decides_and_cannot_be_seen_is_named(
    make: Make, price_first: PriceFirst, cluster: Resource, changes: Mapping[str, Value], paths: list[str]
) -> None:
    found = price_first(make(POOL, "heads", {**PLAIN, **changes}), cluster)
    assert [part.path for part in found.unknown] == paths


def test_a_pool_of_a_cluster_elsewhere_is_a_lower_bound(make: Make, price_first: PriceFirst) -> None:
    inputs = {**PLAIN, "location": None, "cluster": "projects/p/locations/us-central1-b/clusters/far"}
    found = price_first(make(POOL, "heads", {**inputs, "networkConfig": None}))
    assert found.location == "us-central1-b"
    assert lines(found)[0] == ("vCPU", Decimal(12), Decimal("175.2"))
    assert [part.path for part in found.unknown] == ["nodeLocations", "networkConfig.enablePrivateNodes"]


def test_no_nodes_cost_nothing(make: Make, price_first: PriceFirst, cluster: Resource) -> None:
    assert price_first(make(POOL, "heads", {**PLAIN, "nodeCount": 0}), cluster).free == "its node count is 0"


def test_the_nodes_of_a_tpu_pool_read_buckets(
    make: Make, price_stack: Callable[..., Estimate], cluster: Resource
) -> None:
    bucket = make("gcp:storage/bucket:Bucket", "data", {"location": "us"})
    usage = {"epochs": "1", "dataset_gib": "1000"}
    found = price_stack(bucket, make(POOL, "slice", TPU), cluster, data=usage).resources[0]
    assert ("reads from us-central1-b", Decimal(1000), Decimal(20)) in lines(found)


@pytest.mark.parametrize(
    ("config", "item", "quantity"),
    [
        ({"imageType": "WINDOWS_LTSC_CONTAINERD"}, "license.windows", 12),
        ({"confidentialNodes": {"enabled": True}}, "instance.confidential.vcpu", 12),
    ],
)
def test_the_surcharges_of_nodes_are_counted(
    make: Make, price_first: PriceFirst, cluster: Resource, config: Mapping[str, Value], item: str, quantity: int
) -> None:
    nodes = {**PLAIN, "nodeConfig": {"machineType": "e2-standard-4", "diskSizeGb": 50, **config}}
    found = price_first(make(POOL, "heads", nodes), cluster)
    assert [(part.item, part.quantity) for part in found.unpriced] == [(item, Decimal(quantity))]


def test_a_second_boot_disk_of_nodes_is_named(make: Make, price_first: PriceFirst, cluster: Resource) -> None:
    config = {"machineType": "e2-standard-4", "diskSizeGb": 50, "secondaryBootDisks": ({"diskImage": "weights"},)}
    found = price_first(make(POOL, "heads", {**PLAIN, "nodeConfig": config}), cluster)
    assert [part.path for part in found.unknown] == ["nodeConfig.secondaryBootDisks"]
