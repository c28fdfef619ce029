"""The object store as tensorstore and google-cloud-storage see it, found by the environment alone."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts
from google.api_core.exceptions import NotFound, PreconditionFailed
from google.cloud.storage import Client  # type: ignore[import-untyped]

from policies.audit.record import Part
from tests.google_cloud.object_serving import Storage, add_buckets, environment, served_buckets
from tests.google_cloud.world import World
from tests.loopback.conftest import NOW
from tests.loopback.raw import OBJECTS, ask, get, put
from tests.policies.audit.small_world import collected

ROOT = Path(__file__).parents[2]
UNIT = 256 * 1024
LONG = bytes(range(256)) * (5 * UNIT // 256) + b"the end"
QUICK = {"gcs_request_retries": {"max_retries": 8, "initial_delay": "5ms", "max_delay": "20ms"}}


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    with served_buckets("runs") as storage:
        for name, text in storage.environment.items():
            monkeypatch.setenv(name, text)
        yield storage


@pytest.fixture
def bucket(storage: Storage) -> Any:
    return Client().bucket("runs")


@pytest.fixture
def store(storage: Storage) -> Any:
    return ts.KvStore.open({"driver": "gcs", "bucket": "runs", "path": "ts/", "context": QUICK}).result()


@pytest.mark.parametrize("chunk", [None, UNIT, 2 * UNIT])
@pytest.mark.parametrize("content", [b"", b"hello", LONG])
def test_googles_client_uploads_and_downloads(bucket: Any, content: bytes, chunk: int | None) -> None:
    blob = bucket.blob("a b/ü.bin", chunk_size=chunk)
    blob.metadata = {"step": "7"}
    blob.upload_from_string(content, if_generation_match=0, checksum="crc32c")
    assert bucket.blob("a b/ü.bin").download_as_bytes(checksum="crc32c") == content
    found = bucket.get_blob("a b/ü.bin")
    assert (found.size, found.metadata, found.generation) == (len(content), {"step": "7"}, blob.generation)


def test_googles_client_streams(bucket: Any) -> None:
    with bucket.blob("stream").open("wb", chunk_size=UNIT) as stream:
        for start in range(0, len(LONG), 100_000):
            stream.write(LONG[start : start + 100_000])
    with bucket.blob("stream").open("rb", chunk_size=UNIT) as stream:
        assert stream.read() == LONG
    assert bucket.blob("stream").download_as_bytes(start=5, end=9) == LONG[5:10]


def test_googles_client_is_held_to_generations(bucket: Any) -> None:
    blob = bucket.blob("x")
    blob.upload_from_string(b"one", if_generation_match=0)
    first = blob.generation
    with pytest.raises(PreconditionFailed):
        bucket.blob("x").upload_from_string(b"two", if_generation_match=0)
    with pytest.raises(PreconditionFailed):
        bucket.blob("x", chunk_size=UNIT).upload_from_string(LONG, if_generation_match=0)
    blob.upload_from_string(b"two", if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.delete_blob("x", if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.blob("x").download_as_bytes(if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.copy_blob(blob, bucket, "y", if_source_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.blob("z").compose([blob], if_source_generation_match=[first])
    bucket.delete_blob("x", if_generation_match=blob.generation)
    with pytest.raises(NotFound, match="No such object: runs/x"):
        bucket.delete_blob("x")


def test_googles_client_lists_copies_and_joins(bucket: Any) -> None:
    for name in ("a/1", "a/2", "b/1", "c"):
        bucket.blob(name).upload_from_string(name)
    pages = bucket.list_blobs(delimiter="/", page_size=2)
    assert ([blob.name for blob in pages], pages.prefixes) == (["c"], {"a/", "b/"})
    joined = bucket.blob("joined")
    joined.compose([bucket.blob("a/1"), bucket.blob("a/2")])
    assert joined.download_as_bytes() == b"a/1a/2"
    copy = bucket.copy_blob(joined, bucket, "copy")
    assert (copy.crc32c, copy.size) == (joined.crc32c, 6)
    copy.metadata = {"a": "b"}
    copy.patch(if_metageneration_match=1)
    assert bucket.get_blob("copy").metadata == {"a": "b"}
    bucket.delete_blobs(list(bucket.list_blobs()))
    assert list(bucket.list_blobs()) == []


def test_googles_client_makes_and_deletes_buckets(storage: Storage) -> None:
    client = Client()
    client.create_bucket("fresh", location="us-east1").blob("x").upload_from_string(b"x")
    assert client.get_bucket("fresh").location == "US-EAST1"
    client.get_bucket("fresh").delete(force=True)
    assert client.lookup_bucket("fresh") is None


def test_tensorstore_reads_and_writes_under_conditions(store: Any, storage: Storage) -> None:
    none = store.read("k").result().stamp.generation
    made = store.write("k", b"one", if_equal=none).result()
    assert store.write("k", b"two", if_equal=none).result().generation == b"", "refused"
    second = store.write("k", b"two", if_equal=made.generation).result()
    assert store.write("k", b"three", if_equal=made.generation).result().generation == b""
    assert store.read("k").result().value == b"two"
    assert store.read("k", if_not_equal=second.generation).result().state == "unspecified"
    assert store.read("k", if_not_equal=made.generation).result().value == b"two"
    assert store.write("none", b"x", if_equal=made.generation).result().generation == b""
    assert store.write("k", None, if_equal=made.generation).result().generation == b"", "a delete that is refused"
    store.write("k", None, if_equal=second.generation).result()
    assert store.read("k").result().state == "missing"
    assert storage.names("runs") == []


def test_tensorstore_reads_ranges_lists_and_deletes_ranges(store: Any, storage: Storage) -> None:
    for name in ("a", "b/1", "b/2", "c"):
        store.write(name, name.encode() * 3).result()
    put(storage.url, "beside", b"")
    assert store.read("b/1", byte_range=slice(2, 5)).result().value == b"1b/"
    assert sorted(store.list().result()) == [b"a", b"b/1", b"b/2", b"c"]
    assert sorted(store.list(ts.KvStore.KeyRange("b", "c")).result()) == [b"b/1", b"b/2"]
    store.delete_range(ts.KvStore.KeyRange("b/", "b0")).result()
    assert storage.names("runs") == ["beside", "ts/a", "ts/c"]


def spec(**more: Any) -> Any:
    kvstore = {"driver": "gcs", "bucket": "runs", "path": "array/"}
    return {"driver": "zarr3", "kvstore": kvstore, "context": QUICK, **more}


def checksummed(shape: list[int], chunks: list[int]) -> Any:
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
    return {"shape": shape, "data_type": "float32", "chunk_grid": grid, "codecs": codecs}


def test_arrays_of_tensorstore(storage: Storage) -> None:
    values = np.arange(64 * 48, dtype=np.float32).reshape(64, 48)
    array = ts.open(spec(metadata=checksummed([64, 48], [16, 48])), create=True).result()
    array.write(values).result()
    array[3:5].write(values[3:5] * 2).result()
    values[3:5] *= 2
    assert np.array_equal(ts.open(spec()).result().read().result(), values)
    assert storage.names("runs") == [*(f"array/c/{index}/0" for index in range(4)), "array/zarr.json"]


def test_many_writers_of_one_number_never_lose_a_step(storage: Storage) -> None:
    put(storage.url, "counter", b"0")

    def count() -> None:
        left = 20
        while left:
            seen = get(storage.url, "counter")
            text = str(int(seen.body) + 1).encode()
            written = put(storage.url, "counter", text, ifGenerationMatch=seen.headers["x-goog-generation"])
            assert written.code in (200, 412)
            left -= written.code == 200

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert get(storage.url, "counter").body == b"120"


@pytest.mark.parametrize("verb", ["PUT", "GET", "PATCH", "DELETE"])
def test_what_is_asked_while_the_world_changes_waits(storage: Storage, verb: str) -> None:
    put(storage.url, "x", b"old")
    ask_it = {
        "PUT": lambda: put(storage.url, "x", b"new"),
        "GET": lambda: get(storage.url, "x"),
        "PATCH": lambda: ask(storage.url, "PATCH", f"{OBJECTS}/x", body="{}"),
        "DELETE": lambda: ask(storage.url, "DELETE", f"{OBJECTS}/x"),
    }[verb]
    thread = threading.Thread(target=ask_it)
    with storage.world.lock:
        thread.start()
        thread.join(timeout=0.2)
        assert thread.is_alive()
        assert storage.read("runs", "x") == b"old"
    thread.join()


def test_the_audit_reads_the_heartbeat_that_a_run_has_written() -> None:
    world = World(now=NOW)
    add_buckets(world, "runs", labels={"managed-by": "spotrail"})
    with served_buckets(world=world) as storage:
        for step in (630, 640):
            put(storage.url, "kite/heartbeat.json", json.dumps({"run": "kite", "attempt": 2, "step": step}).encode())
    (beat,) = collected(world).record.items(Part.HEARTBEATS)
    assert beat["content"] == {"run": "kite", "attempt": 2, "step": 640}
    assert (beat["name"], beat["updated"]) == ("kite/heartbeat.json", "2026-11-29T12:00:00.000Z")


def test_a_store_of_its_own_process() -> None:
    command = [sys.executable, "-m", "tests.google_cloud", "--bucket", "runs", "--bucket", "others"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert environment(url)["TENSORSTORE_GCS_HTTP_URL"] == url
            assert put(url, "x", LONG).code == 200
            faults = {"faults": [{"kind": "UNAVAILABLE", "method": "storage.objects.get", "object": "x*"}]}
            assert ask(url, "POST", "/loopback/faults", body=json.dumps(faults)).code == 200
            assert get(url, "x").code == 503
            assert ask(url, "POST", "/loopback/faults", body='{"faults": [{"kind": "GREMLIN"}]}').code == 400
            ask(url, "DELETE", "/loopback/faults")
            assert get(url, "x").body == LONG
        finally:
            process.terminate()
        assert process.wait(timeout=20) == 0
