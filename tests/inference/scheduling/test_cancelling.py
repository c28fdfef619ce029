"""Whoever asked is gone: the slot is free within one turn, wherever the answer was, and nobody else notices."""

from __future__ import annotations

import pytest

from inference.scheduling.generation import Reason
from inference.scheduling.ticket import Ticket
from inference.testing import Call, SummingEngine
from tests.inference.scheduling.answers import Heard, ask, cache_of, check, finish, scheduler_of


@pytest.mark.parametrize("turns", range(12))
def test_a_slot_is_free_one_turn_later_wherever_the_answer_was(turns: int) -> None:
    # 40 tokens are 5 pieces: it waits behind another for 3 turns, is read for 5, and answers.
    engine = SummingEngine(slots=1, grid=8)
    scheduler = scheduler_of(engine, prefill_tokens_a_turn=8)
    first, gone, after = Heard(), Heard(), Heard()
    scheduler.submit(ask([1] * 8, 4), first)
    ticket = scheduler.submit(ask([2] * 40, 100), gone)
    for _ in range(turns):
        scheduler.turn()
    heard_before = len(gone.tokens)
    scheduler.cancel(ticket)
    scheduler.turn()
    assert gone.reason is Reason.CANCELLED
    assert len(gone.tokens) == heard_before
    assert 1 in engine.free_slots() or first.end is None
    question = ask([3], 2)
    scheduler.submit(question, after)
    finish(scheduler)
    check(after, question)
    assert first.reason is Reason.LENGTH
    assert engine.free_slots() == [1]


def test_to_cancel_twice_or_too_late_is_nothing() -> None:
    scheduler = scheduler_of(SummingEngine())
    heard, other = Heard(), Heard()
    ticket = scheduler.submit(ask([1], 3), heard)
    scheduler.submit(ask([1], 9), other)
    scheduler.cancel(ticket)
    scheduler.cancel(ticket)
    scheduler.turn()
    scheduler.cancel(ticket)
    finish(scheduler)
    scheduler.cancel(ticket)
    assert not scheduler.turn()
    assert heard.reason is Reason.CANCELLED
    assert heard.tokens == []
    assert other.reason is Reason.LENGTH


@pytest.mark.parametrize("own", [True, False])
def test_a_listener_may_cancel(own: bool) -> None:
    scheduler = scheduler_of(SummingEngine(slots=2))
    first, second = Heard(), Heard()
    tickets = [scheduler.submit(ask([1], 50), heard) for heard in (first, second)]
    first.on_token = lambda _: scheduler.cancel(tickets[0 if own else 1]) if len(first.tokens) == 5 else None
    finish(scheduler)
    gone, other = (first, second) if own else (second, first)
    assert gone.reason is Reason.CANCELLED
    assert len(gone.tokens) == (5 if own else 4)  # the second of a turn hears no more of that turn
    assert other.reason is Reason.LENGTH
    assert len(other.tokens) == 50


def test_what_is_cancelled_while_it_is_read_costs_no_further_piece() -> None:
    tickets: list[Ticket] = []

    def leave(call: Call, slots: tuple[int, ...]) -> None:
        if call is Call.PREFILL:
            scheduler.cancel(tickets[0])

    engine = SummingEngine(grid=8, watch=leave)
    scheduler = scheduler_of(engine, prefill_tokens_a_turn=80)
    heard = Heard()
    tickets.append(scheduler.submit(ask([1] * 80, 5), heard))
    scheduler.turn()
    assert engine.calls[Call.PREFILL] == 1
    assert heard.reason is Reason.CANCELLED


def test_two_hundred_clients_that_leave_take_no_slot_with_them() -> None:
    engine = SummingEngine(slots=2, grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine), prefill_tokens_a_turn=8)
    alone, steady = Heard(), Heard()
    question = ask([9] * 30, 400)
    for number in range(200):
        if number == 20:
            scheduler.submit(question, steady)
        heard = Heard()
        ticket = scheduler.submit(ask([number] * (1 + 5 * number % 60), 100), heard)
        turns = 0
        while len(heard.tokens) < number % 3 and turns < 50:
            scheduler.turn()
            turns += 1
        generated = len(heard.tokens)
        scheduler.cancel(ticket)
        scheduler.turn()
        assert len(heard.tokens) == generated
        assert heard.reason is Reason.CANCELLED
    scheduler.submit(ask([4] * 20, 3), alone)
    finish(scheduler)
    check(steady, question)
    check(alone, ask([4] * 20, 3))
    assert engine.free_slots() == [1, 2]
    assert scheduler.statistics().running == 0
    assert scheduler.statistics().ended[Reason.CANCELLED] == 200
