"""Downloads that are killed and begun again, and several at once, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
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
    hold,
    media_calls,
    noise,
    upload,
)

ROOT = Path(__file__).parents[4]
SIZE = sum(map(len, MODEL.values()))
WORKERS = 3


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
    end = time.monotonic() + 30
    while journals(cache) < size:
        assert time.monotonic() < end, "the download does not go on"
        time.sleep(0.005)


def said(process: subprocess.Popen[str]) -> Any:
    """What a process says at its end."""
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(output)


def test_a_download_that_is_killed_goes_on_where_it_was(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    kept = len(MODEL["config.json"])  # which comes first
    answered = 0
    for calls, parts in ((4, 3), (2, 2)):
        hold(storage, calls)
        kept += parts * PART
        answered += calls
        with downloading(cache) as process:
            wait_for(cache, kept)
            process.send_signal(signal.SIGKILL)
            process.wait()
        heal(storage)
        assert journals(cache) == kept
        assert [path.suffix for path in sorted(cache.iterdir())] == [".lock", ".part"]  # nothing looks like a model
    before = media_calls(storage)
    got = download(cache)
    assert content_of(got.folder) == MODEL
    assert got.fetched == SIZE - kept
    assert media_calls(storage) - before == sum(-(-len(content) // PART) for content in MODEL.values()) - answered
    assert [path.suffix for path in sorted(cache.iterdir()) if path != got.folder] == [".lock"]


def test_of_a_part_that_was_cut_off_by_the_kill_all_is_fetched_again_and_of_others_nothing(
    storage: Storage, cache: Path
) -> None:
    upload(storage, MODEL)
    storage.world.fail(Fault(kind=FaultKind.BANDWIDTH, method=MEDIA, rate=PART / 0.5))  # half a second a part
    with downloading(cache) as process:
        wait_for(cache, PART)
        process.kill()
        process.wait()
    heal(storage)
    kept = journals(cache)
    assert download(cache).fetched == SIZE - kept
    whole = sum(-(-len(content) // PART) for content in MODEL.values())
    assert media_calls(storage) <= whole + WORKERS


def stopped_at(cache: Path, done: int) -> None:
    """Download until so many bytes lie on disk, none of them twice, and stop."""
    stop = threading.Event()

    def told(progress: DownloadProgress) -> None:
        if progress.done == done and progress.fetched >= done:
            stop.set()

    with pytest.raises(StoppedError):
        download(cache, progress=told, stop=stop)


def test_a_journal_forgets_a_file_that_was_lost(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    hold(storage, calls=6)
    stopped_at(cache, len(MODEL["config.json"]) + 5 * PART)
    (weights,) = cache.glob("*.part/files/model.safetensors")
    weights.unlink()
    heal(storage)
    hold(storage, calls=2)
    stop = threading.Event()
    with pytest.raises(StoppedError):
        download(cache, progress=lambda told: stop.set() if told.fetched == 2 * PART else None, stop=stop)
    heal(storage)
    got = download(cache)
    assert got.fetched == SIZE - len(MODEL["config.json"]) - 2 * PART
    assert got.warnings == ()


def test_a_journal_forgets_a_file_that_came_damaged(storage: Storage, cache: Path) -> None:
    weights = noise(6 * PART, 4)
    upload(storage, {"model.safetensors": weights})
    storage.world.fail(Fault(kind=FaultKind.FLIPPED_SERVED, method=MEDIA, after=3, times=1))
    hold(storage, calls=6 + 2)
    stop = threading.Event()
    with pytest.raises(StoppedError):
        download(cache, progress=lambda told: stop.set() if told.fetched == 8 * PART else None, stop=stop)
    assert journals(cache) == 2 * PART
    heal(storage)
    got = download(cache)
    assert (got.fetched, got.warnings) == (4 * PART, ())


@pytest.mark.parametrize("damage", ["bytes", "file", "journal", "cut"])
def test_what_a_journal_says_is_not_believed(storage: Storage, cache: Path, damage: str) -> None:
    upload(storage, MODEL)
    hold(storage, calls=7)
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
    hold(storage, calls=4)
    with downloading(cache) as first:
        wait_for(cache, PART)
        with downloading(cache) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == f"waiting for process {first.pid}, which downloads it\n"
            time.sleep(0.5)
            heal(storage)
            made, found = said(first), said(second)
    assert (made["fetched"], found["fetched"]) == (SIZE, 0)
    assert made["waits"] == 0
    assert found["waits"] > 1  # it can be said again while it lasts
    assert made["folder"] == found["folder"]
    assert content_of(Path(made["folder"])) == MODEL


def test_the_one_that_waits_goes_on_when_the_other_is_killed(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    hold(storage, calls=4)
    with downloading(cache) as first:
        wait_for(cache, kept := len(MODEL["config.json"]) + 3 * PART)

        def told(progress: DownloadProgress) -> None:
            if progress.stage is Stage.WAITING:
                first.kill()
                heal(storage)

        got = download(cache, progress=told)
    assert content_of(got.folder) == MODEL
    assert got.fetched == SIZE - kept


def test_a_stop_ends_it_within_moments_and_keeps_what_has_come(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    hold(storage, calls=4)
    kept = len(MODEL["config.json"]) + 3 * PART
    stop = threading.Event()

    def told(progress: DownloadProgress) -> None:
        if progress.done == kept:
            stop.set()

    with pytest.raises(StoppedError, match="told to stop before the model was whole; the next download goes on"):
        download(cache, progress=told, stop=stop)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("download")]
    assert journals(cache) == kept
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
    hold(storage, calls=4)
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
