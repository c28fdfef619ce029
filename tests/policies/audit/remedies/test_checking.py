"""A plan that was edited by hand, is of another project, or is old: refused where it could do harm."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from policies.audit.model import Remedy, RemedyKind, VerdictKind
from policies.audit.remedies.checking import MOST_AGE, check_age, check_plan
from policies.audit.remedies.model import Measure, RemedyPlan
from policies.audit.remedies.places import place_of
from policies.audit.remedies.plan_file import plan_text, read_plan
from policies.audit.remedies.steps import steps_of
from policies.errors import InputError
from tests.policies.report.audit_sample import NOW

ZONE = "projects/p/zones/us-central1-b"
ITEM: dict[str, Any] = {
    "id": "42", "createTime": "t", "timeCreated": "t", "provisionedThroughput": "1200", "metageneration": "3",
    "targetSize": 4, "state": "READY", "status": "RUNNING",
}  # fmt: skip
RESOURCES = {
    RemedyKind.LOWER_THROUGHPUT: f"{ZONE}/disks/d",
    RemedyKind.SCHEDULE_THROUGHPUT: "projects/p/regions/us-central1/disks/d",
    RemedyKind.SNAPSHOT_THEN_DELETE: f"{ZONE}/disks/d",
    RemedyKind.DETACH: f"{ZONE}/disks/d",
    RemedyKind.RELEASE_ADDRESS: "projects/p/global/addresses/a",
    RemedyKind.DELETE_SNAPSHOT: "projects/p/global/snapshots/s",
    RemedyKind.DELETE_IMAGE: "projects/p/global/images/i",
    RemedyKind.DELETE_QUEUED_RESOURCE: "projects/p/locations/us-central1-b/queuedResources/q",
    RemedyKind.DELETE_NODE: "projects/p/locations/us-central1-b/nodes/n",
    RemedyKind.RESIZE_GROUP: f"{ZONE}/instanceGroupManagers/g",
    RemedyKind.STOP_INSTANCE: f"{ZONE}/instances/i",
    RemedyKind.SET_LIFECYCLE: "b/acme",
    RemedyKind.EXPIRE_VERSIONS: "b/acme",
    RemedyKind.SHORTEN_SOFT_DELETE: "b/acme",
    RemedyKind.DISABLE_CACHE: "b/acme/anywhereCaches/us-central1-b",
}


def plan(kind: RemedyKind) -> RemedyPlan:
    item = {**ITEM, **({"users": [f"{ZONE}/instances/vm"]} if kind is RemedyKind.DETACH else {})}
    resource = RESOURCES[kind]
    steps = steps_of(resource, Remedy(kind=kind, to_mibps=400, text=""), item)
    measure = Measure(resource=resource, verdict=VerdictKind.ORPHANED, kind=kind, saving=None, why="", steps=steps)
    return RemedyPlan(project="p", recorded_at=NOW, measures=(measure,))


def edited(kind: RemedyKind, *edits: tuple[tuple[Any, ...], Any]) -> RemedyPlan:
    """The plan, its file edited by hand: each edit is the path in the first measure's steps, and a value."""
    document = json.loads(plan_text(plan(kind)))
    for path, value in edits:
        node = document["measures"][0]["steps"]
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value
    return read_plan(json.dumps(document).encode(), "remedies.json")


@pytest.mark.parametrize("kind", list(RemedyKind))
def test_every_plan_of_ours_may_be_done(kind: RemedyKind) -> None:
    check_plan(read_plan(plan_text(plan(kind)).encode(), "remedies.json"))


LOWER, DELETE = RemedyKind.LOWER_THROUGHPUT, RemedyKind.SNAPSHOT_THEN_DELETE
OTHER = "projects/other/zones/us-central1-b/disks/d"


