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
    asked = {"location": "us-central1-b", "nodePools": (INSIDE, {**INSIDE, "nodeCount": 1})}
    answer = {"nodePools": (INSIDE, {**INSIDE, "nodeCount": 1}, {**INSIDE, "nodeCount": 7})}
    found = price_first(make(CLUSTER, "train", asked, answer))
    # 0.10 x 730 = 73; then 3 nodes and 1 node, as above
    assert lines(found)[0] == ("management", Decimal(1), Decimal(73))
    assert [line.quantity for line in found.components if line.name == "vCPU"] == [Decimal(12), Decimal(4)]


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
