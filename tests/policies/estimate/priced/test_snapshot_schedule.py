"""Snapshot schedules: how many snapshots are kept, of which disks, where, and what is free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
ATTACHMENT = "gcp:compute/diskResourcePolicyAttachment:DiskResourcePolicyAttachment"
DISK = "gcp:compute/disk:Disk"
DAILY: Mapping[str, Value] = {"dailySchedule": {"daysInCycle": 1, "startTime": "04:00"}}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def schedule(when: Value = DAILY, days: Value = 14, **properties: Value) -> Mapping[str, Value]:
    return {
        "name": "nightly",
        "region": "us-central1",
        "snapshotSchedulePolicy": {
            "schedule": when,
            "retentionPolicy": {"maxRetentionDays": days},
            "snapshotProperties": {"storageLocations": "US-CENTRAL1", **properties},
        },
    }


def attached(make: Make, **disk: Value) -> tuple[Resource, Resource]:
    inputs = {"name": "data", "type": "pd-balanced", "size": 500, "zone": "us-central1-b", **disk}
    return make(DISK, "data", inputs), make(ATTACHMENT, "data-nightly", {"name": "nightly", "disk": "data"})


@pytest.mark.parametrize(
    ("when", "days", "kept"),
    [
        (DAILY, 14, 14),
        ({"dailySchedule": {"daysInCycle": 3}}, 14, 5),
        ({"hourlySchedule": {"hoursInCycle": 4}}, 2, 12),
        ({"weeklySchedule": {"dayOfWeeks": ({"day": "MONDAY"}, {"day": "FRIDAY"})}}, 28, 8),
    ],
)
def test_a_schedule_bills_at_most_what_it_keeps(
    make: Make, price_first: PriceFirst, when: Mapping[str, Value], days: int, kept: int
) -> None:
    found = price_first(make(POLICY, "nightly", schedule(when, days)), *attached(make))
    # 500 GiB each, at 0.05 in the region
    assert [(line.name, line.quantity, line.amount.monthly) for line in found.components] == [
        ("snapshots of data", Decimal(kept * 500), Decimal(kept * 25))
    ]
    assert found.components[0].note.startswith(f"at most: {kept} x 500 GiB")
    assert (found.title, found.location) == ("snapshot schedule", "us-central1")


def test_a_disk_may_name_its_schedule_itself(make: Make, price_first: PriceFirst) -> None:
    policy = make(POLICY, "nightly", schedule())
    disk, attachment = attached(make, resourcePolicies=("https://x/regions/r/resourcePolicies/nightly",))
    assert len(price_first(policy, disk, attachment).components) == 1
    assert len(price_first(policy, disk).components) == 1


def test_without_a_place_snapshots_go_to_the_nearest_multi_region(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(POLICY, "nightly", schedule(storageLocations=None)), *attached(make))
    # 7,000 x 0.065
    assert found.amount.monthly == Decimal(455)


def test_usage_knows_better_than_the_upper_bound(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(POLICY, "nightly", schedule()), *attached(make), nightly={"gib": "120"})
    assert [(line.quantity, line.note) for line in found.components] == [(Decimal(120), "as usage says")]


def test_a_policy_without_snapshots_is_free(make: Make, price_first: PriceFirst) -> None:
    assert price_first(make(POLICY, inputs={"workloadPolicy": {"type": "HIGH_THROUGHPUT"}})).free
    assert price_first(make(POLICY, "nightly", schedule())).free == "no disk of this stack follows it"


@pytest.mark.parametrize(
    ("inputs", "disk", "path"),
    [
        ({"name": "nightly", "snapshotSchedulePolicy": UNKNOWN}, {}, "snapshotSchedulePolicy"),
        (schedule(days=UNKNOWN), {}, "snapshotSchedulePolicy.retentionPolicy.maxRetentionDays"),
        (schedule(days=None), {}, "snapshotSchedulePolicy.retentionPolicy.maxRetentionDays"),
        (schedule({}), {}, "snapshotSchedulePolicy.schedule"),
        (
            schedule({"dailySchedule": {"daysInCycle": UNKNOWN}}),
            {},
            "snapshotSchedulePolicy.schedule.dailySchedule.daysInCycle",
        ),
        (schedule(storageLocations=UNKNOWN), {}, "snapshotSchedulePolicy.snapshotProperties.storageLocations"),
        (schedule(storageLocations=None), {"zone": "southamerica-west1-a"}, "storageLocations"),
        (schedule(), {"size": UNKNOWN}, "data.size"),
        (schedule(), {"size": None, "snapshot": "old"}, "data.size"),
    ],
)
def test_what_decides_and_cannot_be_seen_is_named(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], disk: Mapping[str, Value], path: str
) -> None:
    found = price_first(make(POLICY, "nightly", inputs), *attached(make, **disk))
    assert [part.path for part in found.unknown] == [path]
    assert found.nothing_known


def test_a_cycle_of_nothing_is_refused(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(POLICY, "nightly", schedule({"hourlySchedule": {"hoursInCycle": 0}})), *attached(make))
    assert "hourlySchedule.hoursInCycle is 0; it must be at least 1" in found.unknown[0].reason