@pytest.mark.parametrize(
    ("kind", "edits", "why"),
    [
        (DELETE, [((1, "requires"), [])], "no longer say which d is meant"),
        (DELETE, [((1, "requires", 1, "fields", "status"), "CREATING")], "no longer asks for a snapshot"),
        (DELETE, [((1, "requires", 1, "fields", "sourceDiskId"), "43")], "no longer asks for a snapshot"),
        (DELETE, [((1, "requires", 1, "resource"), f"{ZONE}/disks/x")], "no longer asks for a snapshot"),
        (DELETE, [((1, "requires", 0, "fields"), {"id": "42"})], "no longer asks that nothing has the disk"),
        (DELETE, [((1, "requires", 0, "fields", "users"), ["vm"])], "no longer asks that nothing has the disk"),
        (DELETE, [((0, "arguments", "snapshot"), "../x")], "is no name of a snapshot"),
        (DELETE, [((0, "arguments", "snapshot"), "another")], "no longer that the snapshot of this disk is ready"),
        (LOWER, [((0, "resource"), OTHER)], "is of another project than the plan"),
        (LOWER, [((0, "done", "resource"), OTHER)], "is of another project than the plan"),
        (LOWER, [((0, "done", "fields"), {})], "no longer says what must hold afterwards"),
        (LOWER, [((0, "requires", 0, "fields"), {"users": None})], "no longer say which d is meant"),
        (LOWER, [((0, "arguments", "mibps"), 500)], "its end is another throughput"),
        (LOWER, [((0, "arguments", "mibps"), 4.5)], "must be a whole number above 0"),
        (LOWER, [((0, "arguments", "mibps"), "400")], "must be a whole number above 0"),
        (LOWER, [((0, "arguments"), {})], "must be a whole number above 0"),
        (LOWER, [((0, "action"), "delete-disk")], "no longer asks for a snapshot"),
        (LOWER, [((0, "action"), "delete-node")], "is nothing that this can be done to"),
        (LOWER, [((0, "resource"), f"{ZONE}/disks/..")], "names no resource"),
        (RemedyKind.RESIZE_GROUP, [((0, "arguments", "size"), 64)], "size is 64"),
        (RemedyKind.SHORTEN_SOFT_DELETE, [((0, "arguments", "patch"), {"acl": []})], "and nothing else"),
        (RemedyKind.SHORTEN_SOFT_DELETE, [((0, "arguments", "metageneration"), "3&x=y")], "must be the number"),
        (RemedyKind.SHORTEN_SOFT_DELETE, [((0, "resource"), "b/acme/o")], "names no resource"),
        (RemedyKind.DETACH, [((0, "requires", 1, "fields"), {})], "no longer asks that .*/instances/vm is stopped"),
        (RemedyKind.DETACH, [((0, "arguments"), {})], "is no machine"),
    ],
)
def test_an_edit_that_could_do_harm_is_refused(kind: RemedyKind, edits: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        check_plan(edited(kind, *edits))


def test_measures_may_be_taken_out() -> None:
    document = json.loads(plan_text(plan(LOWER)))
    document["measures"] = []
    check_plan(read_plan(json.dumps(document).encode(), "remedies.json"))


@pytest.mark.parametrize(
    "link",
    [
        "b/..", "b/../x", "b/a..b", "b/a b", "b/a?x=y", "b/a%2fb", "b/a/anywhereCaches/..", "b/é", "b/a\n",
        f"{ZONE}/disks/..", f"{ZONE}/disks/a?b", f"{ZONE}/disks/a#b", f"{ZONE}/disks/-a", "projects/../zones/z/disks/d",
    ],
)  # fmt: skip
def test_a_link_with_signs_that_no_name_has_is_refused(link: str) -> None:
    with pytest.raises(InputError, match="names no resource"):
        place_of(link)


@pytest.mark.parametrize("link", ["b/acme_x.example.com", "projects/example.com:p/zones/us-south1-ai1b/disks/d"])
def test_odd_names_that_are_names_are_taken(link: str) -> None:
    assert place_of(link).link == link


def test_an_old_plan_is_refused_and_so_is_one_of_tomorrow() -> None:
    check_age(plan(LOWER), NOW + MOST_AGE)
    check_age(plan(LOWER), NOW - datetime.timedelta(minutes=5))
    with pytest.raises(InputError, match=r"seen 2026-11-15 .* 9 days ago.*spotrail audit --project p"):
        check_age(plan(LOWER), NOW + datetime.timedelta(days=9))
    with pytest.raises(InputError, match="in the future"):
        check_age(plan(LOWER), NOW - datetime.timedelta(hours=1))


@pytest.mark.parametrize("saving", ["1e999999", "1E-999999", "9" * 40])
def test_an_amount_that_is_no_money_is_refused(saving: str) -> None:
    document = json.loads(plan_text(plan(LOWER)))
    document["measures"][0]["monthly_saving"] = saving
    with pytest.raises(InputError, match="must be a decimal number"):
        read_plan(json.dumps(document).encode(), "remedies.json")
