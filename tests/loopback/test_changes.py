"""Changes of Compute, made with Google's own clients: accepted, refused, and repeated."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from google.api_core.exceptions import BadRequest, Conflict, NotFound
from google.cloud import compute_v1

from policies.audit.record import Part
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.shapes import Item
from tests.google_cloud.world import World
from tests.loopback.clients import compute

ZONE = "us-central1-b"
PLACE = {"project": "acme-tpu-dev", "zone": ZONE}


def llama(world: World, **fields: Any) -> Item:
    wanted = {"name": "llama", "zone": ZONE, "sizeGb": "500", "provisionedThroughput": "12000", **fields}
    return world.add(Part.DISKS, **wanted)


def lower(endpoint: str, mibps: int, request_id: str = "", mask: str = "provisionedThroughput") -> Any:
    disk = compute_v1.Disk(name="llama", provisioned_throughput=mibps, provisioned_iops=9)
    request = {**PLACE, "disk": "llama", "disk_resource": disk, "paths": mask, "request_id": request_id or None}
    return compute(endpoint, "Disks").update(request=compute_v1.UpdateDiskRequest(request))


def polled(endpoint: str, operation: Any) -> list[str]:
    """The states of an operation up to DONE."""
    states = [operation.status.name]
    while states[-1] != "DONE":
        found = compute(endpoint, "ZoneOperations").get(**PLACE, operation=operation.name)
        states.append(found.status.name)
    return states


def test_throughput_is_lowered_when_the_operation_is_done(world: World, endpoint: str) -> None:
    disk = llama(world)
    operation = lower(endpoint, 400)
    assert disk["provisionedThroughput"] == "12000"
    assert polled(endpoint, operation) == ["RUNNING", "RUNNING", "DONE"]
    assert disk["provisionedThroughput"] == "400"
    assert "provisionedIops" not in disk, "what the mask does not name stays"


def test_the_client_waits_for_the_end(world: World, endpoint: str) -> None:
    disk = llama(world)
    lower(endpoint, 400).result(timeout=20)
    assert disk["provisionedThroughput"] == "400"


@pytest.mark.parametrize(
    ("fields", "mibps", "match"),
    [
        ({}, 399, "between 400 and 800000"),
        ({"sizeGb": "10000"}, 1199, "between 1200 and 1200000"),
        ({"sizeGb": "4"}, 6401, "between 400 and 6400"),
        ({"users": [f"reader-{index}" for index in range(60)]}, 1199, "between 1200 and 800000"),
        ({"type": "pd-ssd"}, 400, "cannot be set on disks of type pd-ssd"),
    ],
)
def test_a_throughput_that_the_volume_cannot_have(
    world: World, endpoint: str, fields: dict[str, Any], mibps: int, match: str
) -> None:
    llama(world, **fields)
    with pytest.raises(BadRequest, match=match):
        lower(endpoint, mibps)


def test_one_change_in_six_hours(world: World, endpoint: str) -> None:
    disk = llama(world)
    polled(endpoint, lower(endpoint, 4000))
    world.now += datetime.timedelta(hours=5, minutes=59)
    with pytest.raises(BadRequest, match="once in 6 hours"):
        lower(endpoint, 400)
    world.now += datetime.timedelta(minutes=1)
    polled(endpoint, lower(endpoint, 400))
    assert disk["provisionedThroughput"] == "400"


def test_a_repeated_request_is_the_same_change(world: World, endpoint: str) -> None:
    llama(world)
    first, second = (lower(endpoint, 400, "c0ffee00-0000-4000-8000-000000000001") for _ in range(2))
    assert first.name == second.name
    assert len(world.operations.all()) == 1


@pytest.mark.parametrize("mask", ["", "name", "provisionedThroughput,sizeGb"])
def test_a_mask_must_name_what_can_be_changed(world: World, endpoint: str, mask: str) -> None:
    llama(world)
    with pytest.raises(BadRequest, match="updateMask"):
        lower(endpoint, 400, mask=mask)


def test_an_operation_that_fails_changes_nothing(world: World, endpoint: str) -> None:
    disk = llama(world)
    world.fail(Fault(kind=FaultKind.FAILED_OPERATION, method="compute.disks.delete"))
    operation = compute(endpoint, "Disks").delete(**PLACE, disk="llama")
    assert disk["status"] == "DELETING"
    with pytest.raises(Exception, match="Internal error"):
        operation.result(timeout=20)
    assert world.items(Part.DISKS) == [disk]
    assert disk["status"] == "READY"


def test_an_attached_disk_is_not_deleted_until_it_is_detached(world: World, endpoint: str) -> None:
    disk = llama(world, users=["trainer-0"])
    world.add(Part.INSTANCES, name="trainer-0", zone=ZONE, status="TERMINATED", disks=[{"source": "llama"}])
    disks = compute(endpoint, "Disks")
    with pytest.raises(BadRequest, match=r"already being used by 'projects/acme-tpu-dev/zones/.*/instances/trainer-0'"):
        disks.delete(**PLACE, disk="llama")
    instances = compute(endpoint, "Instances")
    with pytest.raises(BadRequest, match="No such attached disk"):
        instances.detach_disk(**PLACE, instance="trainer-0", device_name="other")
    polled(endpoint, instances.detach_disk(**PLACE, instance="trainer-0", device_name="llama"))
    assert ("users" in disk, disk["lastDetachTimestamp"]) == (False, "2026-11-29T12:00:00.000Z")
    polled(endpoint, disks.delete(**PLACE, disk="llama"))
    assert world.items(Part.DISKS) == []


@pytest.mark.parametrize("way", ["insert", "createSnapshot"])
def test_a_snapshot_is_ready_at_the_end_and_keeps_its_disk_until_then(world: World, endpoint: str, way: str) -> None:
    disk = llama(world)
    snapshot = compute_v1.Snapshot(name="kept", storage_locations=["us-central1"], source_disk=disk["selfLink"])
    if way == "insert":
        compute(endpoint, "Snapshots").insert(project="acme-tpu-dev", snapshot_resource=snapshot)
    else:
        compute(endpoint, "Disks").create_snapshot(**PLACE, disk="llama", snapshot_resource=snapshot)
    with pytest.raises(BadRequest, match="is not ready"):
        compute(endpoint, "Disks").delete(**PLACE, disk="llama")
    found = compute(endpoint, "Snapshots").get(project="acme-tpu-dev", snapshot="kept")
    assert (found.status, found.source_disk_id, found.storage_bytes) == ("READY", disk["id"], 500 * 2**30)
    with pytest.raises(Conflict, match="already exists"):
        compute(endpoint, "Disks").create_snapshot(**PLACE, disk="llama", snapshot_resource=snapshot)
    assert list(found.storage_locations) == ["us-central1"]


def test_stopping_and_deleting_instances(world: World, endpoint: str) -> None:
    boot = llama(world, name="boot", users=["head"], type="pd-balanced")
    attached = {"source": "boot", "boot": True, "autoDelete": True}
    head = world.add(Part.INSTANCES, name="head", zone=ZONE, disks=[attached], deletionProtection=True)
    instances = compute(endpoint, "Instances")
    with pytest.raises(BadRequest, match="boot disk of a running instance"):
        instances.detach_disk(**PLACE, instance="head", device_name="boot")
    polled(endpoint, instances.stop(**PLACE, instance="head"))
    assert (head["status"], head["lastStopTimestamp"]) == ("TERMINATED", "2026-11-29T12:00:00.000Z")
    with pytest.raises(BadRequest, match="protected from deletion"):
        instances.delete(**PLACE, instance="head")
    head["deletionProtection"] = False
    polled(endpoint, instances.delete(**PLACE, instance="head"))
    assert world.items(Part.INSTANCES) == world.items(Part.DISKS) == []
    assert boot["lastDetachTimestamp"]


def test_a_group_that_is_resized_to_nothing_takes_its_instances_along(world: World, endpoint: str) -> None:
    group = world.add(Part.GROUPS, name="pod", zone=ZONE, targetSize=2)
    path = f"projects/481516234210/zones/{ZONE}/instanceGroupManagers/pod"
    for index in range(2):
        metadata = {"items": [{"key": "created-by", "value": path}]}
        world.add(Part.INSTANCES, name=f"pod-{index}", zone=ZONE, metadata=metadata)
    world.add(Part.INSTANCES, name="other", zone=ZONE)
    managers = compute(endpoint, "InstanceGroupManagers")
    polled(endpoint, managers.resize(**PLACE, instance_group_manager="pod", size=0))
    assert (group["targetSize"], [item["name"] for item in world.items(Part.INSTANCES)]) == (0, ["other"])


def test_addresses_and_images(world: World, endpoint: str) -> None:
    world.add(Part.ADDRESSES, name="free", region="us-central1", status="RESERVED")
    user = f"https://www.googleapis.com/compute/v1/projects/acme-tpu-dev/zones/{ZONE}/instances/head"
    world.add(Part.ADDRESSES, name="used", region="us-central1", status="IN_USE", users=[user])
    world.add(Part.ADDRESSES, name="wide", status="RESERVED")
    world.add(Part.IMAGES, name="old")
    place = {"project": "acme-tpu-dev", "region": "us-central1"}
    addresses = compute(endpoint, "Addresses")
    with pytest.raises(BadRequest, match="already being used"):
        addresses.delete(**place, address="used")
    addresses.delete(**place, address="free").result(timeout=20)
    compute(endpoint, "GlobalAddresses").delete(project="acme-tpu-dev", address="wide").result(timeout=20)
    compute(endpoint, "Images").delete(project="acme-tpu-dev", image="old").result(timeout=20)
    assert [item["name"] for item in world.items(Part.ADDRESSES)] == ["used"]
    assert world.items(Part.IMAGES) == []


def test_what_is_not_there_is_not_found(world: World, endpoint: str) -> None:
    with pytest.raises(NotFound, match=f"'projects/acme-tpu-dev/zones/{ZONE}/disks/llama' was not found"):
        compute(endpoint, "Disks").get(**PLACE, disk="llama")
    with pytest.raises(NotFound, match="projects/other"):
        compute(endpoint, "Disks").get(project="other", zone=ZONE, disk="llama")
