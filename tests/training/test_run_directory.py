"""The folder of a run: its lock, its metrics after a resume, and its heartbeat."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from training.errors import TrainingError
from training.heartbeat import Heartbeat
from training.metrics import MetricsLog
from training.run_directory import RunDirectory


def test_a_folder_is_one_run_at_a_time(tmp_path: Path) -> None:
    first = RunDirectory(tmp_path / "run")
    with pytest.raises(TrainingError, match="another run is at work there"):
        RunDirectory(tmp_path / "run")
    first.close()
    RunDirectory(tmp_path / "run").close()


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match=r"--run-dir .*file/run: Not a directory"):
        RunDirectory(tmp_path / "file" / "run")


def test_metrics_are_cut_after_the_checkpoint(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    log = MetricsLog(run.metrics)
    for step in range(1, 8):
        log.write(step, {"loss": 1 / step})
    log.finish({"step": 7})
    log.close()
    with run.metrics.open("a") as file:
        file.write('{"step": 8, "lo')
    assert run.cut_metrics(5) == 4
    assert [json.loads(line)["step"] for line in run.metrics.read_text().splitlines()] == [1, 2, 3, 4, 5]
    assert run.cut_metrics(5) == 0
    run.close()


def test_cutting_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert run.cut_metrics(0) == 0
    run.close()


def test_a_loss_that_is_no_number_is_null(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.write(1, {"loss": float("nan"), "validation": None, "skipped": 1})
    log.close()
    line = (tmp_path / "metrics.jsonl").read_text()
    assert json.loads(line) == {"step": 1, "loss": None, "validation": None, "skipped": 1}


def test_tensorboard_is_told_the_same(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl", tensorboard=tmp_path / "board")
    log.write(1, {"loss": 2.5})
    log.text(1, "To be")
    log.close()
    events = b"".join(path.read_bytes() for path in (tmp_path / "board").iterdir())
    assert b"loss" in events
    assert b"To be" in events


def test_a_heartbeat_says_run_attempt_step_and_time() -> None:
    written: list[bytes] = []
    Heartbeat(written.append, run="r", attempt=3).beat(17, at_once=True)
    beat = json.loads(written[0])
    assert {name: beat[name] for name in ("run", "attempt", "step")} == {"run": "r", "attempt": 3, "step": 17}
    assert len(beat["time"]) == len("2026-11-30T01:02:03Z")


def test_a_slow_bucket_holds_no_step_up() -> None:
    written: list[bytes] = []
    go = threading.Event()

    def write(body: bytes) -> None:
        go.wait(10)
        written.append(body)

    heart = Heartbeat(write, run="r", attempt=1, every_seconds=0)
    for step in range(5):
        heart.beat(step)
    assert written == []
    go.set()
    heart.beat(9, at_once=True)
    assert [json.loads(body)["step"] for body in written] == [0, 9]


def test_a_heartbeat_that_fails_is_told_and_stops_nothing() -> None:
    told: list[Exception] = []

    def write(_: bytes) -> None:
        raise OSError(28, "No space left on device")

    Heartbeat(write, run="r", attempt=1, failed=told.append).beat(1, at_once=True)
    assert [str(error) for error in told] == ["[Errno 28] No space left on device"]
