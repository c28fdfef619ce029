"""Downloads that are killed and begun again, and several at once, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inference.weights.sources.errors import StoppedError
from inference.weights.sources.journal import parse_journal
from inference.weights.sources.progress import DownloadProgress, Stage
from inference.weights.sources.spans import total
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.object_serving import Storage
from tests.inference.weights.sources.stored import (
    LIMITS,
    MEDIA,
    MODEL,
    PART,
    content_of,
    download,
    heal,
    media_calls,
    noise,
    upload,
)

ROOT = Path(__file__).parents[4]
SIZE = sum(map(len, MODEL.values()))
WORKERS = 3
SLOW = Fault(kind=FaultKind.BANDWIDTH, method=MEDIA, rate=PART / 0.1)
"""A tenth of a second a part."""


@contextlib.contextmanager
def downloading(cache: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.inference.weights.sources.downloader", str(cache), str(PART), str(WORKERS)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def journals(cache: Path) -> int:
    """Bytes that the journals of a cache have."""
    found = [parse_journal(path.read_bytes())[0] for path in cache.glob("*.part/journal")]
    return sum(total(spans) for done in found for spans in done.values())


def wait_for(cache: Path, size: int) -> None:
    end = time.monotonic() + 20
    while journals(cache) < size:
        assert time.monotonic() < end, "the download does not go on"
        time.sleep(0.005)


def said(process: subprocess.Popen[str]) -> tuple[str, Any]:
    """What a process has said before its last line, and that line."""
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    *before, last = output.splitlines()
    return "\n".join(before), json.loads(last)


def test_a_download_that_is_killed_goes_on_where_it_was(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    storage.world.fail(SLOW)
    kept = 0
    for parts in (3, 6):
        with downloading(cache) as process:
            wait_for(cache, parts * PART)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert journals(cache) > kept
        kept = journals(cache)
        assert [path.suffix for path in sorted(cache.iterdir())] == [".lock", ".part"]  # nothing looks like a model
    heal(storage)
    got = download(cache)
    assert content_of(got.folder) == MODEL
    assert got.fetched == SIZE - kept
    whole = sum(-(-len(content) // PART) for content in MODEL.values())
    assert media_calls(storage) <= whole + 2 * WORKERS  # twice, what each worker was about was fetched again
    assert [path.suffix for path in sorted(cache.iterdir()) if path != got.folder] == [".lock"]


@pytest.mark.parametrize("damage", ["bytes", "file", "journal", "cut"])
def test_what_a_journal_says_is_not_believed(storage: Storage, cache: Path, damage: str) -> None:
    upload(storage, MODEL)
    storage.world.fail(Fault(kind=FaultKind.UNAVAILABLE, method=MEDIA, object="*model.safetensors", after=6))
    stop = threading.Event()

    def told(_: DownloadProgress) -> None:
        if journals(cache) >= 6 * PART:
            stop.set()

    with pytest.raises(StoppedError):
        download(cache, progress=told, stop=stop)
    (part,) = cache.glob("*.part")
    weights = part / "files" / "model.safetensors"
    match damage:
        case "bytes":
            with weights.open("r+b") as file:
                file.write(b"\0" * 7 * PART)
        case "file":
            weights.unlink()
        case "journal":
            (part / "journal").unlink()
        case "cut":
            weights.write_bytes(b"")
    heal(storage)
    got = download(cache)
    assert content_of(got.folder) == MODEL
    assert got.fetched >= len(MODEL["model.safetensors"])
    assert bool(got.warnings) is (damage == "bytes")


def test_of_two_processes_one_downloads_and_the_other_waits(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    storage.world.fail(SLOW)
    with downloading(cache) as first, downloading(cache) as second:
        ends = [said(first), said(second)]
    ends.sort(key=lambda end: -end[1]["fetched"])
    (silent, made), (waited, found) = ends
    assert (made["fetched"], found["fetched"]) == (SIZE, 0)
    assert made["folder"] == found["folder"]
    assert silent == ""
    assert re.fullmatch(rf"waiting for process ({first.pid}|{second.pid}), which downloads it", waited)
    assert media_calls(storage) == sum(-(-len(content) // PART) for content in MODEL.values())
    assert content_of(Path(made["folder"])) == MODEL


def test_the_one_that_waits_goes_on_when_the_other_is_killed(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    storage.world.fail(SLOW)
    waits = threading.Event()

    def told(progress: DownloadProgress) -> None:
        if progress.stage is Stage.WAITING:
            waits.set()

    def kill(process: subprocess.Popen[str]) -> None:
        waits.wait(20)
        heal(storage)
        process.kill()

    with downloading(cache) as first:
        wait_for(cache, PART)
        killer = threading.Thread(target=kill, args=(first,))
        killer.start()
        got = download(cache, progress=told)
        killer.join()
    assert waits.is_set()
    assert content_of(got.folder) == MODEL
    assert 0 < got.fetched < SIZE


def test_a_stop_ends_it_within_moments_and_keeps_what_has_come(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    storage.world.fail(SLOW)
    stop = threading.Event()

    def told(progress: DownloadProgress) -> None:
        if progress.done > 2 * PART:
            stop.set()

    before = threading.active_count()
    with pytest.raises(StoppedError, match="told to stop before the model was whole; the next download goes on"):
        download(cache, progress=told, stop=stop)
    assert threading.active_count() - before <= LIMITS.workers  # those of the loopback, which serve its connections
    kept = journals(cache)
    assert 2 * PART < kept < SIZE
    heal(storage)
    assert download(cache).fetched == SIZE - kept


@pytest.mark.parametrize("method", [MEDIA, "storage.objects.list"])
def test_a_stop_while_it_waits_for_the_bucket(storage: Storage, cache: Path, method: str) -> None:
    upload(storage, MODEL)
    storage.world.fail(Fault(kind=FaultKind.UNAVAILABLE, method=method))
    stop = threading.Event()
    timer = threading.Timer(0.5, stop.set)
    timer.start()
    began = time.monotonic()
    with pytest.raises(StoppedError):
        download(cache, stop=stop)
    assert time.monotonic() - began < LIMITS.patience.retry_seconds / 2
    timer.join()


def test_a_stop_while_it_waits_for_another_process(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    storage.world.fail(SLOW)
    stop = threading.Event()
    with downloading(cache):
        wait_for(cache, PART)
        with pytest.raises(StoppedError):
            download(cache, stop=stop, progress=lambda told: stop.set() if told.stage is Stage.WAITING else None)


def test_threads_of_one_process_download_once(storage: Storage, cache: Path) -> None:
    upload(storage, {"model.safetensors": noise(5 * PART, 3)})
    fetched: list[int] = []
    threads = [threading.Thread(target=lambda: fetched.append(download(cache).fetched)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(fetched) == [0, 0, 5 * PART]
