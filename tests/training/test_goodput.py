"""The ledger of goodput: a scripted timeline whose sums a reader can check by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training.goodput import Bucket, Ledger, account, read_ledger


class Clock:
    """A clock that goes only where it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def step(ledger: Ledger, clock: Clock, number: int, seconds: float) -> None:
    with ledger.measure(Bucket.STEP):
        clock.now += seconds
    ledger.mark(number)


def test_every_second_is_in_one_bucket(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "goodput.jsonl"
    clock.now = 1010.0
    first = Ledger(path, 1, clock=clock, began=1000.0)
    with first.measure(Bucket.COMPILE):
        clock.now += 20
    step(first, clock, 1, 2.0)
    step(first, clock, 2, 2.0)
    with first.measure(Bucket.CHECKPOINT):
        clock.now += 0.5
    first.mark(2)
    step(first, clock, 3, 2.0)
    clock.now += 1.0  # nobody measured it
    step(first, clock, 4, 2.0)
    first.close()
    clock.now += 60
    second = Ledger(path, 2, resumed_at=2, clock=clock, began=clock.now - 5)
    step(second, clock, 3, 3.0)
    told = second.account()
    second.close()
    assert told.seconds == {
        Bucket.STEP: 7.0,
        Bucket.WASTED: 4.0,
        Bucket.STARTUP: 15.0,
        Bucket.COMPILE: 20.0,
        Bucket.RESTORE: 0.0,
        Bucket.DATA: 0.0,
        Bucket.CHECKPOINT: 0.5,
        Bucket.VALIDATION: 0.0,
        Bucket.OTHER: 1.0,
        Bucket.DOWN: 55.0,
    }
    assert told.wall == clock.now - 1000.0
    assert told.goodput == 7.0 / told.wall


def test_an_attempt_that_went_further_back_wastes_all_of_the_one_before(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "goodput.jsonl"
    first = Ledger(path, 1, resumed_at=10, clock=clock)
    step(first, clock, 11, 4.0)
    first.close()
    second = Ledger(path, 2, resumed_at=5, clock=clock)
    assert second.account().seconds[Bucket.WASTED] == 4.0
    assert second.account().goodput == 0.0
    second.close()


def test_a_line_that_a_kill_cut_off_is_none(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "goodput.jsonl"
    ledger = Ledger(path, 1, clock=clock)
    step(ledger, clock, 1, 1.0)
    ledger.close()
    whole = path.read_text()
    path.write_text(whole + whole[: len(whole) // 3])
    assert [line["step"] for line in read_ledger(path)] == [0, 1]


def test_time_is_counted_when_the_step_fails(tmp_path: Path) -> None:
    clock = Clock()
    ledger = Ledger(tmp_path / "goodput.jsonl", 1, clock=clock)

    def fail() -> None:
        with ledger.measure(Bucket.STEP):
            clock.now += 3
            raise RuntimeError("chip")

    with pytest.raises(RuntimeError, match="chip"):
        fail()
    ledger.mark(0)
    assert ledger.account().seconds[Bucket.STEP] == 3.0
    ledger.close()
    assert json.loads((tmp_path / "goodput.jsonl").read_text().splitlines()[-1])["seconds"] == {"step": 3.0}


def test_many_attempts_are_added_up_as_if_from_the_start(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "goodput.jsonl"
    resumed = 0
    for number in range(1, 5):
        ledger = Ledger(path, number, resumed_at=resumed, restored=1.0, clock=clock, began=clock.now - 3)
        for done in range(resumed + 1, resumed + 4):
            step(ledger, clock, done, 2.0)
            assert ledger.account().seconds == account(read_ledger(path)).seconds
        ledger.close()
        resumed += 2
        clock.now += 10
    told = account(read_ledger(path))
    assert told.seconds[Bucket.STEP] == 4 * 6 - 3 * 2
    assert (told.seconds[Bucket.WASTED], told.seconds[Bucket.RESTORE], told.seconds[Bucket.STARTUP]) == (6, 4, 8)
    assert told.seconds[Bucket.DOWN] == 3 * 7
    assert told.billed == told.wall - 21


def test_an_attempt_of_the_same_number_is_another(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "goodput.jsonl"
    for _ in range(2):
        ledger = Ledger(path, 1, clock=clock)
        step(ledger, clock, 1, 2.0)
        ledger.close()
        clock.now += 5
    assert account(read_ledger(path)).seconds[Bucket.DOWN] == 5
    assert account(read_ledger(path)).seconds[Bucket.WASTED] == 2
