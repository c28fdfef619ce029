"""Instant snapshots and machine images: upper bounds, counted where the book has no price."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

INSTANT = "gcp:compute/instantSnapshot:InstantSnapshot"
IMAGE = "gcp:compute/machineImage:MachineImage"
DISK = "gcp:compute/disk:Disk"
DATA: Mapping[str, Value] = {"name": "data", "type": "hyperdisk-balanced", "size": 200, "zone": "us-central1-b"}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def test_an_instant_snapshot_holds_at_most_its_disk(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(INSTANT, inputs={"sourceDisk": "data", "zone": "us-central1-b"}), make(DISK, "data", DATA))
    assert [(part.item, part.quantity, part.unit) for part in found.unpriced] == [
        ("instant-snapshot.hyperdisk-balanced.capacity", Decimal(200), "GiB-month")
    ]


def test_usage_knows_better(make: Make, price_first: PriceFirst) -> None:
    snapshot = make(INSTANT, inputs={"sourceDisk": "data", "zone": "us-central1-b"})
    assert price_first(snapshot, make(DISK, "data", DATA), it={"gib": "7"}).unpriced[0].quantity == 7
    assert price_first(make(IMAGE, inputs={"sourceInstance": "head"}), it={"gib": "30"}).unpriced[0].quantity == 30


@pytest.mark.parametrize(
    ("inputs", "disk", "path"),
    [
        ({"sourceDisk": "data"}, {}, "zone"),
        ({"sourceDisk": "far", "zone": "us-central1-b"}, {}, "sourceDisk"),
        ({"sourceDisk": "data", "zone": "us-central1-b"}, {"size": UNKNOWN}, "sourceDisk.size"),
        ({"sourceDisk": "data", "zone": "us-central1-b"}, {"size": None, "snapshot": "old"}, "sourceDisk.size"),
        ({"sourceDisk": "data", "zone": "us-central1-b"}, {"type": UNKNOWN}, "sourceDisk.type"),
    ],
)
def test_what_decides_and_cannot_be_seen_is_named(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], disk: Mapping[str, Value], path: str
) -> None:
    found = price_first(make(INSTANT, inputs=inputs), make(DISK, "data", {**DATA, **disk}))
    assert [part.path for part in found.unknown] == [path]


def test_a_machine_image_says_which_usage_would_price_it(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(IMAGE, inputs={"sourceInstance": "head"}))
    assert [(part.path, part.reason) for part in found.unknown] == [
        ("sourceInstance", "nothing says how much its disks hold: set usage.it.gib")
    ]
