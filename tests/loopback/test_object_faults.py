"""Every way in which the object store can fail, over plain HTTP, and what tensorstore makes of it."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorstore as ts

from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.object_serving import Storage, served_buckets
from tests.loopback.raw import OBJECTS, ask, begin, get, multipart, put, send, session_of
from tests.loopback.test_object_clients import QUICK, checksummed, spec

INSERT, GET, LIST = (f"storage.objects.{verb}" for verb in ("insert", "get", "list"))
UNIT = 256 * 1024
LONG = bytes(range(256)) * (2 * UNIT // 256)
BROKEN = (http.client.HTTPException, ConnectionError)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    with served_buckets("runs") as storage:
        for name, text in storage.environment.items():
            monkeypatch.setenv(name, text)
        yield storage


def store() -> Any:
    return ts.KvStore.open({"driver": "gcs", "bucket": "runs", "context": QUICK}).result()


@pytest.mark.parametrize(
    ("kind", "code", "reason"),
    [
        (FaultKind.RATE_LIMITED, 429, "rateLimitExceeded"),
        (FaultKind.UNAVAILABLE, 503, "backendError"),
        (FaultKind.TIMED_OUT, 408, "uploadBrokenConnection"),
    ],
)
def test_refusals_that_pass(storage: Storage, kind: FaultKind, code: int, reason: str) -> None:
    storage.world.fail(Fault(kind=kind, method=INSERT, after=1, times=1))
    answers = [put(storage.url, f"x{index}") for index in range(3)]
    assert [answer.code for answer in answers] == [200, code, 200]
    assert answers[1].reason == reason
    assert storage.names("runs") == ["x0", "x2"]


@pytest.mark.parametrize("kind", ["media", "multipart", "resumable", "chunk"])
def test_faults_find_their_object_in_each_kind_of_upload(storage: Storage, kind: str) -> None:
    session = session_of(begin(storage.url, "steps/8/data")) if kind == "chunk" else ""
    storage.world.fail(Fault(kind=FaultKind.UNAVAILABLE, method=INSERT, object="steps/8/*"))
    answer = {
        "media": lambda: put(storage.url, "steps/8/data", b"x"),
        "multipart": lambda: multipart(storage.url, {"name": "steps/8/data"}, b"x"),
        "resumable": lambda: begin(storage.url, "steps/8/data"),
        "chunk": lambda: send(storage.url, session, b"x"),
    }[kind]()
    assert answer.code == 503
    assert put(storage.url, "steps/80/data", b"x").code == 200


@pytest.mark.parametrize("came", [0, 1000, len(LONG)])
def test_an_upload_that_is_reset(storage: Storage, came: int) -> None:
    storage.world.fail(Fault(kind=FaultKind.UPLOAD_RESET, object="x", bytes=came, times=1))
    with pytest.raises(BROKEN):
        put(storage.url, "x", LONG)
    assert storage.names("runs") == []
    assert put(storage.url, "x", LONG).code == 200


@pytest.mark.parametrize(("came", "kept"), [(1000, None), (UNIT + 1000, UNIT), (len(LONG), len(LONG))])
def test_a_resumable_upload_that_is_reset_goes_on(storage: Storage, came: int, kept: int | None) -> None:
    session = session_of(begin(storage.url, "x"))
    storage.world.fail(Fault(kind=FaultKind.UPLOAD_RESET, object="x", bytes=came, times=1))
    with pytest.raises(BROKEN):
        send(storage.url, session, LONG, f"bytes 0-{len(LONG) - 1}/{len(LONG)}")
    assert storage.names("runs") == [], "though all of it came"
    status = send(storage.url, session, b"", "bytes */*")
    assert status.headers.get("range") == (kept and f"bytes=0-{kept - 1}")
    start = kept or 0
    last = f"bytes */{len(LONG)}" if start == len(LONG) else f"bytes {start}-{len(LONG) - 1}/{len(LONG)}"
    assert send(storage.url, session, LONG[start:], last).code == 200
    assert get(storage.url, "x").body == LONG


@pytest.mark.parametrize("kind", [FaultKind.RESET, FaultKind.CUT])
@pytest.mark.parametrize("came", [0, 1, 300_000])
def test_a_download_that_ends_too_early(storage: Storage, kind: FaultKind, came: int) -> None:
    put(storage.url, "x", LONG)
    storage.world.fail(Fault(kind=kind, method=GET, bytes=came, times=1))
    with pytest.raises(BROKEN):
        get(storage.url, "x")
    assert get(storage.url, "x").body == LONG


def test_a_body_that_is_shorter_than_its_object(storage: Storage) -> None:
    put(storage.url, "x", LONG)
    storage.world.fail(Fault(kind=FaultKind.TRUNCATED, method=GET))
    answer = get(storage.url, "x")
    assert (answer.code, len(answer.body)) == (200, len(LONG) * 2 // 3)
    assert answer.headers["x-goog-stored-content-length"] == str(len(LONG))


def test_a_write_whose_answer_is_lost_is_there(storage: Storage) -> None:
    storage.world.fail(Fault(kind=FaultKind.LOST, method=INSERT, times=1))
    with pytest.raises(BROKEN):
        put(storage.url, "x", b"first", ifGenerationMatch=0)
    assert put(storage.url, "x", b"second", ifGenerationMatch=0).code == 412
    assert get(storage.url, "x").body == b"first"


def test_a_list_that_has_not_seen_the_newest(storage: Storage) -> None:
    for name in ("a", "b/1", "b/2"):
        put(storage.url, name)
    storage.world.fail(Fault(kind=FaultKind.STALE_LIST, method=LIST, object="b/*", times=2))
    found = [ask(storage.url, "GET", OBJECTS).json["items"] for _ in range(3)]
    assert [[item["name"] for item in items] for items in found] == [["a"], ["a"], ["a", "b/1", "b/2"]]
    assert get(storage.url, "b/1").code == 200


@pytest.mark.parametrize("bit", [0, 7, 8 * 5 + 3, 8 * 1000 + 1])
def test_one_bit_that_is_stored_wrong(storage: Storage, bit: int) -> None:
    storage.world.fail(Fault(kind=FaultKind.FLIPPED_STORED, method=INSERT, object="x", bit=bit))
    content = bytes(range(100))
    answers = [put(storage.url, name, content).json for name in ("x", "y")]
    assert answers[0]["crc32c"] == answers[1]["crc32c"], "the checksum is that of what was sent"
    kept = int.from_bytes(storage.read("runs", "x"), "little") ^ int.from_bytes(content, "little")
    assert kept == 1 << bit % 800


def test_one_bit_that_is_served_wrong(storage: Storage) -> None:
    put(storage.url, "x", b"\0\0\0")
    storage.world.fail(Fault(kind=FaultKind.FLIPPED_SERVED, method=GET, bit=17, times=1))
    assert [get(storage.url, "x").body for _ in range(2)] == [b"\0\0\2", b"\0\0\0"]


def test_latency_and_bandwidth(storage: Storage) -> None:
    storage.world.fail(Fault(kind=FaultKind.SLOW, method=INSERT, seconds=0.2))
    storage.world.fail(Fault(kind=FaultKind.BANDWIDTH, rate=4 * len(LONG)))
    started = time.monotonic()
    put(storage.url, "x", LONG)
    uploaded = time.monotonic()
    get(storage.url, "x")
    assert uploaded - started >= 0.2 + 0.25 * 0.9
    assert time.monotonic() - uploaded >= 0.25 * 0.9


STORMS = {
    "429": Fault(kind=FaultKind.RATE_LIMITED, times=4),
    "503": Fault(kind=FaultKind.UNAVAILABLE, times=4),
    "reset up": Fault(kind=FaultKind.UPLOAD_RESET, method=INSERT, bytes=100, times=3),
    "reset down": Fault(kind=FaultKind.RESET, method=GET, bytes=100, times=3),
    "cut": Fault(kind=FaultKind.CUT, method=GET, times=3),
}


@pytest.mark.parametrize("storm", STORMS)
def test_tensorstore_comes_through_storms(storage: Storage, storm: str) -> None:
    storage.world.fail(STORMS[storm])
    opened = store()
    opened.write("x", LONG).result()
    assert opened.read("x").result().value == LONG
    assert storage.read("runs", "x") == LONG


def test_arrays_with_checksums_find_every_wrong_bit(storage: Storage) -> None:
    values = np.arange(32, dtype=np.float32)
    for bit in (0, 8 * 77 + 5, 8 * 131 + 7):
        storage.world.fail(Fault(kind=FaultKind.FLIPPED_STORED, method=INSERT, object="array/c/0", bit=bit))
        array = ts.open(spec(metadata=checksummed([32], [32])), create=True, delete_existing=True).result()
        array.write(values).result()
        storage.world.calls.clear()
        with pytest.raises(ValueError, match=r"DATA_LOSS.*[Dd]igest"):
            ts.open(spec()).result().read().result()
