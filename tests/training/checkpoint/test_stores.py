"""A folder and a bucket keep the same promises; the bucket is the strict one of the loopback Google Cloud."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policies.audit.record import Part
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.server import served
from tests.google_cloud.world import World
from tests.training.checkpoint.trees import assert_same, small_tree
from training.__main__ import run
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.discovery import find_newest_valid
from training.checkpoint.errors import (
    AlreadyThereError,
    ChangedError,
    CheckpointError,
    NotThereError,
    SaveFailedError,
    StoreError,
)
from training.checkpoint.gcs_store import GcsStore
from training.checkpoint.local_store import LocalStore
from training.checkpoint.restoring import restore
from training.checkpoint.retention import Retention
from training.checkpoint.retries import retried
from training.checkpoint.staging import Arena
from training.checkpoint.store import AbstractStore, open_store
from training.exit_codes import ExitCode

UPLOAD, GET, LIST, DELETE = (f"storage.objects.{verb}" for verb in ("insert", "get", "list", "delete"))
ROOT = "gs://ckpt/runs/a"


@pytest.fixture(scope="module")
def served_world() -> Iterator[tuple[World, str]]:
    world = World()
    world.add(Part.BUCKETS, name="ckpt")
    with served(world) as endpoint:
        yield world, endpoint


@pytest.fixture
def world(served_world: tuple[World, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An empty bucket `ckpt`, at the endpoint that the environment names."""
    world, endpoint = served_world
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint)
    yield world
    world.calls.clear()
    store = GcsStore("gs://ckpt")
    for folder in ("runs", "heavy"):
        for key in store.keys(folder):
            store.delete(key)
    store.close()


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AbstractStore]:
    if request.param == "folder":
        yield open_store(tmp_path / "not/yet")
        return
    request.getfixturevalue("world")
    found = open_store(ROOT)
    yield found
    found.close()


def test_an_object_is_created_once_and_read_as_it_was_written(store: AbstractStore) -> None:
    values = np.frombuffer(random.Random(0).randbytes(3 << 20), np.uint8)
    store.create("a/b/c.0", [b"head", values, b"", b"tail"])
    assert store.get("a/b/c.0") == b"head" + values.tobytes() + b"tail"
    store.create("a/empty", [])
    assert store.get("a/empty") == b""
    with pytest.raises(AlreadyThereError, match=r"a/b/c\.0 is there already"):
        store.create("a/b/c.0", [b"other"])
    assert store.get("a/b/c.0")[:5] == b"head" + values[:1].tobytes()
    with pytest.raises(NotThereError, match=r"a/b/c\.1 is not there"):
        store.get("a/b/c.1")


def test_a_replacement_names_the_generation_that_it_replaces(store: AbstractStore) -> None:
    assert store.read("LEASE") is None
    store.replace("LEASE", b"1", None)
    with pytest.raises(ChangedError, match="LEASE was changed by another process"):
        store.replace("LEASE", b"x", None)
    first = store.read("LEASE")
    assert first is not None
    assert first.content == b"1"
    store.replace("LEASE", b"2", first.generation)
    with pytest.raises(ChangedError):
        store.replace("LEASE", b"3", first.generation)
    assert store.get("LEASE") == b"2"


