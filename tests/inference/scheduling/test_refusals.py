"""Who is not let in, and when to come back; how everything ends when the server does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inference.scheduling.admission import Door, DrainingError, QueueFullError, Rate, RefusedError
from inference.scheduling.generation import Reason
from inference.scheduling.scheduler import Scheduler
from inference.testing import SummingEngine
from tests.inference.scheduling.answers import Heard, ask, check, finish, is_idle, scheduler_of


@pytest.mark.parametrize(
    ("ends", "waiting", "now", "seconds"),
    [
        ([], 10, 100.0, 1.0),
        ([99.0], 10, 100.0, 1.0),
        ([90.0, 92.0, 94.0], 5, 94.0, 10.0),  # one in 2 s
        ([90.0, 92.0, 94.0], 5, 102.0, 30.0),  # none for 8 s more: one in 6 s
        ([90.0, 90.1, 90.2], 5, 90.2, 1.0),  # at least 1
        ([0.0, 50.0, 100.0], 5, 100.0, 60.0),  # at most 60
        ([0.0] * 10 + [100.0 + i / 8 for i in range(64)], 64, 107.875, 8.0),  # the last 64 only, one in 1/8 s
        ([90.0, 92.0], 0, 92.0, 1.0),
    ],
)
def test_when_to_come_back(ends: list[float], waiting: int, now: float, seconds: float) -> None:
    rate = Rate()
    for end in ends:
        rate.ended(end)
    assert rate.retry_after(waiting, now) == pytest.approx(seconds)


def test_a_full_queue_refuses_and_an_end_makes_room() -> None:
    clock = [0.0]
    scheduler = scheduler_of(SummingEngine(slots=2), queue=3, clock=lambda: clock[0])
    tickets = [scheduler.submit(ask([1], 2), Heard()) for _ in range(5)]
    with pytest.raises(QueueFullError, match="3 answers wait already; come back in 1 s") as refused:
        scheduler.submit(ask([1], 2), Heard())
    assert refused.value.retry_after == 1.0
    assert scheduler.statistics().refused == 1
    scheduler.cancel(tickets[4])
    scheduler.turn()  # two have read, answered and ended, and one of the queue is gone
    assert scheduler.statistics().waiting == 2
    for _ in range(3):
        scheduler.submit(ask([1], 2), Heard())
    clock[0] = 12.0
    with pytest.raises(QueueFullError) as refused:
        scheduler.submit(ask([1], 2), Heard())
    assert refused.value.retry_after == 3 * 12.0  # two ends at 0, and 12 s since
    finish(scheduler)


def test_without_a_queue_there_is_one_for_each_slot() -> None:
    scheduler = scheduler_of(SummingEngine(slots=2), queue=0)
    for _ in range(2):
        scheduler.submit(ask([1], 2), Heard())
    with pytest.raises(QueueFullError):
        scheduler.submit(ask([1], 2), Heard())
    finish(scheduler)


def test_a_tenant_that_floods_the_queue_locks_no_other_out() -> None:
    clock = [0.0]
    scheduler = scheduler_of(SummingEngine(slots=1), queue=5, clock=lambda: clock[0])

    def comes(tenant: str, count: int = 1) -> bool:
        try:
            scheduler.submit_all([(ask([1], 2, tenant=tenant), Heard()) for _ in range(count)])
        except QueueFullError:
            return False
        return True

    assert comes("flood", 6)
    assert not comes("one", 2)
    assert not comes("one", 4)  # more than its share of three: nothing more is held
    taken = []
    for _ in range(8):
        scheduler.turn()  # one is read, answered and over
        while comes("flood"):
            taken.append("flood")
        if comes("one", 2):
            taken.append("one")
    # Of eight ends each gets four places: those of the first two are held.
    assert taken == ["one", "flood", "flood", "one", "flood", "flood"]
    finish(scheduler)
    clock[0] = 100.0
    assert comes("flood", 6)


def test_places_are_held_for_no_longer_than_a_client_was_told_to_stay_away() -> None:
    door = Door(most=4, slots=1)
    door.enter({"flood": 4})
    with pytest.raises(QueueFullError):
        door.check({"one": 1}, now=100.0)
    door.leave("flood", 100.0, had_slot=True)
    for now, free in [(100.5, False), (105.9, False), (106.1, True)]:  # 1 s, and 5 of patience
        if free:
            door.check({"flood": 1}, now=now)
        else:
            with pytest.raises(QueueFullError):
                door.check({"flood": 1}, now=now)
    assert door.refused == 3


def test_slots_are_never_held() -> None:
    door = Door(most=2, slots=2)
    door.enter({"flood": 2})
    with pytest.raises(QueueFullError):
        door.check({"one": 1}, now=0.0)
    door.leave("flood", 0.0, had_slot=True)
    door.check({"flood": 1}, now=0.1)


def test_one_tenant_alone_has_all_places() -> None:
    door = Door(most=4, slots=1)
    for _ in range(4):
        door.check({"": 1}, now=0.0)
        door.enter({"": 1})
    for _ in range(3):
        with pytest.raises(QueueFullError, match="3 answers wait"):
            door.check({"": 1}, now=0.0)
    door.leave("", 0.0, had_slot=True)
    door.check({"": 1}, now=0.0)


def test_several_answers_are_taken_together_or_not_at_all() -> None:
    scheduler = scheduler_of(SummingEngine(slots=2), queue=1)
    scheduler.submit(ask([1], 2), Heard())
    with pytest.raises(QueueFullError):
        scheduler.submit_all([(ask([1], 2), Heard()) for _ in range(3)])
    assert scheduler.statistics().waiting == 1
    assert len(scheduler.submit_all([(ask([1], 2), Heard()) for _ in range(2)])) == 2
    finish(scheduler)
    assert scheduler.statistics().ended[Reason.LENGTH] == 3


def test_to_drain_is_to_finish_what_is_here() -> None:
    scheduler = scheduler_of(SummingEngine(slots=1))
    asked = [ask([number] * 20, 30) for number in range(3)]
    listeners = [Heard() for _ in asked]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    scheduler.turn()
    scheduler.drain()
    with pytest.raises(DrainingError, match="ask another"):
        scheduler.submit(ask([1], 2), Heard())
    assert not is_idle(scheduler)
    finish(scheduler)
    assert is_idle(scheduler)
    for heard, generation in zip(listeners, asked, strict=True):
        check(heard, generation)
        assert heard.reason is Reason.LENGTH


@pytest.mark.parametrize("stop", [Scheduler.cut_off, Scheduler.close])
def test_to_cut_off_is_to_end_all_at_once(stop: Callable[[Scheduler], None]) -> None:
    engine = SummingEngine(slots=2)
    scheduler = scheduler_of(engine, prefill_tokens_a_turn=8)
    asked = [ask([1], 30), ask([2] * 90, 30), ask([3], 30)]
    listeners = [Heard() for _ in asked]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    for _ in range(3):
        scheduler.turn()
    late = Heard()
    scheduler.submit(ask([4], 3), late)  # has arrived, and was not looked at yet
    stop(scheduler)
    with pytest.raises(RefusedError):
        scheduler.submit(ask([1], 2), Heard())
    assert not scheduler.turn()
    assert {heard.reason for heard in [*listeners, late]} == {Reason.CUT_OFF}
    check(listeners[0], asked[0])
    assert len(listeners[0].tokens) > 0
    assert engine.free_slots() == [1, 2]
    assert is_idle(scheduler)


def test_cut_off_in_the_middle_of_a_turn_is_done_at_the_next() -> None:
    scheduler = scheduler_of(SummingEngine(slots=2))
    heard = Heard(on_token=lambda _: scheduler.cut_off() if len(heard.tokens) == 3 else None)
    scheduler.submit(ask([1], 30), heard)
    finish(scheduler)
    assert heard.reason is Reason.CUT_OFF
    assert len(heard.tokens) == 3
