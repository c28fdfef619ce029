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


INSTANCE = "gcp:compute/instance:Instance"
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
GROUP = "gcp:compute/instanceGroupManager:InstanceGroupManager"


def head(make: Make, policies: Value, **options: tuple[str, ...]) -> Resource:
    params = {"type": "pd-balanced", "size": 50, "resourcePolicies": policies}
    inputs = {"name": "head", "zone": "us-central1-b", "bootDisk": {"initializeParams": params}}
    return make(INSTANCE, "head", inputs, property_dependencies=options)


@pytest.mark.parametrize("policies", ["nightly", ("https://x/regions/r/resourcePolicies/nightly",)])
def test_a_boot_disk_may_name_its_schedule(make: Make, price_first: PriceFirst, policies: Value) -> None:
    found = price_first(make(POLICY, "nightly", schedule()), head(make, policies))
    # 14 x 50 GiB at 0.05
    assert [(line.name, line.quantity, line.amount.monthly) for line in found.components] == [
        ("snapshots of the boot disk of head", Decimal(700), Decimal(35))
    ]


def test_a_boot_disk_is_joined_by_what_pulumi_recorded(make: Make, price_first: PriceFirst) -> None:
    policy = make(POLICY, "nightly", schedule())
    assert len(price_first(policy, head(make, (UNKNOWN,), bootDisk=(policy.urn,))).components) == 1
    assert price_first(policy, head(make, (UNKNOWN,))).free
    # Whatever else of the boot disk has that name is no schedule.
    named = make(INSTANCE, "head", {"zone": "us-central1-b", "bootDisk": {"deviceName": "nightly"}})
    assert price_first(policy, named).free


def test_an_attachment_may_name_the_boot_disk_of_an_instance(make: Make, price_first: PriceFirst) -> None:
    attachment = make(ATTACHMENT, "head-nightly", {"name": "nightly", "disk": "head"})
    found = price_first(make(POLICY, "nightly", schedule()), head(make, None), attachment)
    assert [line.quantity for line in found.components] == [Decimal(700)]


def test_an_attachment_to_a_disk_elsewhere_is_not_free(make: Make, price_first: PriceFirst) -> None:
    attachment = make(ATTACHMENT, "far", {"name": "nightly", "disk": "elsewhere"})
    found = price_first(make(POLICY, "nightly", schedule(storageLocations=None)), attachment)
    assert [part.path for part in found.unknown] == ["disk"]
    assert found.nothing_known


def test_the_disks_of_a_template_follow_once_for_each_host(make: Make, price_first: PriceFirst) -> None:
    disks = ({"boot": True, "diskSizeGb": 20}, {"diskSizeGb": 100, "resourcePolicies": ("nightly",)})
    template = make(TEMPLATE, "template", {"name": "host", "disks": disks})
    versions = ({"instanceTemplate": "projects/p/global/instanceTemplates/host"},)
    group = make(GROUP, "hosts", {"zone": "us-central1-b", "targetSize": 4, "versions": versions})
    found = price_first(make(POLICY, "nightly", schedule()), template, group)
    # 4 hosts x 14 x 100 GiB at 0.05
    assert [(line.name, line.quantity, line.amount.monthly) for line in found.components] == [
        ("snapshots of disk 1 of the hosts of hosts", Decimal(5600), Decimal(280))
    ]
    assert found.components[0].note.startswith("at most: 4 disks x 14 x 100 GiB")


def test_usage_of_a_schedule_that_nothing_here_follows_is_priced(make: Make, price_first: PriceFirst) -> None:
    policy = make(POLICY, "nightly", schedule())
    # 120 x 0.05
    assert price_first(policy, nightly={"gib": "120"}).amount.monthly == Decimal(6)
    nowhere = price_first(make(POLICY, "nightly", schedule(storageLocations=None)), nightly={"gib": "120"})
    assert [part.path for part in nowhere.unknown] == ["snapshotSchedulePolicy.snapshotProperties.storageLocations"]


@pytest.mark.parametrize(
    ("size", "path"),
    [(None, "head.bootDisk.initializeParams.size"), (UNKNOWN, "head.bootDisk.initializeParams.size")],
)
def test_a_boot_disk_of_unknown_size_is_named(make: Make, price_first: PriceFirst, size: Value, path: str) -> None:
    params = {"size": size, "resourcePolicies": "nightly"}
    boot = make(INSTANCE, "head", {"zone": "us-central1-b", "bootDisk": {"initializeParams": params}})
    found = price_first(make(POLICY, "nightly", schedule()), boot)
    assert [part.path for part in found.unknown] == [path]
