"""The scheduler with a cache: what is read, what is kept, and that answers are the same as without."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from inference.engine.abstract_engine import Snapshot
from inference.engine.sampling_parameters import SamplingParameters
from inference.scheduling.generation import Reason
from inference.state_cache.hash_chain import HashChain
from inference.state_cache.state_cache import MissReason
from inference.testing import Call, Fault, SummingEngine
from tests.inference.scheduling.answers import Heard, ask, cache_of, check, finish, scheduler_of

BOOK = list(range(40))


def cached(heard: Heard) -> int:
    """The tokens of a prompt that came from a kept state."""
    assert heard.end is not None
    return heard.end.cached_tokens


@pytest.mark.parametrize(
    ("first", "second", "tokens"),
    [
        (BOOK, BOOK, 32),  # 40 is the end, where nothing is left to read
        (BOOK, BOOK[:39], 32),
        (BOOK, BOOK[:33], 32),
        (BOOK, BOOK[:32], 0),  # only the place 32 was kept
        (BOOK, [*BOOK, 1, 2, 3], 32),
        (BOOK[:7], BOOK, 0),
        (BOOK[:8], BOOK, 0),
        (BOOK[:9], BOOK, 8),
        (BOOK, [99, *BOOK[1:]], 0),
        (BOOK, [*BOOK[:31], 99, *BOOK[32:]], 0),
        (BOOK, BOOK[1:], 0),
    ],
)
def test_the_second_prompt_starts_where_the_first_was_kept(first: list[int], second: list[int], tokens: int) -> None:
    engine = SummingEngine(grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine))
    for prompt, expected in [(first, 0), (second, tokens)]:
        heard, generation = Heard(), ask(prompt, 10)
        engine.read_tokens = 0
        scheduler.submit(generation, heard)
        finish(scheduler)
        check(heard, generation)
        assert cached(heard) == expected
        assert engine.read_tokens == len(prompt) - expected
    statistics = scheduler.statistics()
    assert statistics.cached_tokens == tokens
    assert statistics.restores == (tokens > 0)
    assert statistics.cache is not None
    assert statistics.cache.saved_tokens == tokens


def test_a_conversation_reads_each_turn_once() -> None:
    engine = SummingEngine(grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine))
    prompt = list(range(100, 130))
    counts = []
    for _ in range(6):
        heard, generation = Heard(), ask(prompt, 9, turn_ends=(30,))
        scheduler.submit(generation, heard)
        finish(scheduler)
        check(heard, generation)
        counts.append((len(prompt), cached(heard)))
        prompt = [*prompt, *heard.tokens, 7, 7, 7]
    # The last place on the grid before the end of the prompt before: what was generated is read before it is kept.
    assert counts == [(30, 0), (42, 24), (54, 40), (66, 48), (78, 64), (90, 72)]


def test_the_end_of_a_turn_is_kept_for_who_goes_on_differently() -> None:
    engine = SummingEngine(grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine))
    system = list(range(200, 219))
    for question, expected in [([1] * 20, 0), ([2] * 30, 16), ([3] * 5, 16)]:
        heard = Heard()
        scheduler.submit(ask(system + question, 3, turn_ends=(19,)), heard)
        finish(scheduler)
        assert cached(heard) == expected


def test_the_third_starts_where_the_first_two_parted() -> None:
    engine = SummingEngine(grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine))
    for question, expected in [([1] * 20, 0), ([2] * 30, 0), ([3] * 5, 16)]:
        heard = Heard()
        scheduler.submit(ask(BOOK[:19] + question, 3), heard)
        finish(scheduler)
        assert cached(heard) == expected


def test_of_eight_answers_to_one_prompt_one_reads_it() -> None:
    engine = SummingEngine(slots=8, grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine), prefill_tokens_a_turn=8)
    asked = [ask(BOOK, 10, parameters=SamplingParameters(seed=5, draw=draw)) for draw in range(8)]
    listeners = [Heard() for _ in asked]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    finish(scheduler)
    for heard, generation in zip(listeners, asked, strict=True):
        check(heard, generation)
    assert [cached(heard) for heard in listeners] == [0] + [32] * 7
    assert engine.read_tokens == 40 + 7 * 8
    assert engine.calls[Call.SNAPSHOT] == 1


@pytest.mark.parametrize("how", ["cancelled", "raises"])
def test_who_waits_for_one_that_ends_early_reads_for_itself(how: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    engine = SummingEngine(slots=4, grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine), prefill_tokens_a_turn=8)
    listeners = [Heard() for _ in range(4)]
    tickets = [scheduler.submit(ask(BOOK, 10), heard) for heard in listeners]
    scheduler.turn()
    assert engine.calls[Call.ADMIT] == 1
    if how == "cancelled":
        scheduler.cancel(tickets[2])
        scheduler.cancel(tickets[0])
    else:
        engine.faults.append(Fault(call=Call.PREFILL, slot=1))
    finish(scheduler)
    reasons = [heard.reason for heard in listeners]
    if how == "cancelled":
        assert reasons == [Reason.CANCELLED, Reason.LENGTH, Reason.CANCELLED, Reason.LENGTH]
        check(listeners[3], ask(BOOK, 10))
    else:
        assert reasons == [Reason.FAILED] * 4
    assert engine.free_slots() == [1, 2, 3, 4]


def test_two_that_read_the_same_keep_it_once_and_one_that_leaves_breaks_no_promise_of_the_other() -> None:
    engine = SummingEngine(slots=4, grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine), prefill_tokens_a_turn=16)
    listeners = [Heard() for _ in range(4)]
    # Scored prompts are read whole: these three wait for nobody.
    tickets = [scheduler.submit(ask(BOOK, 1, score_prompt=True), heard) for heard in listeners[:3]]
    scheduler.turn()
    scheduler.cancel(tickets[1])
    scheduler.turn()
    scheduler.submit(ask(BOOK, 1), listeners[3])
    finish(scheduler)
    assert [cached(heard) for heard in listeners] == [0, 0, 0, 32]
    assert engine.calls[Call.SNAPSHOT] == 1


def test_where_nothing_is_kept_nobody_waits_for_it_twice() -> None:
    engine = SummingEngine(slots=4, grid=8, state_bytes=100)
    scheduler = scheduler_of(engine, cache=cache_of(engine, capacity=99), prefill_tokens_a_turn=8)
    listeners = [Heard() for _ in range(4)]
    for heard in listeners:
        scheduler.submit(ask(BOOK, 1), heard)
    turns = finish(scheduler)
    assert [cached(heard) for heard in listeners] == [0] * 4
    assert turns == 4 * 5
    assert engine.calls[Call.SNAPSHOT] == 1


def test_each_waits_only_for_the_place_that_it_begins_with() -> None:
    engine = SummingEngine(slots=4, grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine), prefill_tokens_a_turn=8)
    first = ask(list(range(80)), 1, turn_ends=(16,))
    short, long, other = Heard(), Heard(), Heard()
    scheduler.submit(first, Heard())
    scheduler.submit(ask([*range(16), 200], 1), short)
    scheduler.submit(ask([*range(72), 200], 1), long)
    scheduler.submit(ask([*range(8), 200], 1), other)
    finish(scheduler)
    assert (cached(short), cached(long), cached(other)) == (16, 72, 0)
    assert engine.read_tokens == 80 + 1 + 1 + 9
    times = [heard.end.timings.ended for heard in (short, other, long) if heard.end is not None]
    assert times == sorted(times)


def test_what_others_wait_for_is_read_before_longer_prompts() -> None:
    engine = SummingEngine(slots=4, grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine), prefill_tokens_a_turn=8)
    scheduler.submit(ask([9] * 400, 1), Heard())  # the oldest: gets every other piece
    scheduler.submit(ask([*range(16), *[8] * 384], 1, turn_ends=(16,)), Heard())
    question = Heard()
    scheduler.submit(ask([*range(16), 200], 1), question)
    scheduler.submit(ask([7] * 200, 1), Heard())  # less than the second has left, but nobody waits for it
    turns = 0
    while question.end is None:
        scheduler.turn()
        turns += 1
    assert turns <= 6  # 3 pieces, every other one
    scheduler.cut_off()
    finish(scheduler)


@pytest.mark.parametrize(
    "changes", [{"tenant": "b"}, {"cache_salt": "s"}, {"tenant": "as", "cache_salt": ""}, {"score_prompt": True}]
)
def test_nothing_is_shared_across_tenants_and_salts_and_scored_prompts_are_read(changes: dict[str, object]) -> None:
    engine = SummingEngine(grid=8)
    scheduler = scheduler_of(engine, cache=cache_of(engine))
    first = ask(BOOK, 3, tenant="a", cache_salt="")
    for generation in (first, replace(first, **changes)):  # type: ignore[arg-type]
        heard = Heard()
        scheduler.submit(generation, heard)
        finish(scheduler)
        check(heard, generation)
        assert cached(heard) == 0
    assert engine.read_tokens == 80


def test_a_damaged_state_is_thrown_away_and_the_prompt_is_read(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    engine = SummingEngine(grid=8)
    cache = cache_of(engine)
    scheduler = scheduler_of(engine, cache=cache)
    generation = ask(BOOK, 5)
    chain = cache.chain(generation)
    cache.put(chain, Snapshot(position=32, arrays=(12345,), nbytes=10, digest="of another"))
    for expected in (0, 32):
        heard = Heard()
        scheduler.submit(generation, heard)
        finish(scheduler)
        check(heard, generation)
        assert cached(heard) == expected
    statistics = cache.statistics()
    assert (statistics.hits, statistics.misses[MissReason.DAMAGED], statistics.saved_tokens) == (1, 1, 32)


def test_the_cache_only_gets_what_was_prefilled(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SummingEngine(grid=8)
    cache = cache_of(engine)
    kept: list[int] = []
    put = cache.put

    def watched(chain: HashChain, snapshot: Snapshot) -> None:
        assert snapshot.position < chain.length
        kept.append(snapshot.position)
        put(chain, snapshot)

    monkeypatch.setattr(cache, "put", watched)
    scheduler = scheduler_of(engine, cache=cache)
    scheduler.submit(ask([1] * 12, 60), Heard())
    finish(scheduler)
    assert kept == [8]


def test_grids_must_match() -> None:
    with pytest.raises(ValueError, match="its grid is 16; that of the engine is 8"):
        scheduler_of(SummingEngine(grid=8), cache=cache_of(SummingEngine(grid=16)))
