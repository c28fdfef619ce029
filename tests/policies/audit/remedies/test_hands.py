"""Remedies with Google's own clients against the loopback cloud: every action, its refusals, its faults."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from policies.audit.live.access import Access, Clients
from policies.audit.model import Remedy, RemedyKind, VerdictKind
from policies.audit.record import Part
from policies.audit.remedies.applying import HandsError, Outcome, Result, apply_plan
from policies.audit.remedies.hands import GoogleHands
from policies.audit.remedies.model import Measure, RemedyPlan, Step
from policies.audit.remedies.steps import snapshot_name, steps_of
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.server import served
from tests.google_cloud.world import World

NOW = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)
ZONE = "us-central1-b"
AT = f"projects/acme-tpu-dev/zones/{ZONE}"
PLACE = f"projects/acme-tpu-dev/locations/{ZONE}"


@pytest.fixture
def world() -> World:
    return World(now=NOW)


@pytest.fixture
def hands(world: World) -> Iterator[GoogleHands]:
    with served(world) as endpoint:
        access = Access(endpoint=endpoint, first_wait_s=0.02, deadline_s=5.0)
        yield GoogleHands(Clients(access), wait_s=20.0, poll_s=0.01)


def plan(hands: GoogleHands, resource: str, kind: RemedyKind, mibps: int | None = None) -> RemedyPlan:
    """The remedy of a resource as it is now."""
    item = hands.look(resource)
    assert item is not None
    steps = steps_of(resource, Remedy(kind=kind, to_mibps=mibps, text=""), item)
    measure = Measure(resource=resource, verdict=VerdictKind.ORPHANED, kind=kind, saving=None, why="", steps=steps)
    return RemedyPlan(project="acme-tpu-dev", recorded_at=NOW, measures=(measure,))


def applied(hands: GoogleHands, wanted: RemedyPlan) -> list[Result]:
    return list(apply_plan(wanted, hands, lambda _, __: True))


def outcomes(results: list[Result]) -> list[str]:
    return [
        f"{result.outcome.value}{': ' + result.why if result.outcome is Outcome.FAILED else ''}" for result in results
    ]


def disk(world: World, **fields: Any) -> str:
    wanted = {"name": "llama", "zone": ZONE, "type": "hyperdisk-ml", "sizeGb": "500", "provisionedThroughput": "12000"}
    world.add(Part.DISKS, **{**wanted, **fields})
    return f"{AT}/disks/llama"


def a_stopped_reader(world: World) -> str:
    world.add(
        Part.INSTANCES, name="vm", zone=ZONE, status="TERMINATED",
        disks=[{"source": f"https://www.googleapis.com/compute/v1/{AT}/disks/llama", "deviceName": "weights"}],
    )  # fmt: skip
    return disk(world, users=["vm"])


def add(part: Part, resource: str, **fields: Any) -> Callable[[World], str]:
    """A resource that is there to be ended, and its link."""

    def make(world: World) -> str:
        world.add(part, **fields)
        return resource

    return make


REGION = "projects/acme-tpu-dev/regions/us-central1"
WORLD_WIDE = "projects/acme-tpu-dev/global"
QUEUED = {
    "name": f"{PLACE}/queuedResources/q1", "createTime": "2026-10-01T00:00:00Z", "state": {"state": "SUSPENDED"},
    "tpu": {"nodeSpec": [{"parent": PLACE, "nodeId": "gone", "node": {"acceleratorType": "v6e-8"}}]},
}  # fmt: skip
ACTIONS = {
    "lower": (disk, RemedyKind.LOWER_THROUGHPUT),
    "detach": (a_stopped_reader, RemedyKind.DETACH),
    "address": (
        add(Part.ADDRESSES, f"{REGION}/addresses/ip", name="ip", region="us-central1", status="RESERVED"),
        RemedyKind.RELEASE_ADDRESS,
    ),
    "snapshot": (add(Part.SNAPSHOTS, f"{WORLD_WIDE}/snapshots/old", name="old"), RemedyKind.DELETE_SNAPSHOT),
    "image": (add(Part.IMAGES, f"{WORLD_WIDE}/images/old", name="old"), RemedyKind.DELETE_IMAGE),
    "group": (
        add(Part.GROUPS, f"{AT}/instanceGroupManagers/pod", name="pod", zone=ZONE, targetSize=4),
        RemedyKind.RESIZE_GROUP,
    ),
    "instance": (add(Part.INSTANCES, f"{AT}/instances/head", name="head", zone=ZONE), RemedyKind.STOP_INSTANCE),
    "node": (
        add(Part.NODES, f"{PLACE}/nodes/pod", name=f"{PLACE}/nodes/pod", state="PREEMPTED", acceleratorType="v6e-8"),
        RemedyKind.DELETE_NODE,
    ),
    "queued": (add(Part.QUEUED_RESOURCES, QUEUED["name"], **QUEUED), RemedyKind.DELETE_QUEUED_RESOURCE),
    "lifecycle": (add(Part.BUCKETS, "b/acme-tmp", name="acme-tmp"), RemedyKind.SET_LIFECYCLE),
    "versions": (add(Part.BUCKETS, "b/acme-tmp", name="acme-tmp"), RemedyKind.EXPIRE_VERSIONS),
    "soft delete": (add(Part.BUCKETS, "b/acme-tmp", name="acme-tmp"), RemedyKind.SHORTEN_SOFT_DELETE),
    "cache": (
        add(Part.CACHES, f"b/acme-tmp/anywhereCaches/{ZONE}", bucket="acme-tmp", anywhereCacheId=ZONE, zone=ZONE),
        RemedyKind.DISABLE_CACHE,
    ),
    "snapshot then delete": (disk, RemedyKind.SNAPSHOT_THEN_DELETE),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_is_done_once_and_not_twice(world: World, hands: GoogleHands, name: str) -> None:
    make, kind = ACTIONS[name]
    if kind is RemedyKind.DISABLE_CACHE:
        world.add(Part.BUCKETS, name="acme-tmp")
    wanted = plan(hands, make(world), kind, 400)
    assert outcomes(applied(hands, wanted)) == ["done"] * len(wanted.measures[0].steps)
    before = world.counts()
    assert outcomes(applied(hands, wanted)) == ["already so"] * len(wanted.measures[0].steps)
    changed = world.counts() - before
    assert all(method.rpartition(".")[2] == "get" for method in changed), changed


@pytest.mark.parametrize("fault", [FaultKind.RATE_LIMITED, FaultKind.UNAVAILABLE])
@pytest.mark.parametrize("name", ["lower", "snapshot then delete", "node", "group", "lifecycle"])
def test_a_busy_cloud_is_asked_again(world: World, hands: GoogleHands, name: str, fault: FaultKind) -> None:
    make, kind = ACTIONS[name]
    wanted = plan(hands, make(world), kind, 400)
    world.fail(Fault(kind=fault, method="*.get", times=2))
    assert set(outcomes(applied(hands, wanted))) == {"done"}


@pytest.mark.parametrize("name", ["lower", "snapshot then delete", "address", "group"])
def test_an_answer_that_is_lost_ends_in_the_same_world(world: World, hands: GoogleHands, name: str) -> None:
    make, kind = ACTIONS[name]
    wanted = plan(hands, make(world), kind, 400)
    world.fail(*(Fault(kind=FaultKind.LOST, method=f"compute.*.{verb}", times=1) for verb in CHANGES))
    # Each run loses one answer at most: what was heard all the same is found done by the next.
    for _ in wanted.measures[0].steps:
        applied(hands, wanted)
    assert {result.outcome.good for result in applied(hands, wanted)} == {True}


CHANGES = ("update", "insert", "delete", "resize")


def test_a_failed_operation_is_told_and_nothing_is_deleted_after_it(world: World, hands: GoogleHands) -> None:
    wanted = plan(hands, disk(world), RemedyKind.SNAPSHOT_THEN_DELETE)
    world.fail(Fault(kind=FaultKind.FAILED_OPERATION, method="compute.snapshots.insert"))
    first, second = applied(hands, wanted)
    assert first.outcome is Outcome.FAILED
    assert "Internal error" in first.why
    assert second.outcome is Outcome.SKIPPED
    assert world.named(Part.DISKS, "llama")


def test_six_hours_have_to_pass(world: World, hands: GoogleHands) -> None:
    resource = disk(world)
    assert outcomes(applied(hands, plan(hands, resource, RemedyKind.LOWER_THROUGHPUT, 4000))) == ["done"]
    (result,) = applied(hands, plan(hands, resource, RemedyKind.LOWER_THROUGHPUT, 400))
    assert result.outcome is Outcome.FAILED
    assert "once in 6 hours" in result.why
    world.now += datetime.timedelta(hours=7)
    assert outcomes(applied(hands, plan(hands, resource, RemedyKind.LOWER_THROUGHPUT, 400))) == ["done"]


def test_a_volume_that_was_attached_meanwhile_is_left_alone(world: World, hands: GoogleHands) -> None:
    wanted = plan(hands, disk(world), RemedyKind.SNAPSHOT_THEN_DELETE)
    world.named(Part.DISKS, "llama")["users"] = [f"https://www.googleapis.com/compute/v1/{AT}/instances/new"]
    first, _ = applied(hands, wanted)
    assert first.outcome is Outcome.CHANGED
    assert world.items(Part.SNAPSHOTS) == []


def test_a_bucket_that_was_changed_meanwhile_is_left_alone(world: World, hands: GoogleHands) -> None:
    world.add(Part.BUCKETS, name="acme-tmp")
    wanted = plan(hands, "b/acme-tmp", RemedyKind.SET_LIFECYCLE)
    world.named(Part.BUCKETS, "acme-tmp")["metageneration"] = "9"
    (result,) = applied(hands, wanted)
    assert result.outcome is Outcome.CHANGED
    assert "metageneration" in result.why


def test_a_snapshot_that_another_run_began_is_waited_for(world: World, hands: GoogleHands) -> None:
    resource = disk(world)
    item = world.named(Part.DISKS, "llama")
    wanted = plan(hands, resource, RemedyKind.SNAPSHOT_THEN_DELETE)
    step = wanted.measures[0].steps[0]
    started = hands._clients.compute("Snapshots")
    from google.cloud import compute_v1

    half_made = compute_v1.Snapshot(name=step.arguments["snapshot"], source_disk=resource)
    started.insert(project="acme-tpu-dev", snapshot_resource=half_made)
    assert [result.outcome.good for result in applied(hands, wanted)] == [True, True]
    assert [item["name"] for item in world.items(Part.SNAPSHOTS)] == [snapshot_name("llama", item)]


@pytest.mark.parametrize("polls", [5, 6, 7, 8, 12])
def test_a_disk_that_another_run_is_deleting_is_waited_for(world: World, hands: GoogleHands, polls: int) -> None:
    wanted = plan(hands, disk(world), RemedyKind.SNAPSHOT_THEN_DELETE)
    world.fail(Fault(kind=FaultKind.LOST, method="compute.disks.delete", times=1))
    world.operations.polls = polls
    applied(hands, wanted)
    assert [result.outcome.good for result in applied(hands, wanted)] == [True, True]
    assert world.items(Part.DISKS) == []
    assert world.counts()["compute.disks.delete"] == 1


def test_a_snapshot_of_another_disk_under_the_name_keeps_the_disk(world: World, hands: GoogleHands) -> None:
    wanted = plan(hands, disk(world), RemedyKind.SNAPSHOT_THEN_DELETE)
    name = wanted.measures[0].steps[0].arguments["snapshot"]
    world.add(Part.SNAPSHOTS, name=name, status="READY", sourceDiskId="999", sourceDisk=f"{AT}/disks/other")
    first, second = applied(hands, wanted)
    assert (first.outcome, second.outcome) == (Outcome.FAILED, Outcome.SKIPPED)
    assert "sourceDiskId is 999" in first.why
    assert len(world.items(Part.DISKS)) == 1


def test_the_snapshot_lies_in_the_region_and_says_what_it_is(world: World, hands: GoogleHands) -> None:
    applied(hands, plan(hands, disk(world), RemedyKind.SNAPSHOT_THEN_DELETE))
    (snapshot,) = world.items(Part.SNAPSHOTS)
    assert snapshot["storageLocations"] == ["us-central1"]
    assert snapshot["labels"] == {"managed-by": "spotrail", "role": "audit", "protect": "true"}


class Killed(BaseException):
    pass


def test_killed_between_any_two_steps_and_run_again(hands: GoogleHands, world: World) -> None:
    wanted = plan(hands, disk(world), RemedyKind.SNAPSHOT_THEN_DELETE)
    act = hands.act

    def then_die(step: Step) -> None:
        act(step)
        raise Killed

    hands.act = then_die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        applied(hands, wanted)
    hands.act = act  # type: ignore[method-assign]
    assert outcomes(applied(hands, wanted)) == ["already so", "done"]
    assert (len(world.items(Part.DISKS)), len(world.items(Part.SNAPSHOTS))) == (0, 1)


@pytest.mark.parametrize("link", ["", "llama", "projects/p/zones/z/nothing/n", "projects/p/zones//disks/d", "b/x/o/y"])
def test_a_link_of_no_known_kind_is_refused(hands: GoogleHands, link: str) -> None:
    with pytest.raises(HandsError, match="names no resource that a remedy can look at"):
        hands.look(link)


def test_what_is_forbidden_is_told(world: World, hands: GoogleHands) -> None:
    resource = disk(world)
    world.fail(Fault(kind=FaultKind.FORBIDDEN, method="compute.disks.get"))
    with pytest.raises(HandsError, match="get projects/acme-tpu-dev/zones/us-central1-b/disks/llama: 403"):
        hands.look(resource)