def test_of_many_writers_one_wins(store: AbstractStore) -> None:
    store.replace("count", b"0", None)
    created = []

    def count(number: int) -> None:
        try:
            store.create("once", [b"%d" % number])
            created.append(number)
        except AlreadyThereError:
            pass
        for _ in range(5):
            while True:
                found = store.read("count")
                assert found is not None
                try:
                    store.replace("count", b"%d" % (int(found.content) + 1), found.generation)
                except ChangedError:
                    continue
                break

    threads = [threading.Thread(target=count, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("count") == b"20"
    assert [b"%d" % number for number in created] == [store.get("once")]


def test_folders_and_keys_are_listed_and_deleted(store: AbstractStore) -> None:
    assert (store.folders(), store.objects(), store.keys("a")) == ((), (), ())
    for key in ("b/x", "a/y/z", "a/x", "ab/x", "top"):
        store.create(key, [b"1"])
    assert store.folders() == ("a", "ab", "b")
    assert store.objects() == ("top",)
    assert store.keys("a") == ("a/x", "a/y/z")
    for key in ("a/y/z", "a/x", "a/x"):
        store.delete(key)
    assert (store.folders(), store.keys("a")) == (("ab", "b"), ())


def test_addresses(world: World, tmp_path: Path) -> None:
    for url in (ROOT, f"{ROOT}/", "gs://ckpt", "gs://ckpt/"):
        found = open_store(url)
        assert found.url == url.rstrip("/")
        found.close()
    for url in ("gs://", "gs://A", "gs:///x"):
        with pytest.raises(CheckpointError, match="write it as gs://bucket/prefix"):
            open_store(url)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="file is a file; checkpoints need a folder"):
        open_store(tmp_path / "file")
    missing = open_store("gs://ckpt-that-nobody-made/x")
    with pytest.raises(StoreError, match="ckpt-that-nobody-made/x cannot be listed: there is no such bucket"):
        missing.folders()
    missing.close()


@pytest.mark.parametrize("key", [None, "missing.json", "empty.json"])
@pytest.mark.parametrize(
    "arguments", [("checkpoints", "ls", ROOT), ("export", ROOT, "out")], ids=lambda words: words[0]
)
def test_a_bucket_without_credentials_is_one_message(
    arguments: tuple[str, ...],
    key: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty.json").write_text("")
    for name in ("STORAGE_EMULATOR_HOST", "TENSORSTORE_GCS_HTTP_URL", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.chdir(tmp_path)
    if key is not None:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / key))
    try:
        code = run(arguments)
    except SystemExit as ended:
        code = int(str(ended.code))
    said = capsys.readouterr()
    assert (code, said.out) == (ExitCode.CLOUD_FAILED, "")
    assert said.err.startswith("error: gs:// cannot be reached without credentials: ")
    assert "run `gcloud auth application-default login`" in said.err


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("s3://b/p", r"s3://b/p: checkpoints need a folder or gs://bucket/prefix, not s3://$"),
        ("file:///b/p", r"bucket/prefix, not file://$"),
        ("git+ssh://b/p", r"bucket/prefix, not git\+ssh://$"),
        ("GS://b/p", r"bucket/prefix, not GS://; did you mean gs://b/p\?$"),
        ("gs:/b/p", r"^gs:/b/p: did you mean gs://b/p\?$"),
        ("gs:b/p", r"^gs:b/p: did you mean gs://b/p\?$"),
        ("", r"the address of the checkpoints is empty; name a folder or gs://bucket/prefix$"),
        ("gs://Bucket/p", r"names no bucket; .* 3 to 222 lower-case letters"),
    ],
)
def test_an_address_of_another_store_becomes_no_folder(address: str, said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        open_store(address)
    assert isinstance(open_store("a:b/c"), LocalStore), "a colon alone is part of a name"


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match=r"taken/x/y cannot be written: (Not a directory|File exists)"):
        LocalStore(tmp_path).create("taken/x/y", [b"1"])


PASSING = [
    Fault(kind=FaultKind.RATE_LIMITED, times=2),
    Fault(kind=FaultKind.UNAVAILABLE, times=2),
    Fault(kind=FaultKind.TIMED_OUT, times=1),
    Fault(kind=FaultKind.CUT, times=1),
    Fault(kind=FaultKind.RESET, bytes=3, times=1),
    Fault(kind=FaultKind.UPLOAD_RESET, bytes=100, times=1),
    Fault(kind=FaultKind.LOST, times=1),
    Fault(kind=FaultKind.FLIPPED_SERVED, bit=9, method=GET, times=1),
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: fault.kind.name)
def test_what_passes_is_outlived(fault: Fault, world: World) -> None:
    """A fault strikes somewhere in the middle of a save, and another one in the middle of reading it back."""
    for skipped in (3, 9):
        root = f"{ROOT}/{fault.kind.name.lower()}-{skipped}"
        methods = (UPLOAD, GET) if fault.method == "*" else (fault.method,)
        world.fail(*(replace(fault, after=skipped, method=method) for method in methods))
        with Checkpointer(root, run="r") as checkpointer:
            for step in (1, 2):
                checkpointer.save(step, small_tree(step), {})
        found = find_newest_valid(root, "r")
        assert found is not None
        assert (found.step, found.skipped) == (2, ())
        assert_same(restore(found, small_tree(0))[0], small_tree(2))
        found.store.close()
        world.calls.clear()


@pytest.mark.parametrize("kind", [FaultKind.UNAVAILABLE, FaultKind.RATE_LIMITED])
def test_what_does_not_pass_is_an_error_after_the_deadline(kind: FaultKind, world: World) -> None:
    store = GcsStore(ROOT, retry_seconds=0.5)
    checkpointer = Checkpointer(store, run="r")
    checkpointer.save(1, small_tree(1), {})
    checkpointer.wait()
    world.fail(Fault(kind=kind, object="*00000002*"))
    checkpointer.save(2, small_tree(2), {})
    with pytest.raises(
        SaveFailedError, match=r"step 2 was not committed: gs://ckpt/runs/a/.* cannot be written after 0\.5 s of trying"
    ):
        checkpointer.wait()
    world.calls.clear()
    checkpointer.close()
    found = find_newest_valid(store, "r")
    assert found is not None
    assert found.step == 1
    world.fail(Fault(kind=kind, method=LIST))
    with pytest.raises(StoreError, match=r"gs://ckpt/runs/a cannot be listed after 0\.5 s of trying"):
        find_newest_valid(store, "r")
    store.close()


