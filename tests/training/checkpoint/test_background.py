"""What happens beside the step: errors that are said in time, deadlines that hold, and a kill at any moment."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.training.checkpoint.faulty_store import FaultyStore
from tests.training.checkpoint.trees import assert_same, small_tree
from training.checkpoint.checkpointer import Checkpointer, OnFailure
from training.checkpoint.discovery import find_newest_valid
from training.checkpoint.errors import SaveFailedError
from training.checkpoint.local_store import LocalStore
from training.checkpoint.restoring import restore
from training.checkpoint.retention import Retention
from training.checkpoint.store import Part
from training.checkpoint.workers import Workers

ROOT = Path(__file__).parents[3]


def newest_step(root: Path) -> int | None:
    found = find_newest_valid(root, "r")
    return None if found is None else found.step


def full_disk_at(store: FaultyStore, part: str) -> None:
    def before(number: int, verb: str, key: str) -> None:
        if part in key:
            raise OSError(errno.ENOSPC, "No space left on device")

    store.before = before


@pytest.mark.parametrize("said_by", ["save", "wait", "close", "check", "exit"])
def test_a_background_save_that_fails_is_said_by_the_next_call(said_by: str, tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    full_disk_at(store, "00000002-1/")
    checkpointer = Checkpointer(store, run="r")
    checkpointer.save(1, small_tree(1), {})
    checkpointer.save(2, small_tree(2), {})
    calls = {
        "save": lambda: checkpointer.save(3, small_tree(3), {}),
        "wait": checkpointer.wait,
        "close": checkpointer.close,
        "exit": lambda: checkpointer.__exit__(None, None, None),
        "check": lambda: (wait_until(lambda: not checkpointer.busy), checkpointer.check()),
    }
    with pytest.raises(
        SaveFailedError, match=r"the checkpoint of step 2 was not committed: .*No space left.* that of step 1 stands"
    ):
        calls[said_by]()
    checkpointer.close()
    assert newest_step(tmp_path) == 1


def wait_until(condition: object, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_failure_may_be_a_warning_until_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    full_disk_at(store, "00000002-1/")
    with Checkpointer(store, run="r", on_failure=OnFailure.WARN) as checkpointer:
        for step in (1, 2, 3):
            checkpointer.save(step, small_tree(step), {})
    assert "step 2 was not committed" in caplog.text
    assert newest_step(tmp_path) == 3


def test_the_same_step_is_tried_again_after_a_failure(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    full_disk_at(store, "PART-0.json")
    checkpointer = Checkpointer(store, run="r")
    checkpointer.save(1, small_tree(1), {})
    with pytest.raises(SaveFailedError):
        checkpointer.wait()
    store.before = lambda number, verb, key: None
    checkpointer.save(1, small_tree(1), {})
    checkpointer.close()
    assert newest_step(tmp_path) == 1


class _Deaf(FaultyStore):
    """Every write comes through, its answer is lost, and asking again meets what is there."""

    def create(self, key: str, parts: Sequence[Part]) -> None:
        self.inner.create(key, parts)
        self.inner.create(key, parts)

    def replace(self, key: str, content: bytes, generation: str | None) -> None:
        self.inner.replace(key, content, generation)
        self.inner.replace(key, content, generation)


def test_answers_that_are_lost_are_no_failures(tmp_path: Path) -> None:
    with Checkpointer(_Deaf(LocalStore(tmp_path)), run="r") as checkpointer:
        for step in (1, 2):
            checkpointer.save(step, small_tree(step), {})
    found = find_newest_valid(tmp_path, "r")
    assert found is not None
    assert (found.prefix, found.skipped) == ("00000002-1", ())


def test_a_manifest_of_somebody_else_is_not_taken_for_ours(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    checkpointer = Checkpointer(store, run="r")
    store.create("00000001-1/MANIFEST.json", [b"{}"])
    checkpointer.save(1, small_tree(1), {})
    with pytest.raises(SaveFailedError, match=r"MANIFEST\.json is damaged"):
        checkpointer.close()


def test_no_thread_outlives_a_close(tmp_path: Path) -> None:
    """One that frees an array of JAX while the interpreter ends aborts the process."""
    before = set(threading.enumerate())
    checkpointer = Checkpointer(tmp_path, run="r", retention=Retention(keep_last=1), threads=4)
    checkpointer.save(1, small_tree(1), {})
    checkpointer.save(2, small_tree(2), {})
    checkpointer.commit_now(3, small_tree(3), {}, deadline_seconds=60)
    assert len(set(threading.enumerate()) - before) > 4
    checkpointer.close()
    assert set(threading.enumerate()) <= before


def test_a_store_that_never_answers_holds_no_exit(tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from tests.training.checkpoint.faulty_store import FaultyStore
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.local_store import LocalStore
import numpy as np
store = FaultyStore(LocalStore(Path({str(tmp_path)!r})))
checkpointer = Checkpointer(store, run="r", exit_seconds=1.0)
checkpointer.save(1, {{"w": np.ones(3)}}, {{}})
checkpointer.wait()
store.before = lambda number, verb, key: time.sleep(3600)
checkpointer.save(2, {{"w": np.ones(3)}}, {{}})
began = time.monotonic()
try:
    checkpointer.close()
finally:
    print(time.monotonic() - began, flush=True)
"""
    began = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert run.returncode == 1
    assert "step 2 was not committed within 1.0 s" in run.stderr
    assert "that of step 1 stands" in run.stderr
    assert 1.0 <= float(run.stdout) < time.monotonic() - began
    assert newest_step(tmp_path) == 1


