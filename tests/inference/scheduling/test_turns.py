"""What a turn does: a budget of reading, one token of every answer, and pieces that are cut by positions alone."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from inference.engine.abstract_engine import Prefilled
from inference.scheduling.ticket import Ticket
from inference.scheduling.turns import Turn
from inference.testing import Call, SummingEngine
from tests.inference.scheduling.answers import GREEDY, Heard, ask, check, finish, scheduler_of


@pytest.mark.parametrize(("budget", "turns"), [(8, 50), (16, 25), (23, 25), (24, 17)])
def test_running_answers_wait_for_no_more_than_a_budget_of_reading(budget: int, turns: int) -> None:
    calls: list[Call] = []
    engine = SummingEngine(slots=3, grid=8, watch=lambda call, slots: calls.append(call))
    scheduler = scheduler_of(engine, prefill_tokens_a_turn=budget)
    heard_at: dict[int, list[int]] = {0: [], 1: []}

    def note(which: int) -> None:
        heard_at[which].append(scheduler.statistics().turns)

    for which in heard_at:
        scheduler.submit(ask([1, 2], 60), Heard(on_token=lambda _, which=which: note(which)))  # type: ignore[misc]
    for _ in range(2):  # with the smallest budget each has one of its own
        scheduler.turn()
    long = Heard()
    scheduler.submit(ask([9] * 400, 1), long)  # 50 pieces

    before = scheduler.statistics().turns
    calls.clear()
    while not long.tokens:
        scheduler.turn()
    assert scheduler.statistics().turns - before == turns
    finish(scheduler)

    for turns_of_tokens in heard_at.values():
        gaps = [late - early for early, late in pairwise(turns_of_tokens[1:])]
        assert set(gaps) == {1}
    pieces = "".join({Call.PREFILL: "p", Call.DECODE: "d"}.get(call, "") for call in calls).split("d")
    assert max(map(len, pieces)) * 8 <= budget


def test_short_pieces_count_as_the_rows_that_an_engine_reads() -> None:
    engine = SummingEngine(slots=8, grid=128)
    scheduler = scheduler_of(engine, prefill_tokens_a_turn=256)
    for _ in range(8):
        scheduler.submit(ask([1, 2, 3], 1), Heard())
    scheduler.turn()
    assert engine.calls[Call.PREFILL] == 4  # 64 rows each
    scheduler.turn()
    assert engine.calls[Call.PREFILL] == 8


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"prefill_tokens_a_turn": 7}, "prefill_tokens_a_turn: is 7; a piece has up to 8 tokens"),
        ({"queue": -1}, "queue: is -1"),
    ],
)
def test_what_no_scheduler_can_keep_to_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        scheduler_of(SummingEngine(grid=8), **changes)


def test_a_prompt_is_cut_by_positions_alone_and_its_answer_is_the_same_in_any_company(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompts = [[number] * number for number in (1, 7, 8, 9, 23, 24, 25, 40)]
    asked = [ask(prompt, 12) for prompt in prompts]

    def played(*, order: list[int], slots: int, budget: int, late: int, cancelled: bool) -> dict[int, list[int]]:
        """Play all with these; the lengths of the pieces that each prompt was read in."""
        pieces: dict[int, list[int]] = defaultdict(list)
        engine = SummingEngine(slots=slots, grid=8)
        scheduler = scheduler_of(engine, prefill_tokens_a_turn=budget)
        read = engine.prefill

        def prefill(slot: int, *, scored: bool = False) -> Prefilled:
            piece = read(slot, scored=scored)
            for length in (len(ticket.generation.prompt) for ticket in tickets if ticket.slot == slot):
                pieces[length].append(piece.position)
            return piece

        monkeypatch.setattr(engine, "prefill", prefill)
        tickets: list[Ticket] = []
        listeners: dict[int, Heard] = {}
        for number in order:
            if cancelled:
                scheduler.cancel(scheduler.submit(ask([200] * 30, 30), Heard()))
            listeners[number] = Heard()
            tickets.append(scheduler.submit(asked[number], listeners[number]))
            for _ in range(late):
                scheduler.turn()
        finish(scheduler)
        for number, heard in listeners.items():
            check(heard, asked[number])
        return pieces

    forwards, backwards = list(range(8)), list(range(7, -1, -1))
    alone: dict[int, list[int]] = {}
    for number in forwards:
        alone |= played(order=[number], slots=1, budget=8, late=0, cancelled=False)
    assert alone[25] == [8, 16, 24, 25]
    for order in (forwards, backwards):
        for slots, budget, late in [(8, 64, 0), (2, 8, 0), (3, 24, 1), (8, 16, 7)]:
            assert played(order=order, slots=slots, budget=budget, late=late, cancelled=late > 0) == alone


def test_each_turn_says_what_it_did() -> None:
    turns: list[Turn] = []
    seconds = iter(range(1000))
    scheduler = scheduler_of(SummingEngine(slots=1), on_turn=turns.append, clock=lambda: float(next(seconds)))
    for _ in range(2):
        scheduler.submit(ask([4] * 20, 3), Heard())
    finish(scheduler)
    told = [(t.number, t.admitted, t.prefilled_tokens, t.decoded_tokens, t.running, t.waiting) for t in turns]
    assert told == [
        (1, 1, 16, 0, 1, 1),
        (2, 0, 4, 1, 1, 1),
        (3, 0, 0, 1, 0, 1),
        (4, 1, 16, 0, 1, 0),
        (5, 0, 4, 1, 1, 0),
        (6, 0, 0, 1, 0, 0),
    ]
    for turn in turns:
        assert 0 < turn.prefill_seconds < turn.seconds
        assert (turn.decode_seconds > 0) == (turn.decoded_tokens > 0)


def test_the_numbers_add_up() -> None:
    scheduler = scheduler_of(SummingEngine(slots=2))
    for length in (5, 20, 9):
        scheduler.submit(ask([4] * length, 3), Heard())
    scheduler.turn()
    now = scheduler.statistics()
    assert (now.slots, now.running, now.reading, now.waiting) == (2, 2, 1, 1)
    finish(scheduler)
    now = scheduler.statistics()
    assert (now.running, now.reading, now.waiting) == (0, 0, 0)
    assert (now.prompt_tokens, now.prefilled_tokens, now.cached_tokens, now.generated_tokens) == (34, 34, 0, 9)
    assert sum(now.ended.values()) == 3
    assert now.cache is None


def test_a_greedy_answer_twenty_times() -> None:
    scheduler = scheduler_of(SummingEngine(slots=3))
    listeners = [Heard() for _ in range(20)]
    for heard in listeners:
        scheduler.submit(ask([5, 2, 7], 9, parameters=GREEDY), heard)
    finish(scheduler)
    assert len({tuple(heard.tokens) for heard in listeners}) == 1