def test_what_is_forbidden_is_said_at_once(world: World) -> None:
    store = GcsStore(ROOT)
    world.fail(Fault(kind=FaultKind.FORBIDDEN, method=UPLOAD))
    with pytest.raises(StoreError, match=r"runs/a/x cannot be written: .*does not have permission"):
        store.create("x", [b"1"])
    assert world.counts()[UPLOAD] >= 1
    store.close()


def test_a_bucket_goes_through_damage_and_retention_like_a_folder(world: World) -> None:
    with Checkpointer(ROOT, run="r", retention=Retention(keep_last=2)) as checkpointer:
        for step in (1, 2, 3):
            checkpointer.save(step, small_tree(step), {})
    store = open_store(ROOT)
    assert store.folders() == ("00000002-1", "00000003-1")
    store.delete("00000003-1/PART-0.json")
    found = find_newest_valid(store, "r")
    assert found is not None
    assert (found.step, found.skipped) == (2, (f"{ROOT}/00000003-1: 00000003-1/PART-0.json is missing",))
    assert_same(restore(found, small_tree(0))[0], small_tree(2))
    assert "00000003-1/QUARANTINED.json" in store.keys("00000003-1")
    store.close()


def test_bits_that_the_store_itself_flips_are_found(world: World) -> None:
    with Checkpointer(ROOT, run="r") as checkpointer:
        checkpointer.save(1, small_tree(1), {})
        checkpointer.wait()
        world.fail(Fault(kind=FaultKind.FLIPPED_STORED, method=UPLOAD, object="*/c.0", bit=11, times=1))
        checkpointer.save(2, small_tree(2), {})
    world.calls.clear()
    found = find_newest_valid(ROOT, "r")
    assert found is not None
    assert found.step == 1
    assert "host-0/00000.m/c.0 is damaged: its crc32c is another" in found.skipped[0]
    found.store.close()


def test_a_listing_that_lags_hides_no_commit(world: World) -> None:
    with Checkpointer(ROOT, run="r") as checkpointer:
        for step in (100, 200):
            checkpointer.save(step, small_tree(step), {})
    world.fail(Fault(kind=FaultKind.STALE_LIST, method=LIST, object="*00000200-1*"))
    store = open_store(ROOT)
    assert store.folders() == ("00000100-1",)
    found = find_newest_valid(store, "r")
    assert found is not None
    assert found.step == 200
    store.close()


def test_discovery_lists_once_and_not_every_chunk(world: World) -> None:
    with Checkpointer(ROOT, run="r") as checkpointer:
        for step in (1, 2, 3):
            checkpointer.save(step, small_tree(step), {})
    before = world.counts()[LIST]
    found = find_newest_valid(ROOT, "r")
    assert found is not None
    assert world.counts()[LIST] - before == 1
    found.store.close()


def test_retries_wait_longer_each_time_until_the_deadline() -> None:
    now, waits = [0.0], []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    def call() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        retried(call, passing=lambda error: True, seconds=60, sleep=sleep, clock=lambda: now[0])
    assert 40 < sum(waits) <= 60
    assert all(0.05 * 2**n <= wait <= 0.1 * 2**n for n, wait in enumerate(waits[:6]))
    assert all(4 <= wait <= 8 for wait in waits[8:])
    tries = len(waits)
    with pytest.raises(ConnectionError):
        retried(call, passing=lambda error: False, seconds=60, sleep=sleep, clock=lambda: now[0])
    assert len(waits) == tries


@pytest.mark.parametrize("size", [(2 << 20) + 4, 2 << 20, (1 << 20) + 4095])
@pytest.mark.parametrize("refused", [False, True])
def test_large_chunks_go_past_the_page_cache_where_the_disk_lets_them(
    size: int, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = Arena()
    arena.reset(2 * size)
    arena.take(5)
    values = arena.take(size)
    values[:] = np.frombuffer(random.Random(size).randbytes(size), np.uint8)
    direct = []
    write = os.write

    def seen(descriptor: int, content: memoryview) -> int:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            direct.append(len(content))
            if refused:
                raise OSError(errno.EINVAL, "Invalid argument")
        return write(descriptor, content)

    monkeypatch.setattr(os, "write", seen)
    LocalStore(tmp_path).create("x/c.0", [values])
    assert direct == [size // 4096 * 4096]
    assert (tmp_path / "x/c.0").read_bytes() == values.tobytes()
