"""Downloads with their ranges and headers, and lists: over plain HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.google_cloud.object_serving import Storage, add_buckets, served_buckets
from tests.google_cloud.world import World
from tests.loopback.conftest import NOW
from tests.loopback.raw import OBJECTS, ask, get, put

TEN = b"0123456789"
NAMES = ("a", "b/", "b/1", "b/2/x", "b/2/y", "b/3", "b0", "c", "d/e/f", "ä", "😀")
"""In the order of the API, which is that of their bytes."""


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    with served_buckets("runs") as storage:
        for name in reversed(NAMES):
            put(storage.url, name, name.encode())
        yield storage


def listed(storage: Storage, **query: Any) -> Any:
    return ask(storage.url, "GET", OBJECTS, query).json


def names(storage: Storage, **query: Any) -> list[str]:
    return [item["name"] for item in listed(storage, **query).get("items", ())]


@pytest.mark.parametrize(
    ("asked", "code", "body", "told"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-30", 206, TEN, "bytes 0-9/10"),
        ("bytes=9-99", 206, b"9", "bytes 9-9/10"),
        ("bytes=10-", 416, b"The requested range cannot be satisfied.", "bytes */10"),
        ("bytes=-0", 416, b"The requested range cannot be satisfied.", "bytes */10"),
        ("bytes=5-3", 200, TEN, None),
        ("lines=1-2", 200, TEN, None),
        ("bytes=-", 200, TEN, None),
    ],
)
def test_ranges(storage: Storage, asked: str, code: int, body: bytes, told: str | None) -> None:
    made = put(storage.url, "ten", TEN).json
    for path in (f"{OBJECTS}/ten", f"/download{OBJECTS}/ten"):
        answer = ask(storage.url, "GET", path, {"alt": "media"}, headers={"Range": asked})
        assert (answer.code, answer.body, answer.headers.get("content-range")) == (code, body, told)
        if code < 400:
            assert answer.headers["x-goog-hash"] == f"crc32c={made['crc32c']},md5={made['md5Hash']}"
    ask(storage.url, "DELETE", f"{OBJECTS}/ten")


def test_headers_of_a_download(storage: Storage) -> None:
    headers = get(storage.url, "a").headers
    item = ask(storage.url, "GET", f"{OBJECTS}/a").json
    assert {name: headers[f"x-goog-{name}"] for name in ("generation", "metageneration", "storage-class")} == {
        "generation": item["generation"],
        "metageneration": "1",
        "storage-class": "STANDARD",
    }
    assert (headers["etag"], headers["x-goog-stored-content-length"], headers["content-length"]) == (
        item["etag"],
        "1",
        "1",
    )


def test_nothing_has_no_range(storage: Storage) -> None:
    put(storage.url, "empty")
    assert (get(storage.url, "empty").code, get(storage.url, "empty").body) == (200, b"")
    assert get(storage.url, "empty", "bytes=0-").code == 416
    ask(storage.url, "DELETE", f"{OBJECTS}/empty")


def test_what_is_not_there_is_told_in_googles_words(storage: Storage) -> None:
    answer = ask(storage.url, "GET", f"{OBJECTS}/no%2Fsuch")
    error = {"message": "No such object: runs/no/such", "domain": "global", "reason": "notFound"}
    assert answer.json == {"error": {"code": 404, "message": error["message"], "errors": [error]}}
    answer = ask(storage.url, "PATCH", f"{OBJECTS}/a", {"ifGenerationMatch": 1}, "{}")
    error = {
        "message": "At least one of the pre-conditions you specified did not hold.",
        "domain": "global",
        "reason": "conditionNotMet",
        "locationType": "header",
        "location": "If-Match",
    }
    assert answer.json == {"error": {"code": 412, "message": error["message"], "errors": [error]}}
    answer = get(storage.url, "no/such")
    assert (answer.code, answer.body, answer.headers["content-type"]) == (
        404,
        b"No such object: runs/no/such",
        "text/html; charset=UTF-8",
    )
    assert ask(storage.url, "GET", "/storage/v1/b/none/o").json["error"]["message"].endswith("bucket does not exist.")


@pytest.mark.parametrize(
    ("query", "found", "prefixes"),
    [
        ({}, [*NAMES], None),
        ({"prefix": "b"}, ["b/", "b/1", "b/2/x", "b/2/y", "b/3", "b0"], None),
        ({"prefix": "b/", "delimiter": "/"}, ["b/", "b/1", "b/3"], ["b/2/"]),
        ({"delimiter": "/"}, ["a", "b0", "c", "ä", "😀"], ["b/", "d/"]),
        ({"delimiter": "/", "includeTrailingDelimiter": "true"}, ["a", "b/", "b0", "c", "ä", "😀"], ["b/", "d/"]),
        ({"startOffset": "b/2", "endOffset": "b0"}, ["b/2/x", "b/2/y", "b/3"], None),
        ({"startOffset": "c", "prefix": "d"}, ["d/e/f"], None),
        ({"matchGlob": "b/*"}, ["b/", "b/1", "b/3"], None),
        ({"matchGlob": "**/{x,f}"}, ["b/2/x", "d/e/f"], None),
        ({"prefix": "zz"}, [], None),
    ],
)
def test_lists(storage: Storage, query: dict[str, str], found: list[str], prefixes: list[str] | None) -> None:
    answer = listed(storage, **query)
    assert [item["name"] for item in answer.get("items", ())] == found
    assert answer.get("prefixes") == prefixes


@pytest.mark.parametrize("query", [{}, {"delimiter": "/"}, {"prefix": "b/", "delimiter": "/"}, {"versions": "true"}])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_pages_are_the_list_in_pieces(storage: Storage, query: dict[str, str], size: int) -> None:
    items: list[Any] = []
    prefixes: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = listed(storage, maxResults=size, **query, **token)
        assert len(page.get("items", ())) + len(page.get("prefixes", ())) <= size
        items += page.get("items", ())
        prefixes += page.get("prefixes", ())
        if "nextPageToken" not in page:
            break
        token = {"pageToken": page["nextPageToken"]}
    whole = listed(storage, **query)
    assert (items, prefixes) == (whole["items"], whole.get("prefixes", []))


def test_pages_lose_nothing_where_the_first_is_deleted_meanwhile() -> None:
    with served_buckets("runs") as storage:
        for name in "abcdef":
            put(storage.url, name)
        first = listed(storage, maxResults=2)
        for item in first["items"]:
            ask(storage.url, "DELETE", f"{OBJECTS}/{item['name']}")
        assert names(storage, pageToken=first["nextPageToken"]) == ["c", "d", "e", "f"]
        assert ask(storage.url, "GET", OBJECTS, {"pageToken": "no token"}).code == 400


def test_what_a_bucket_with_versions_keeps() -> None:
    world = World(now=NOW)
    add_buckets(world, "runs", versioning={"enabled": True})
    with served_buckets(world=world) as storage:
        old, new = (put(storage.url, "x", text).json["generation"] for text in (b"old", b"new"))
        assert get(storage.url, "x", generation=old).body == b"old"
        ask(storage.url, "DELETE", f"{OBJECTS}/x")
        assert get(storage.url, "x").code == 404
        assert names(storage) == []
        assert [item["generation"] for item in listed(storage, versions="true")["items"]] == [old, new]
        assert ask(storage.url, "DELETE", "/storage/v1/b/runs").code == 409, "there are versions in it"
        assert world.objects.bytes_of("runs", NOW) == {
            "live-object": 0,
            "noncurrent-object": 6,
            "soft-deleted-object": 0,
        }
        for generation in (old, new):
            assert ask(storage.url, "DELETE", f"{OBJECTS}/x", {"generation": generation}).code == 204
        assert ask(storage.url, "DELETE", "/storage/v1/b/runs").code == 204


def test_what_is_soft_deleted_is_listed_restored_and_one_day_gone() -> None:
    world = World(now=NOW)
    add_buckets(world, "runs", softDeletePolicy={"retentionDurationSeconds": "604800"})
    with served_buckets(world=world) as storage:
        first = put(storage.url, "x", b"first").json["generation"]
        put(storage.url, "x", b"second!")
        ask(storage.url, "DELETE", f"{OBJECTS}/x")
        gone = listed(storage, softDeleted="true")["items"]
        assert [(item["size"], item["softDeleteTime"], item["hardDeleteTime"]) for item in gone] == [
            (size, "2026-11-29T12:00:00.000Z", "2026-12-06T12:00:00.000Z") for size in ("5", "7")
        ]
        assert world.objects.bytes_of("runs", NOW)["soft-deleted-object"] == 12
        again = ask(storage.url, "POST", f"{OBJECTS}/x/restore", {"generation": first}).json
        assert (again["generation"] > first, get(storage.url, "x").body) == (True, b"first")
        assert "softDeleteTime" not in again
        assert ask(storage.url, "POST", f"{OBJECTS}/x/restore", {"generation": first}).code == 404
        world.now = NOW.replace(month=12, day=7)
        assert names(storage, softDeleted="true") == []


def test_the_bytes_of_a_bucket_are_what_its_metric_shows() -> None:
    world = World(now=NOW)
    add_buckets(world, "runs", softDeletePolicy={"retentionDurationSeconds": "604800"})
    with served_buckets(world=world) as storage:
        put(storage.url, "x", b"12345")
        put(storage.url, "x", b"123")
    world.observe("bytes", bucket="runs")
    signals = world.signals.of("storage.googleapis.com/storage/v2/total_bytes", world)
    assert {signal.metric_labels["type"]: signal.flow.level for signal in signals} == {
        "live-object": 3,
        "noncurrent-object": 0,
        "soft-deleted-object": 5,
    }


def test_what_lies_there_can_be_damaged_and_lost(storage: Storage) -> None:
    made = put(storage.url, "hurt", TEN).json
    storage.damage("runs", "hurt", TEN[:4])
    answer = get(storage.url, "hurt")
    assert (answer.body, answer.headers["x-goog-generation"]) == (TEN[:4], made["generation"])
    assert f"crc32c={made['crc32c']}" in answer.headers["x-goog-hash"]
    storage.lose("runs", "hurt")
    assert get(storage.url, "hurt").code == 404


def test_metadata_is_patched_and_replaced(storage: Storage) -> None:
    put(storage.url, "meta", b"x")
    path = f"{OBJECTS}/meta"
    first = ask(storage.url, "PATCH", path, body=json.dumps({"metadata": {"a": "1", "b": "2"}, "size": "99"})).json
    assert (first["metadata"], first["metageneration"], first["size"]) == ({"a": "1", "b": "2"}, "2", "1")
    second = ask(storage.url, "PATCH", path, body='{"metadata": {"a": null}, "cacheControl": "no-store"}').json
    assert (second["metadata"], second["cacheControl"]) == ({"b": "2"}, "no-store")
    third = ask(storage.url, "PUT", path, body='{"metadata": {"c": "3"}}').json
    assert (third["metadata"], "cacheControl" in third, third["metageneration"]) == ({"c": "3"}, False, "4")
    assert third["generation"] == first["generation"]
    ask(storage.url, "DELETE", path)


def test_copies_keep_bytes_and_checksums_and_compositions_have_no_md5(storage: Storage) -> None:
    made = put(storage.url, "one", TEN).json
    ask(storage.url, "PATCH", f"{OBJECTS}/one", body='{"metadata": {"a": "1"}}')
    answer = ask(storage.url, "POST", f"{OBJECTS}/one/rewriteTo/b/runs/o/two").json
    assert (answer["done"], answer["objectSize"], answer["resource"]["metadata"]) == (True, "10", {"a": "1"})
    assert answer["resource"]["md5Hash"] == made["md5Hash"]
    body = json.dumps({"sourceObjects": [{"name": "one"}, {"name": "two"}], "destination": {"contentType": "t/u"}})
    joined = ask(storage.url, "POST", f"{OBJECTS}/both/compose", body=body).json
    assert (joined["size"], joined["componentCount"], joined["contentType"]) == ("20", 2, "t/u")
    assert "md5Hash" not in joined
    assert get(storage.url, "both").body == TEN + TEN
    assert put(storage.url, "twice", TEN + TEN).json["crc32c"] == joined["crc32c"]
    many = json.dumps({"sourceObjects": [{"name": "one"}] * 33})
    assert ask(storage.url, "POST", f"{OBJECTS}/both/compose", body=many).code == 400
    for name in ("one", "two", "both", "twice"):
        assert ask(storage.url, "DELETE", f"{OBJECTS}/{name}").code == 204
