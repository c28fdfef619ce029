"""Addresses, snapshots and images that nothing needs, and those that only look so."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from policies.audit.context import Context
from policies.audit.model import AuditFinding, RemedyKind, Since, Verdict, VerdictKind
from policies.audit.pricing import GIB
from policies.audit.record import Item, Missing, Part
from policies.audit.terms import Terms
from policies.money import Amount
from policies.rules.model import Severity
from tests.policies.audit.worlds import (
    NOW,
    URL,
    ZONE,
    context,
    disk,
    everywhere,
    findings,
    regional,
    told,
    verdict,
    zonal,
)

DAY = datetime.timedelta(days=1)
GONE = f"{URL}/zones/{ZONE}/disks/gone"
CREATED = "creationTimestamp"


def address(name: str = "a", **fields: Any) -> Item:
    return regional("addresses", name, status="RESERVED", addressType="EXTERNAL") | fields


def snapshot(**fields: Any) -> Item:
    own = {"storageBytes": str(40 * GIB), "diskSizeGb": "500", "storageLocations": ["us-central1"]}
    return everywhere("snapshots", "s", id="11", status="READY", sourceDisk=GONE, sourceDiskId="77", **own) | fields


def image(name: str = "i", **fields: Any) -> Item:
    own = {"archiveSizeBytes": str(8 * GIB), "diskSizeGb": "50", "storageLocations": ["us-central1"]}
    return everywhere("images", name, status="READY", sourceDisk=GONE, sourceDiskId="77", **own) | fields


def world(part: Part, *items: Item, disks: tuple[Item, ...] = (), **more: Any) -> Context:
    return context({part: items, Part.DISKS: disks}, **more)


def only(name: str, seen: Context) -> Verdict | None:
    found = told(name, seen)
    assert len(found) <= 1
    return found[0] if found and isinstance(found[0], Verdict) else None


def test_an_address_that_nothing_uses_is_released() -> None:
    found = verdict("addresses", context({Part.ADDRESSES: [address()]}))
    assert (found.kind, found.waste, found.location) == (
        VerdictKind.ORPHANED,
        Amount.by_hour(Decimal("0.01")),
        "us-central1",
    )
    assert (found.since_confidence, found.wasted_so_far) == (Since.UNKNOWN, None)
    assert found.message == "reserved since 09-01, nothing uses it; once released, its number is not to be had again"
    assert found.remedy is not None
    assert (found.remedy.kind, found.remedy.monthly_saving) == (RemedyKind.RELEASE_ADDRESS, found.waste)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "IN_USE", "users": [f"{URL}/zones/{ZONE}/instances/head"]},
        {"status": "RESERVING"},
        {"addressType": "INTERNAL"},
        {"ipVersion": "IPV6"},
    ],
)
def test_these_addresses_waste_nothing(fields: Item) -> None:
    assert told("addresses", context({Part.ADDRESSES: [address(**fields)]})) == []


@pytest.mark.parametrize("fields", [{"status": "LENT"}, {"status": None}, {"addressType": "ORBITAL"}])
def test_an_address_in_a_state_of_the_future_is_unknown(fields: Item) -> None:
    found = verdict("addresses", context({Part.ADDRESSES: [address(**fields)]}))
    assert (found.kind, found.waste, found.remedy) == (VerdictKind.UNKNOWN_STATE, None, None)


@pytest.mark.parametrize(("hours", "kind"), [(23, VerdictKind.TOO_NEW), (24, VerdictKind.ORPHANED)])
def test_a_fresh_address_has_its_grace(hours: int, kind: VerdictKind) -> None:
    item = address(**{CREATED: (NOW - datetime.timedelta(hours=hours)).isoformat()})
    assert verdict("addresses", context({Part.ADDRESSES: [item]})).kind is kind


def test_an_address_without_a_price_says_so() -> None:
    item = address(region=f"{URL}/regions/mars-north1", selfLink=f"{URL}/regions/mars-north1/addresses/a")
    found = verdict("addresses", context({Part.ADDRESSES: [item]}))
    assert (found.kind, found.waste is None) == (VerdictKind.ORPHANED, False)  # of the book's row for everywhere


def test_a_snapshot_of_a_disk_that_is_gone_bills_its_bytes() -> None:
    found = verdict("snapshots", world(Part.SNAPSHOTS, snapshot()))
    assert (found.kind, found.waste) == (VerdictKind.ORPHANED, Amount.by_month(2))  # 40 x 0.05, not 500 x 0.05
    assert found.message == "of 09-01, 40.0 GiB, its disk gone is gone"
    assert found.remedy is not None
    assert (found.remedy.kind, found.remedy.monthly_saving) == (RemedyKind.DELETE_SNAPSHOT, found.waste)


@pytest.mark.parametrize(
    ("fields", "disks"),
    [
        ({}, (disk("gone", id="77"),)),
        ({"sourceDiskId": None}, (disk("gone", id="5"),)),
        ({"sourceDisk": f"projects/reef/zones/{ZONE}/disks/gone", "sourceDiskId": ""}, (disk("gone"),)),
        ({}, (disk("llama", sourceSnapshot=f"{URL}/global/snapshots/s"),)),
        ({}, (disk("llama", sourceSnapshotId="11"),)),
        ({"labels": {"managed-by": "spotrail", "role": "model"}}, ()),
        ({"labels": {"role": "model"}}, ()),
        ({"sourceDisk": None, "sourceDiskId": None}, ()),
        ({CREATED: (NOW - 30 * DAY).isoformat()}, ()),
    ],
    ids=["disk there", "by its name", "partial link", "volume", "volume by id", "stack", "model", "uploaded", "young"],
)
def test_a_snapshot_that_is_needed_or_young_is_no_orphan(fields: Item, disks: tuple[Item, ...]) -> None:
    assert told("snapshots", world(Part.SNAPSHOTS, snapshot(**fields), disks=disks)) == []


def test_a_later_disk_of_the_same_name_is_another_one() -> None:
    seen = world(Part.SNAPSHOTS, snapshot(), disks=(disk("gone", id="78"),))
    assert verdict("snapshots", seen).kind is VerdictKind.ORPHANED


def test_a_snapshot_of_a_schedule_is_a_mistake_of_its_retention_and_no_orphan() -> None:
    (found,) = told("snapshots", world(Part.SNAPSHOTS, snapshot(autoCreated=True)))
    assert isinstance(found, AuditFinding)
    assert (found.rule, found.monthly) == ("DISK-SNAPSHOT-RETENTION", Amount.by_month(2))


@pytest.mark.parametrize(
    ("part", "name", "item"),
    [
        (Part.SNAPSHOTS, "snapshots", snapshot()),
        (Part.IMAGES, "images", image()),
    ],
)
def test_where_not_all_disks_were_seen_none_is_gone(part: Part, name: str, item: Item) -> None:
    gap = Missing(part="compute.disks us-east1-d", why="503")
    found = only(name, world(part, item, missing=(gap,)))
    assert found is not None
    assert (found.kind, found.waste, found.remedy) == (VerdictKind.UNKNOWN_STATE, None, None)
    never = only(name, context({part: [item]}))
    assert never is not None
    assert never.message.startswith("compute.disks was not asked for, or it would be ORPHANED")
    assert told(name, world(part, item | {"autoCreated": True, "labels": {"role": "model"}}, missing=(gap,))) == []


def test_the_age_of_an_orphan_is_a_setting() -> None:
    item = snapshot(**{CREATED: (NOW - 3 * DAY).isoformat()})
    assert verdict("snapshots", world(Part.SNAPSHOTS, item, terms=Terms(orphan_age=2 * DAY)))


@pytest.mark.parametrize("status", ["MELTING", 5])
def test_a_snapshot_or_image_in_a_state_of_the_future_is_unknown(status: Any) -> None:
    assert verdict("snapshots", world(Part.SNAPSHOTS, snapshot(status=status))).kind is VerdictKind.UNKNOWN_STATE
    assert verdict("images", world(Part.IMAGES, image(status=status))).kind is VerdictKind.UNKNOWN_STATE


def test_a_snapshot_that_does_not_say_its_bytes_has_no_price() -> None:
    found = verdict("snapshots", world(Part.SNAPSHOTS, snapshot(storageBytes=None)))
    assert (found.kind, found.waste) == (VerdictKind.ORPHANED, None)
    assert "size not known" in found.message
    assert "its price is not known: storageBytes" in found.message


def test_an_image_that_nothing_was_made_of_is_deleted() -> None:
    found = verdict("images", world(Part.IMAGES, image()))
    assert (found.kind, found.waste) == (VerdictKind.ORPHANED, Amount.by_month(Decimal("0.4")))
    assert found.remedy is not None
    assert found.remedy.kind is RemedyKind.DELETE_IMAGE


@pytest.mark.parametrize(
    ("fields", "disks"),
    [
        ({}, (disk("gone", id="77"),)),
        ({}, (disk("boot", sourceImage=f"{URL}/global/images/i"),)),
        ({"family": "trainer"}, ()),
        ({"labels": {"managed-by": "spotrail"}}, ()),
        ({"sourceDisk": None}, ()),
        ({CREATED: (NOW - 29 * DAY).isoformat()}, ()),
    ],
    ids=["disk there", "boots", "newest of its family", "stack", "uploaded", "young"],
)
def test_an_image_that_is_needed_or_young_is_no_orphan(fields: Item, disks: tuple[Item, ...]) -> None:
    assert told("images", world(Part.IMAGES, image(**fields), disks=disks)) == []


def test_of_a_family_only_the_newest_that_is_not_retired_is_kept() -> None:
    old = image("old", family="trainer", **{CREATED: "2026-05-01T00:00:00Z"})
    new = image("new", family="trainer", **{CREATED: "2026-06-01T00:00:00Z"})
    bad = image("bad", family="trainer", deprecated={"state": "OBSOLETE"}, **{CREATED: "2026-07-01T00:00:00Z"})
    found = told("images", world(Part.IMAGES, old, new, bad))
    assert [each.name for each in found if isinstance(each, Verdict)] == ["old", "bad"]


@pytest.mark.parametrize(
    ("part", "item", "rule"),
    [
        (Part.DISKS, disk(labels={"ttl": "soon"}), "DISK-LABELS"),
        (Part.SNAPSHOTS, snapshot(labels={"ttl": "soon"}), "DISK-LABELS"),
        (Part.ADDRESSES, address(labels={"ttl": "soon"}), "BUDGET-LABELS"),
        (Part.BUCKETS, {"name": "b", "labels": {"ttl": "soon"}}, "GCS-LABELS"),
        (Part.NODES, {"name": "n", "labels": {"ttl": "soon"}}, "TPU-LABELS"),
        (Part.INSTANCES, {"name": "v", "labels": {"ttl": "soon"}}, "VM-LABELS"),
        (Part.INSTANCES, {"name": "v", "machineType": "ct6e-standard-8t", "labels": {"ttl": "soon"}}, "TPU-LABELS"),
    ],
)
def test_a_ttl_that_says_nothing_is_a_finding(part: Part, item: Item, rule: str) -> None:
    (found,) = findings("ttl_labels", context({part: [item]}))
    assert (found.rule, found.severity) == (rule, Severity.WARNING)
    assert found.message == 'label ttl is "soon": the guard understands hours or days, as in 12h or 7d'
    assert not findings("ttl_labels", context({part: [{**item, "labels": {"ttl": "7d"}}]}))


@pytest.mark.parametrize(("ttl", "count"), [("1w", 1), ("7D", 1), ("0h", 1), ("7d", 0), ("", 0)])
def test_a_ttl_that_a_group_gives_to_its_machines_is_read_too(ttl: str, count: int) -> None:
    item = zonal("instanceGroupManagers", "wave", allInstancesConfig={"properties": {"labels": {"ttl": ttl}}})
    found = findings("ttl_labels", context({Part.GROUPS: [item]}))
    assert [each.rule for each in found] == ["VM-LABELS"] * count