def test_a_save_waits_for_the_one_before_so_that_one_copy_is_in_memory(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    gate = threading.Event()
    store.before = lambda number, verb, key: gate.wait(30) if key.endswith("00000001-1/OWNER.json") else None
    with Checkpointer(store, run="r") as checkpointer:
        checkpointer.save(1, small_tree(1), {})
        threading.Timer(0.3, gate.set).start()
        began = time.monotonic()
        checkpointer.save(2, small_tree(2), {})
        assert time.monotonic() - began > 0.2
        assert checkpointer.committed_step == 1
    assert newest_step(tmp_path) == 2


def test_a_step_is_saved_once(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    with Checkpointer(store, run="r") as checkpointer:
        checkpointer.save(1, small_tree(1), {})
        checkpointer.save(1, small_tree(1), {})
        checkpointer.commit_now(1, small_tree(1), {}, deadline_seconds=20)
    assert [key for verb, key in store.log if key.endswith("MANIFEST.json")] == ["00000001-1/MANIFEST.json"]


def test_a_notice_commits_beside_a_save_that_hangs(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    gate = threading.Event()
    store.before = lambda number, verb, key: gate.wait(60) if key.startswith("00000002-1/host-0") else None
    checkpointer = Checkpointer(store, run="r")
    checkpointer.save(1, small_tree(1), {})
    checkpointer.save(2, small_tree(2), {})
    checkpointer.commit_now(3, small_tree(3), {"why": "notice"}, deadline_seconds=13)
    assert newest_step(tmp_path) == 3
    found = find_newest_valid(tmp_path, "r")
    assert found is not None
    assert found.meta == {"why": "notice"}
    assert_same(restore(found, small_tree(0))[0], small_tree(3))
    gate.set()
    checkpointer.close()


def test_a_notice_tries_again_what_had_failed_in_the_background(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    gate = threading.Event()

    def before(number: int, verb: str, key: str) -> None:
        if key == "00000001-1/PART-0.json" and not gate.is_set():
            gate.set()
            raise OSError(errno.EIO, "Input/output error")

    store.before = before
    with Checkpointer(store, run="r") as checkpointer:
        checkpointer.save(1, small_tree(1), {})
        checkpointer.commit_now(1, small_tree(1), {}, deadline_seconds=20)
    assert newest_step(tmp_path) == 1


def test_a_deadline_that_passes_is_said_with_what_stands(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    gate = threading.Event()
    checkpointer = Checkpointer(store, run="r")
    checkpointer.save(1, small_tree(1), {})
    checkpointer.wait()
    store.before = lambda number, verb, key: gate.wait(60)
    with pytest.raises(SaveFailedError, match=r"step 2 was not committed within 0\.\d s to .*; that of step 1 stands"):
        checkpointer.commit_now(2, small_tree(2), {}, deadline_seconds=0.3)
    gate.set()
    store.before = lambda number, verb, key: None
    checkpointer.close()
    assert newest_step(tmp_path) in (1, 2)


def test_a_notice_forgives_an_earlier_save_that_failed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    full_disk_at(store, "00000001-1/")
    with Checkpointer(store, run="r") as checkpointer:
        checkpointer.save(1, small_tree(1), {})
        wait_until(lambda: not checkpointer.busy)
        checkpointer.commit_now(2, small_tree(2), {}, deadline_seconds=20)
    assert "step 1 was not committed" in caplog.text
    assert newest_step(tmp_path) == 2


SIGNALLED = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from tests.training.checkpoint.faulty_store import FaultyStore
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.local_store import LocalStore
seen = []
signal.signal(signal.SIGTERM, lambda *_: seen.append(time.monotonic()))
store = FaultyStore(LocalStore(Path(sys.argv[1])))
checkpointer = Checkpointer(store, run="r")
checkpointer.wait()
def before(number, verb, key):
    if key.endswith("c.0"):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)
store.before = before
os.kill(os.getpid(), signal.SIGTERM)
if sys.argv[2] == "during":
    checkpointer.save(5, {"a": np.arange(3), "b": np.arange(3)}, {})
checkpointer.commit_now(5, {"a": np.arange(3), "b": np.arange(3)}, {}, deadline_seconds=13)
checkpointer.close()
print(len(seen))
"""


@pytest.mark.parametrize("moment", ["between", "during"])
def test_a_second_signal_harms_no_commit(moment: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SIGNALLED, str(tmp_path), moment],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert int(run.stdout) >= 2
    assert newest_step(tmp_path) == 5


KILLED = """
import sys
import numpy as np
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.discovery import find_newest_valid
from training.checkpoint.retention import Retention
found = find_newest_valid(sys.argv[1], "r")
step = 0 if found is None else found.step
with Checkpointer(sys.argv[1], run="r", retention=Retention(keep_last=2)) as checkpointer:
    print("ready", flush=True)
    while True:
        step += 1
        checkpointer.save(step, {name: np.full((64, 64), step, np.float32) for name in "abc"}, {"step": step})
        print(step, flush=True)
"""


def test_killed_in_the_middle_of_saving_it_goes_on_from_what_was_committed(tmp_path: Path) -> None:
    like = {name: np.zeros((64, 64), np.float32) for name in "abc"}
    before = 0
    for seed in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(3):
                saved = int(process.stdout.readline())
            time.sleep(random.Random(seed).uniform(0, 0.1))
            process.send_signal(signal.SIGKILL)
            # A step was committed before the save of the next one returned.
            last = [*process.stdout]
        saved = int(last[-1]) if last and last[-1].endswith("\n") else saved
        found = find_newest_valid(tmp_path, "r")
        assert found is not None
        assert found.skipped == () or all("incomplete" in line for line in found.skipped)
        assert before < saved - 1 <= found.step <= saved + 1
        assert_same(restore(found, like)[0], {name: np.full((64, 64), found.step, np.float32) for name in "abc"})
        before = found.step
    with Checkpointer(tmp_path, run="r", retention=Retention(keep_last=2)) as checkpointer:
        checkpointer.save(before + 1, like, {})
    assert len(list(tmp_path.glob("*/OWNER.json"))) == 2, "nothing is left lying about"


def test_copies_do_not_change_with_what_they_were_taken_of(tmp_path: Path) -> None:
    """Also of memory that numpy and the device share."""
    source = np.arange(1 << 14, dtype=np.float32)
    store = FaultyStore(LocalStore(tmp_path))
    gate = threading.Event()
    store.before = lambda number, verb, key: gate.wait(60)
    threading.Timer(0.1, gate.set).start()
    checkpointer = Checkpointer(store, run="r")
    checkpointer.wait()
    gate.clear()
    expected = source.copy()
    checkpointer.save(1, {"numpy": source, "shared": jnp.asarray(source)}, {})
    source[:] = -1.0
    gate.set()
    checkpointer.close()
    found = find_newest_valid(tmp_path, "r")
    assert found is not None
    back, _ = restore(found, {"numpy": source, "shared": jax.ShapeDtypeStruct(source.shape, source.dtype)})
    assert_same(back, {"numpy": expected, "shared": expected})


def test_workers_give_results_and_the_first_error_after_all_are_over() -> None:
    workers = Workers("test", 3, low_priority=True)
    assert workers.each(lambda x: x * x, range(20)) == [x * x for x in range(20)]
    done = []

    def task(x: int) -> None:
        if x == 1:
            raise KeyError(x)
        time.sleep(0.01)
        done.append(x)

    with pytest.raises(KeyError):
        workers.each(task, range(6))
    assert sorted(done) == [0, 2, 3, 4, 5]
    workers.stop()


def test_threads_in_the_background_give_way() -> None:
    if not hasattr(os, "setpriority"):
        pytest.skip("this system has no priorities")
    workers = Workers("test", 1, low_priority=True)
    thread = workers.submit(threading.get_native_id).result()
    assert os.getpriority(os.PRIO_PROCESS, thread) >= 5
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) < 5
    workers.stop()
