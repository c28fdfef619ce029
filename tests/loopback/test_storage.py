"""Cloud Storage and Pub/Sub of a loopback world, and its webhooks."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from google.api_core.exceptions import NotFound, PreconditionFailed

from policies.audit.record import Part
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.object_lists import glob
from tests.google_cloud.world import World
from tests.loopback.clients import buckets, publisher


def test_buckets_page_by_page(world: World, endpoint: str) -> None:
    for name in ("a", "b", "c"):
        world.add(Part.BUCKETS, name=name)
    found = list(buckets(endpoint).list_buckets(page_size=2))
    assert [
        (bucket.name, bucket.location, bucket.soft_delete_policy.retention_duration_seconds) for bucket in found
    ] == [(name, "US-CENTRAL1", 604800) for name in ("a", "b", "c")]
    assert world.counts() == {"storage.buckets.list": 2}


def test_a_patch_holds_only_for_the_generation_that_was_seen(world: World, endpoint: str) -> None:
    item = world.add(Part.BUCKETS, name="ckpt", labels={"env": "dev"}, storageClass="STANDARD")
    bucket = buckets(endpoint).get_bucket("ckpt")
    bucket.add_lifecycle_abort_incomplete_multipart_upload_rule(age=7)
    bucket.soft_delete_policy.retention_duration_seconds = 0
    bucket.patch(if_metageneration_match=bucket.metageneration)
    rule = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}}
    assert item["lifecycle"] == {"rule": [rule]}
    assert item["softDeletePolicy"]["retentionDurationSeconds"] == "0"
    assert (item["metageneration"], item["labels"], item["updated"]) == (
        "2",
        {"env": "dev"},
        "2026-11-29T12:00:00.000Z",
    )
    bucket.labels = {"env": "prod"}
    with pytest.raises(PreconditionFailed):
        bucket.patch(if_metageneration_match=1)
    with pytest.raises(NotFound, match="bucket does not exist"):
        buckets(endpoint).get_bucket("other")


def test_heartbeats_are_found_by_glob_and_read(world: World, endpoint: str) -> None:
    world.add(Part.BUCKETS, name="ckpt")
    beat = {"run": "r", "attempt": 2, "step": 640, "time": "now-5m"}
    for name in ("heartbeat.json", "runs/a/heartbeat.json", "runs/a/MANIFEST.json"):
        world.add(Part.HEARTBEATS, bucket="ckpt", name=name, updated="now-5m", content=beat)
    found = list(buckets(endpoint).list_blobs("ckpt", match_glob="**/heartbeat.json"))
    assert [blob.name for blob in found] == ["heartbeat.json", "runs/a/heartbeat.json"]
    content = found[1].download_as_bytes()
    assert json.loads(content) == {**beat, "time": "2026-11-29T11:55:00.000Z"}
    assert found[1].size == len(content)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*/b.json", "a/b.json", True),
        ("*/b.json", "a/a/b.json", False),
        ("**b.json", "a/a/b.json", True),
        ("{a,c}/?.json", "c/b.json", True),
        ("{a,c}/?.json", "d/b.json", False),
        ("a.json", "axjson", False),
    ],
)
def test_globs(pattern: str, name: str, fits: bool) -> None:
    assert bool(glob(pattern).fullmatch(name)) is fits


def call(endpoint: str, verb: str, path: str) -> Any:
    request = urllib.request.Request(endpoint + path, method=verb)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        return json.loads(answer.read())


def test_caches_are_listed_and_disabled(world: World, endpoint: str) -> None:
    world.add(Part.BUCKETS, name="data")
    world.add(Part.CACHES, bucket="data", zone="us-central1-b")
    (cache,) = call(endpoint, "GET", "/storage/v1/b/data/anywhereCaches")["items"]
    assert (cache["id"], cache["state"], cache["ttl"]) == ("data/us-central1-b", "running", "86400s")
    call(endpoint, "POST", "/storage/v1/b/data/anywhereCaches/us-central1-b/disable")
    assert call(endpoint, "GET", "/storage/v1/b/data/anywhereCaches/us-central1-b")["state"] == "disabled"


def test_buckets_that_cannot_be_reached_are_named(world: World, endpoint: str) -> None:
    world.add(Part.BUCKETS, name="near")
    world.add(Part.BUCKETS, name="far", location="US-EAST1")
    world.fail(Fault(kind=FaultKind.PARTIAL, method="storage.buckets.list", zone="us-east1"))
    answer = call(endpoint, "GET", "/storage/v1/b?project=acme-tpu-dev&returnPartialSuccess=true")
    assert [bucket["name"] for bucket in answer["items"]] == ["near"]
    assert answer["unreachable"] == ["projects/_/buckets/far"]


def test_what_is_published_is_kept(world: World, endpoint: str) -> None:
    topic = "projects/acme-tpu-dev/topics/findings"
    message = {"data": b'{"idle": 1}', "attributes": {"verdict": "IDLE"}}
    answer = publisher(endpoint).publish(request={"topic": topic, "messages": [message]})
    assert list(answer.message_ids) == ["1"]
    assert world.published == [{"topic": topic, "data": '{"idle": 1}', "attributes": {"verdict": "IDLE"}}]


def test_webhooks_keep_what_they_get(world: World, endpoint: str) -> None:
    request = urllib.request.Request(f"{endpoint}/webhook/hook-1", data=b'{"text": "hello"}', method="POST")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10).close()
    assert [(entry["path"], entry["body"]) for entry in world.posted] == [("/webhook/hook-1", '{"text": "hello"}')]
    assert call(endpoint, "GET", "/loopback/calls") == {"webhook": 1, "loopback.calls": 1}
