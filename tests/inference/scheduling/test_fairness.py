"""Tenants take turns, by counting; within a tenant who comes first is first; nobody starves."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from inference.scheduling.fairness import Shares
from inference.testing import Call, SummingEngine, summed
from tests.inference.scheduling.answers import Heard, ask, finish, scheduler_of


def test_two_who_always_want_something_are_never_far_apart() -> None:
    shares, drawn, given = Shares(), random.Random(1), Counter[str]()
    for tenant in "abc":
        shares.comes(tenant)
    for _ in range(10_000):
        tenant = shares.first("abc")
        tokens = drawn.choice({"a": (1, 2), "b": (50,), "c": (1, 100)}[tenant])
        shares.give(tenant, tokens)
        given[tenant] += tokens
        assert max(given.values()) - min(given[name] for name in "abc") <= 100


def test_nobody_saves_up_turns_by_staying_away() -> None:
    shares = Shares()
    shares.comes("here")
    shares.give("here", 1000)
    shares.comes("late")
    served = Counter[str]()
    for _ in range(100):
        tenant = shares.first(("here", "late"))
        shares.give(tenant, 10)
        served[tenant] += 1
    assert served == {"here": 50, "late": 50}


def test_who_has_had_more_and_comes_back_at_once_has_still_had_more() -> None:
    shares = Shares()
    for tenant in ("modest", "greedy"):
        shares.comes(tenant)
    shares.give("greedy", 1000)
    shares.goes("greedy")
    shares.comes("greedy")
    assert shares.first(("greedy", "modest")) == "modest"
    shares.goes("greedy")
    shares.goes("modest")
    shares.comes("greedy")  # nobody else is here: all begin anew
    shares.comes("modest")
    assert shares.first(("greedy", "modest")) == "greedy"


def order_of_first_tokens(questions: list[tuple[str, int]], *, slots: int, count: int = 1) -> list[int]:
    """Ask all at once, by tenant and length of prompt; their numbers in the order of the first tokens."""
    first: list[int] = []
    scheduler = scheduler_of(SummingEngine(slots=slots), prefill_tokens_a_turn=8)
    for number, (tenant, length) in enumerate(questions):

        def note(_: int, number: int = number) -> None:
            if number not in first:
                first.append(number)

        scheduler.submit(ask([number] * length, count, tenant=tenant), Heard(on_token=note))
    finish(scheduler)
    return first


@pytest.mark.parametrize(
    ("slots", "questions", "order"),
    [
        # One tenant: in the order of coming.
        (1, [("", 8)] * 5, [0, 1, 2, 3, 4]),
        (3, [("", 24)] * 5, [0, 1, 2, 3, 4]),
        # Four of a, then two of b: b does not wait for all of a, whether slots or pieces are short.
        (1, [("a", 8)] * 4 + [("b", 8)] * 2, [0, 4, 1, 5, 2, 3]),
        (6, [("a", 8)] * 4 + [("b", 8)] * 2, [0, 4, 1, 5, 2, 3]),
        # Prompts of a are three times as long: b gets three for each.
        (1, [("a", 24)] * 2 + [("b", 8)] * 6, [0, 2, 3, 4, 1, 5, 6, 7]),
        # A question behind a book of the same tenant gets every other piece.
        (2, [("", 80), ("", 24)], [1, 0]),
        (2, [("", 24), ("", 80)], [0, 1]),
    ],
)
def test_the_order_of_first_tokens(slots: int, questions: list[tuple[str, int]], order: list[int]) -> None:
    assert order_of_first_tokens(questions, slots=slots) == order


def test_long_answers_count_too() -> None:
    # One slot; a has answers of 40 tokens, b has prompts of 40: each gets as many.
    scheduler = scheduler_of(SummingEngine(slots=1))
    ends: list[str] = []

    class Ending(Heard):
        def ended(self, ended: object) -> None:
            ends.append(self.tenant)

        tenant = ""

    for tenant, length, count in [("a", 1, 40), ("b", 40, 1)]:
        for _ in range(10):
            heard = Ending()
            heard.tenant = tenant
            scheduler.submit(ask([1] * length, count, tenant=tenant), heard)
    finish(scheduler)
    assert Counter(ends[:10]) == {"a": 5, "b": 5}


def test_a_book_is_read_on_however_many_questions_come() -> None:
    engine = SummingEngine(slots=4)
    scheduler = scheduler_of(engine, prefill_tokens_a_turn=8)
    book = Heard()
    scheduler.submit(ask([7] * 800, 1), book)  # 100 pieces
    questions = turns = 0
    while not book.tokens:
        scheduler.submit(ask([questions % 256] * 16, 1), Heard())
        questions += 1
        scheduler.turn()
        turns += 1
        assert turns < 1000
    assert turns <= 201  # every other piece, to the last
    finish(scheduler)


def test_a_flood_of_one_tenant_does_not_starve_another() -> None:
    drawn = random.Random(2)
    scheduler = scheduler_of(SummingEngine(slots=2), queue=10_000)
    for _ in range(500):
        scheduler.submit(ask([1] * drawn.randint(1, 60), drawn.randint(1, 20), tenant="flood"), Heard())
    for _ in range(10):
        scheduler.turn()
    heard = Heard()
    scheduler.submit(ask([2] * 10, 2, tenant="one"), heard)
    turns = 0
    while heard.end is None:
        scheduler.turn()
        turns += 1
    # A slot is free behind at most 20 tokens and 60 / 16 pieces of two prompts; then it is read and answered.
    assert turns <= 20 + 8 + 3
    scheduler.cut_off()
    finish(scheduler)


def test_the_summing_engine_hears_pieces_of_tenants_by_turns() -> None:
    slots_read: list[int] = []
    engine = SummingEngine(watch=lambda call, slots: slots_read.extend(slots) if call is Call.PREFILL else None)
    scheduler = scheduler_of(engine, prefill_tokens_a_turn=8)
    listeners = {tenant: Heard() for tenant in "abc"}
    for tenant, heard in listeners.items():
        scheduler.submit(ask([3] * 80, 1, tenant=tenant), heard)
    finish(scheduler)
    assert slots_read == [1, 2, 3] * 10
    assert {tuple(heard.tokens) for heard in listeners.values()} == {(summed([3] * 80) % 256,)}
