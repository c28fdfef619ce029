"""The steps of each remedy: what must hold before, what is called, what holds afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from policies.audit.model import Remedy, RemedyKind
from policies.audit.remedies.model import Action, Condition, unmet
from policies.audit.remedies.steps import snapshot_name, steps_of
from policies.errors import InputError
from tests.policies.audit.remedies.small_world import DISK, SNAPSHOT

BUCKET = "b/acme-checkpoints"
VM = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-b/instances/vm"


def remedy(kind: RemedyKind, mibps: int | None = None) -> Remedy:
    return Remedy(kind=kind, to_mibps=mibps, text="")


def disk(**more: Any) -> dict[str, Any]:
    return {"id": "42", "name": "llama", "provisionedThroughput": "1200", **more}


def test_a_volume_goes_only_after_a_snapshot_of_it_is_ready() -> None:
    taken, deleted = steps_of(DISK, remedy(RemedyKind.SNAPSHOT_THEN_DELETE), disk())
    assert (taken.action, deleted.action) == (Action.CREATE_SNAPSHOT, Action.DELETE_DISK)
    ready = Condition(resource=SNAPSHOT, fields={"status": "READY", "sourceDiskId": "42"})
    assert taken.done == ready
    assert ready in deleted.requires
    unused = {"id": "42", "users": None, "lastAttachTimestamp": None, "lastDetachTimestamp": None}
    assert Condition(resource=DISK, fields=unused) in deleted.requires
    assert deleted.done == Condition(resource=DISK, absent=True)


def test_lowering_names_the_throughput_that_was_seen() -> None:
    (step,) = steps_of(DISK, remedy(RemedyKind.LOWER_THROUGHPUT, 400), disk(users=[VM]))
    assert step.arguments == {"mibps": 400}
    assert step.requires[0].fields == {"id": "42", "provisionedThroughput": "1200", "users": [VM]}
    assert step.done.fields == {"id": "42", "provisionedThroughput": "400"}
    assert step.text == "set the throughput of llama to 400 MiB/s (it is 1,200)"


def test_a_volume_is_detached_from_one_stopped_host_after_the_other() -> None:
    first, second = steps_of(DISK, remedy(RemedyKind.DETACH), disk(users=[VM, f"{VM}2"]))
    assert [step.done.lacks["users"] for step in (first, second)] == [
        VM.partition("/v1/")[2], f"{VM}2".partition("/v1/")[2],
    ]  # fmt: skip
    assert first.requires[1] == Condition(resource=VM.partition("/v1/")[2], fields={"status": "TERMINATED"})


@pytest.mark.parametrize(
    ("kind", "item", "action", "requires", "done"),
    [
        (RemedyKind.RELEASE_ADDRESS, {"id": "1", "status": "RESERVED"}, "release-address", {"status": "RESERVED"},
         None),
        (RemedyKind.DELETE_SNAPSHOT, {"id": "1"}, "delete-snapshot", {}, None),
        (RemedyKind.DELETE_IMAGE, {"id": "1"}, "delete-image", {}, None),
        (RemedyKind.DELETE_NODE, {"id": "1", "state": "PREEMPTED"}, "delete-node", {"state": "PREEMPTED"}, None),
        (
            RemedyKind.DELETE_QUEUED_RESOURCE,
            {"createTime": "2026-11-01T00:00:00Z", "state": {"state": "FAILED"}},
            "delete-queued-resource",
            {"state.state": "FAILED"},
            None,
        ),
        (RemedyKind.RESIZE_GROUP, {"id": "1", "targetSize": 4}, "resize-group", {"targetSize": 4}, {"targetSize": "0"}),
        (RemedyKind.STOP_INSTANCE, {"id": "1", "status": "RUNNING"}, "stop-instance", {"status": "RUNNING"},
         {"status": "TERMINATED"}),
        (RemedyKind.DISABLE_CACHE, {"id": "1", "state": "running"}, "disable-cache", {"state": "running"},
         {"state": "disabled"}),
    ],
)  # fmt: skip
def test_one_step_remedies(
    kind: RemedyKind, item: dict[str, Any], action: str, requires: dict[str, Any], done: dict[str, Any] | None
) -> None:
    (step,) = steps_of("projects/p/thing", remedy(kind), item)
    assert step.action.value == action
    assert requires.items() <= step.requires[0].fields.items()
    assert unmet(step.requires[0], item) == ""
    assert step.done.absent == (done is None)
    assert (done or {}).items() <= step.done.fields.items()


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (
            RemedyKind.SET_LIFECYCLE,
            {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}},
        ),
        (
            RemedyKind.EXPIRE_VERSIONS,
            {"action": {"type": "Delete"}, "condition": {"daysSinceNoncurrentTime": 7}},
        ),
    ],
)
def test_one_lifecycle_rule_is_added_to_those_that_are_there(kind: RemedyKind, rule: dict[str, Any]) -> None:
    """Who ends uploads deletes no versions by the way, also where the bucket keeps some."""
    mine = {"action": {"type": "Delete"}, "condition": {"age": 30, "matchesPrefix": ["tmp/"]}}
    item = {
        "id": "x",
        "timeCreated": "t",
        "metageneration": "7",
        "versioning": {"enabled": True},
        "lifecycle": {"rule": [mine]},
    }
    (step,) = steps_of(BUCKET, remedy(kind), item)
    rules = step.arguments["patch"]["lifecycle"]["rule"]  # type: ignore[call-overload, index]
    assert rules == [mine, rule]
    assert "7 days" in step.text
    assert step.arguments["metageneration"] == "7"
    assert unmet(step.done, {"timeCreated": "t", "lifecycle": {"rule": list(reversed(rules))}}) == ""


def test_a_bucket_is_known_by_its_time_of_creation_and_not_by_its_name() -> None:
    item = {"id": "acme-checkpoints", "timeCreated": "2026-01-01T00:00:00Z", "metageneration": "1"}
    (step,) = steps_of(BUCKET, remedy(RemedyKind.SHORTEN_SOFT_DELETE), item)
    assert unmet(step.requires[0], item) == ""
    assert unmet(step.requires[0], {**item, "timeCreated": "2026-11-01T00:00:00Z"}).startswith("acme-checkpoints: time")
    with pytest.raises(InputError, match="neither an id nor a time of creation"):
        steps_of(BUCKET, remedy(RemedyKind.SHORTEN_SOFT_DELETE), {"id": "acme-checkpoints", "metageneration": "1"})


def test_a_resource_without_identity_or_field_is_refused() -> None:
    with pytest.raises(InputError, match="neither an id nor a time of creation"):
        steps_of(DISK, remedy(RemedyKind.LOWER_THROUGHPUT, 400), {"provisionedThroughput": "1200"})
    with pytest.raises(InputError, match="no provisionedThroughput"):
        steps_of(DISK, remedy(RemedyKind.LOWER_THROUGHPUT, 400), {"id": "42"})
    with pytest.raises(InputError, match="names no throughput"):
        steps_of(DISK, remedy(RemedyKind.LOWER_THROUGHPUT), disk())


@pytest.mark.parametrize("kind", list(RemedyKind))
def test_every_kind_of_remedy_has_steps(kind: RemedyKind) -> None:
    item = disk(users=[VM], status="RUNNING", state="READY", metageneration="1", targetSize=2)
    steps = steps_of(DISK, remedy(kind, 400), item)
    assert steps
    # The world that was seen lets the first step go ahead, and none is done already.
    assert unmet(steps[0].requires[0], item) == ""
    assert all(unmet(step.done, item if step.done.resource == DISK else None) for step in steps)


def test_the_name_of_a_snapshot_is_legal_and_belongs_to_one_disk() -> None:
    name = snapshot_name("a" * 63, {"id": "1234567890123456789"})
    assert len(name) <= 63
    assert name != snapshot_name("a" * 63, {"id": "1234567890123456780"})
    assert snapshot_name("llama", {"id": "42", "sizeGb": "500"}) == SNAPSHOT.rpartition("/")[2]
    assert snapshot_name("llama", {"id": "42", "lastDetachTimestamp": "t"}) != SNAPSHOT.rpartition("/")[2]


@pytest.mark.parametrize(
    ("fields", "item", "why"),
    [
        ({"users": []}, {}, ""),
        ({"users": None}, {"users": []}, ""),
        ({"users": [VM]}, {"users": [VM.partition("/v1/")[2]]}, ""),
        ({"targetSize": "0"}, {"targetSize": 0}, ""),
        ({"users": []}, {"users": [VM]}, "llama: users is"),
        ({"a.b": "1"}, {"a": {"b": 2}}, "llama: a.b is 2, where 1 was expected"),
        ({"a.b": None}, {"a": "text"}, ""),
        ({"a": "x"}, {}, "llama: a is empty, where x was expected"),
        ({"flag": True}, {"flag": False}, "llama: flag is false, where true was expected"),
    ],
)
def test_conditions(fields: dict[str, Any], item: dict[str, Any], why: str) -> None:
    assert unmet(Condition(resource=DISK, fields=fields), item).startswith(why)
    assert bool(unmet(Condition(resource=DISK, fields=fields), item)) == bool(why)


def test_absence() -> None:
    assert unmet(Condition(resource=DISK, absent=True), None) == ""
    assert unmet(Condition(resource=DISK, absent=True), {}) == "llama exists"
    assert unmet(Condition(resource=DISK), None) == "llama does not exist"
