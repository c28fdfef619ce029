"""Inventory: pages become parts, gaps are named, and odd answers of the APIs are taken as they are."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.cloud import tpu_v2

from policies.audit.live.access import Access, Clients
from policies.audit.live.failures import CloudError
from policies.audit.live.inventory import Found, Page, as_json, read_part
from policies.audit.record import Part
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.server import served
from tests.google_cloud.world import World
from tests.policies.audit.small_world import NOW, SECRET, collected, small_world

B = "us-central1-b"


def pages(*found: Page | str) -> Iterator[Page]:
    for page in found:
        if isinstance(page, str):
            raise CloudError(page)
        yield page


def test_pages_become_a_part_and_fields_are_cut() -> None:
    first = Page(items=[{"name": "a", "description": SECRET}], gaps=[])
    found = read_part(Part.DISKS, pages(first, Page(items=[{"name": "b"}], gaps=[])))
    assert found == Found(items=[{"name": "a"}, {"name": "b"}])


def test_a_gap_is_named_once_and_in_clean_words() -> None:
    page = Page(
        items=[], gaps=[("us-east1-d", "alice@example.com\x1b[31m"), ("us-east1-d", "again"), ("", "somewhere")]
    )
    found = read_part(Part.DISKS, pages(page, page))
    assert [(gap.part, gap.why) for gap in found.missing] == [
        ("compute.disks us-east1-d", "(an account) [31m"),
        ("compute.disks", "somewhere"),
    ]


def test_what_fails_at_the_first_page_is_an_error_and_later_a_gap() -> None:
    with pytest.raises(CloudError, match="told 403"):
        read_part(Part.DISKS, pages("told 403"))
    found = read_part(Part.DISKS, pages(Page(items=[{"name": "a"}], gaps=[]), "told 403"))
    assert found.items == [{"name": "a"}]
    assert [(gap.part, gap.why) for gap in found.missing] == [("compute.disks", "told 403 (after 1 pages)")]


def test_a_state_of_tomorrow_is_kept_as_its_number() -> None:
    node = tpu_v2.Node.pb(tpu_v2.Node(name="projects/p/locations/z/nodes/pod"))
    node.state = 99
    assert list(as_json([node])) == [{"name": "projects/p/locations/z/nodes/pod", "state": 99}]


def test_int64_are_texts_as_in_googles_json() -> None:
    node = tpu_v2.Node.pb(tpu_v2.Node(id=4611686018427387904))
    assert list(as_json([node])) == [{"id": "4611686018427387904"}]


def test_regional_and_global_resources_are_seen_too() -> None:
    world = World(now=NOW)
    region = "us-central1"
    zones = [f"zones/{region}-a", f"zones/{B}"]
    world.add(Part.DISKS, name="twice", region=region, replicaZones=zones)
    world.add(Part.ADDRESSES, name="everywhere", status="RESERVED")
    world.add(Part.GROUPS, name="spread", region=region, targetSize=3)
    record = collected(world).record
    assert str(record.items(Part.DISKS)[0]["region"]).endswith(f"/regions/{region}")
    assert [item["name"] for part in (Part.ADDRESSES, Part.GROUPS) for item in record.items(part)] == [
        "everywhere",
        "spread",
    ]


def test_lists_ask_for_what_can_be_seen_and_changes_do_not() -> None:
    world = small_world()
    with served(world) as endpoint:
        clients = Clients(Access(endpoint=endpoint))
        clients.compute("Disks").get(project=world.project, zone=B, disk="llama")
        list(clients.compute_lists("Disks").aggregated_list(project=world.project))
    asked = {call.method: call.detail for call in world.calls.log}
    assert "returnPartialSuccess=true" in asked["compute.disks.aggregatedList"]
    assert "returnPartialSuccess" not in asked["compute.disks.get"]


def test_thousands_of_buckets_come_in_pages() -> None:
    world = World(now=NOW)
    for number in range(1001):
        world.add(Part.BUCKETS, name=f"b-{number:04}")
    found = collected(world)
    assert len(found.record.items(Part.BUCKETS)) == 1001
    assert found.calls["storage.buckets.list"] == 2


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ({"run": "r", "attempt": 2, "step": 5, "time": "2026-11-29T11:58:00Z"}, True),
        ('{"run": "r", "step": NaN}', True),
        ("{", False),
        ("[1]", False),
        ('"text"', False),
        ("[" * 100_000, False),
        ("x" * 70_000, False),
        ("", False),
        ("\udcff", False),
    ],
)
def test_a_heartbeat_says_what_it_says_or_nothing(content: Any, kept: bool) -> None:
    world = World(now=NOW)
    world.add(Part.BUCKETS, name="runs", labels={"managed-by": "spotrail"})
    text = content if isinstance(content, dict) else content.encode("utf-8", "replace").decode()
    world.add(Part.HEARTBEATS, bucket="runs", name="r/heartbeat.json", updated="now-5m", content=text)
    found = collected(world)
    (beat,) = found.record.items(Part.HEARTBEATS)
    assert ("content" in beat) is kept
    assert found.record.missing == ()
    assert "NaN" not in json.dumps(beat)


def test_heartbeats_are_found_at_every_depth_and_only_in_buckets_of_ours() -> None:
    world = World(now=NOW)
    world.add(Part.BUCKETS, name="runs", labels={"managed-by": "spotrail"})
    world.add(Part.BUCKETS, name="other", labels={"managed-by": "somebody"})
    beat = {"run": "r", "step": 1}
    names = ["heartbeat.json", "a/heartbeat.json", "a b/ü#?/heartbeat.json"]
    for name in (*names, "my-heartbeat.json", "heartbeat.json.bak"):
        world.add(Part.HEARTBEATS, bucket="runs", name=name, updated="now-5m", content=beat)
    world.add(Part.HEARTBEATS, bucket="other", name="heartbeat.json", updated="now-5m", content=beat)
    found = collected(world)
    assert sorted(str(item["name"]) for item in found.record.items(Part.HEARTBEATS)) == sorted(names)
    assert all(item["content"] == beat for item in found.record.items(Part.HEARTBEATS))


def test_an_old_heartbeat_is_known_by_its_time_alone() -> None:
    world = World(now=NOW)
    world.add(Part.BUCKETS, name="runs", labels={"managed-by": "spotrail"})
    world.add(Part.HEARTBEATS, bucket="runs", name="heartbeat.json", updated="now-30d", content={"run": "r"})
    found = collected(world)
    assert "content" not in found.record.items(Part.HEARTBEATS)[0]
    assert "storage.objects.get" not in found.calls


def test_one_bucket_that_refuses_does_not_hide_the_caches_of_others() -> None:
    world = small_world()
    world.add(Part.CACHES, bucket="other", zone=B)
    world.fail(Fault(kind=FaultKind.FORBIDDEN, method="storage.anywhereCaches.list", where="/b/other/"))
    record = collected(world).record
    assert [item["bucket"] for item in record.items(Part.CACHES)] == ["runs"]
    assert [gap.part for gap in record.missing] == ["storage.anywhereCaches other"]
