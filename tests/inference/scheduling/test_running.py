"""The thread of the scheduler: it sleeps without work, wakes at once, and ends when told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from inference.scheduling.generation import Reason
from inference.scheduling.scheduler import Scheduler
from inference.testing import Call, SummingEngine
from tests.inference.scheduling.answers import Heard, ask, check, is_idle, running, scheduler_of, wait_until_idle


@pytest.fixture
def engine() -> SummingEngine:
    return SummingEngine(slots=2)


@pytest.fixture
def scheduler(engine: SummingEngine) -> Iterator[Scheduler]:
    """One that runs, and is closed behind the test."""
    scheduler = scheduler_of(engine)
    with running(scheduler):
        yield scheduler


def test_it_sleeps_without_work_and_wakes_for_it(scheduler: Scheduler) -> None:
    for number in range(3):
        before = scheduler.statistics().turns
        time.sleep(0.02)
        assert scheduler.statistics().turns == before
        assert scheduler.stalled_seconds == 0
        heard, generation = Heard(), ask([number] * 20, 5)
        scheduler.submit(generation, heard)
        assert wait_until_idle(scheduler, 30)
        check(heard, generation)


def test_what_is_cancelled_while_nothing_else_goes_on_is_told(engine: SummingEngine, scheduler: Scheduler) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait(_: int) -> None:
        inside.set()
        go_on.wait(30)

    heard = Heard(on_token=wait)
    ticket = scheduler.submit(ask([1], 100), heard)
    assert inside.wait(30)
    scheduler.cancel(ticket)
    go_on.set()
    assert wait_until_idle(scheduler, 30)
    assert heard.reason is Reason.CANCELLED
    assert len(heard.tokens) == 1
    assert engine.free_slots() == [1, 2]


def test_an_engine_that_hangs_is_seen() -> None:
    clock = [100.0]
    inside, go_on = threading.Event(), threading.Event()

    def hang(call: Call, slots: tuple[int, ...]) -> None:
        if call is Call.DECODE:
            inside.set()
            go_on.wait(30)

    scheduler = scheduler_of(SummingEngine(watch=hang), clock=lambda: clock[0])
    with running(scheduler):
        clock[0] = 500.0
        assert scheduler.stalled_seconds == 0  # no work is no stall
        scheduler.submit(ask([1], 3), Heard())
        stalled_at_first = scheduler.stalled_seconds
        hangs = inside.wait(30)
        clock[0] = 530.0
        stalled, last_turn = scheduler.stalled_seconds, scheduler.last_turn
        go_on.set()
        assert wait_until_idle(scheduler, 30)
        assert (stalled_at_first, hangs, stalled, last_turn) == (0, True, 30, 500.0)
        assert scheduler.stalled_seconds == 0


def test_to_close_is_to_end_what_is_here(engine: SummingEngine) -> None:
    scheduler = scheduler_of(engine)
    listeners = [Heard() for _ in range(5)]
    for heard in listeners:
        scheduler.submit(ask([1], 10**6), heard)
    with running(scheduler):
        pass
    assert {heard.reason for heard in listeners} <= {Reason.CUT_OFF, Reason.LENGTH}
    assert engine.free_slots() == [1, 2]
    assert is_idle(scheduler)
