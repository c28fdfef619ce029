"""Clusters of GKE: the fee, the pools inside, and what cannot be seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

CLUSTER = "gcp:container/cluster:Cluster"
PRIVATE: Mapping[str, Value] = {"enablePrivateNodes": True}
INSIDE: Mapping[str, Value] = {
    "nodeCount": 3,
    "nodeConfig": {"machineType": "e2-standard-4", "diskSizeGb": 50, "diskType": "pd-balanced"},
    "networkConfig": PRIVATE,
}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def lines(found: ResourceEstimate) -> list[tuple[str, Decimal, Decimal]]:
    return [(line.name, line.quantity, line.amount.monthly) for line in found.components]


def test_a_cluster_bills_its_fee_and_the_pools_inside_it(make: Make, price_first: PriceFirst) -> None:
    asked = {"location": "us-central1-b", "nodePools": (INSIDE, {**INSIDE, "name": "heads", "nodeCount": 1})}
    answer = {"nodePools": (INSIDE, {**INSIDE, "nodeCount": 1}, {**INSIDE, "nodeCount": 7})}
    found = price_first(make(CLUSTER, "train", asked, answer))
    # 0.10 x 730 = 73; then 3 nodes and 1 node, as above
    assert lines(found)[0] == ("management", Decimal(1), Decimal(73))
    assert [(line.name, line.quantity) for line in found.components if line.name.endswith("vCPU")] == [
        ("nodePools[0]: vCPU", Decimal(12)),
        ("heads: vCPU", Decimal(4)),
    ]


def test_a_default_pool_bills_unless_it_is_removed(make: Make, price_first: PriceFirst) -> None:
    asked = {
        "location": "us-central1-b",
        "initialNodeCount": 1,
        "nodeConfig": {"machineType": "e2-standard-4", "diskSizeGb": 50},
        "privateClusterConfig": PRIVATE,
    }
    # 73 and a third of what three nodes cost: 58.40 + 35.04 + 5
    assert price_first(make(CLUSTER, "train", asked)).amount.monthly == Decimal("171.44")
    removed = price_first(make(CLUSTER, "train", {**asked, "removeDefaultNodePool": True}))
    assert removed.amount.monthly == Decimal(73)


def test_autopilot_bills_pods_that_no_program_shows(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(CLUSTER, "train", {"location": "us-central1", "enableAutopilot": True}))
    assert found.amount.monthly == Decimal(73)
    assert [part.item for part in found.unpriced] == ["gke.autopilot"]


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"location": None}, ["location"]),
        ({"enableAutopilot": UNKNOWN}, ["enableAutopilot"]),
        ({"nodePools": UNKNOWN}, ["nodePools"]),
        ({"removeDefaultNodePool": UNKNOWN, "initialNodeCount": 1}, ["removeDefaultNodePool"]),
        ({"clusterAutoscaling": {"enabled": True}}, ["clusterAutoscaling"]),
    ],
)
def test_what_of_a_cluster_cannot_be_seen_is_named(
    make: Make, price_first: PriceFirst, changes: Mapping[str, Value], paths: list[str]
) -> None:
    found = price_first(make(CLUSTER, "train", {"location": "us-central1-b", **changes}))
    assert [part.path for part in found.unknown] == paths


@pytest.mark.parametrize(
    ("pool", "path"),
    [
        ({"nodeCount": UNKNOWN}, "nodePools[0].nodeCount"),
        ({"nodeConfig": {"machineType": "z9-standard-4"}}, "nodePools[0].nodeConfig.diskType"),
        ({"nodeCount": None, "autoscaling": {"minNodeCount": 0, "maxNodeCount": 3}}, "nodePools[0].autoscaling"),
    ],
)
def test_what_of_a_pool_inside_cannot_be_seen_is_named_with_its_place(
    make: Make, price_first: PriceFirst, pool: Mapping[str, Value], path: str
) -> None:
    found = price_first(make(CLUSTER, "train", {"location": "us-central1-b", "nodePools": ({**INSIDE, **pool},)}))
    assert [part.path for part in found.unknown] == [path]


def test_tpu_pools_inside_a_cluster_bill_chips_on_their_own_terms(make: Make, price_first: PriceFirst) -> None:
    config = {"machineType": "ct6e-standard-4t", "diskType": "pd-balanced", "diskSizeGb": 50}
    pools = tuple(
        {"name": name, "nodeCount": 4, "nodeConfig": {**config, "spot": name == "cheap"}, "networkConfig": PRIVATE}
        for name in ("cheap", "dear")
    )
    found = price_first(make(CLUSTER, "train", {"location": "us-central1-b", "nodePools": pools}))
    # 16 x 0.60 x 730 and 16 x 2.70 x 730; 4 x 50 x 0.10
    assert lines(found)[1:] == [
        ("cheap: TPU v6e chip, spot", Decimal(16), Decimal(7008)),
        ("cheap: boot disk pd-balanced", Decimal(200), Decimal(20)),
        ("dear: TPU v6e chip, on demand", Decimal(16), Decimal(31536)),
        ("dear: boot disk pd-balanced", Decimal(200), Decimal(20)),
    ]


def test_the_traffic_of_a_cluster_bills_where_usage_names_it(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(CLUSTER, "train", {"location": "us-central1-b"}), train={"log_gib": "10"})
    # 10 x 0.50
    assert lines(found)[1:] == [("logs", Decimal(10), Decimal(5))]
