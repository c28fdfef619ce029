"""How answers end, and what is heard of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from inference.engine.abstract_engine import Choice
from inference.engine.sampling_parameters import SamplingParameters
from inference.scheduling.generation import Ended, Reason, Timings
from inference.testing import SummingEngine, answer
from tests.inference.scheduling.answers import GREEDY, Heard, ask, check, finish, scheduler_of

# 5, 2, 7 is answered by these: the first three on paper in test_summing_engine.py.
RIGHT = answer([5, 2, 7], 12, GREEDY)


@pytest.mark.parametrize(
    ("changes", "enough", "count", "reason"),
    [
        ({"max_tokens": 3}, None, 3, Reason.LENGTH),
        ({"max_tokens": 1}, None, 1, Reason.LENGTH),
        ({"max_tokens": 0}, None, 0, Reason.LENGTH),
        ({"max_tokens": 12, "stop_tokens": frozenset({125})}, None, 2, Reason.STOP),
        ({"max_tokens": 12, "stop_tokens": frozenset({41, 103})}, None, 1, Reason.STOP),
        ({"max_tokens": 12, "stop_tokens": frozenset({41, 103}), "min_tokens": 1}, None, 3, Reason.STOP),
        ({"max_tokens": 12, "stop_tokens": frozenset({41, 125}), "min_tokens": 4}, None, 5, Reason.STOP),
        ({"max_tokens": 12, "stop_tokens": frozenset({41, 125}), "min_tokens": 5}, None, 12, Reason.LENGTH),
        ({"max_tokens": 2, "stop_tokens": frozenset({125})}, None, 2, Reason.STOP),
        ({"max_tokens": 12}, 4, 4, Reason.STOP),
        ({"max_tokens": 4}, 4, 4, Reason.STOP),
        ({"max_tokens": 12}, 1, 1, Reason.STOP),
    ],
)
def test_an_answer_ends_where_it_should(
    changes: dict[str, Any], enough: int | None, count: int, reason: Reason
) -> None:
    assert RIGHT[:5] == [41, 125, 103, 92, 125]
    assert not {41, 125} & set(RIGHT[5:])
    engine = SummingEngine()
    scheduler = scheduler_of(engine)
    heard = Heard(enough=enough)
    scheduler.submit(replace(ask([5, 2, 7], 0), **changes), heard)
    finish(scheduler)
    assert heard.tokens == RIGHT[:count]
    assert heard.reason is reason
    assert heard.end is not None
    assert heard.end.generated_tokens == count
    assert len(engine.free_slots()) == 4


@pytest.mark.parametrize(("length", "count"), [(14, 2), (15, 1), (16, 0)])
def test_a_full_context_ends_an_answer(length: int, count: int) -> None:
    scheduler = scheduler_of(SummingEngine(context=16))
    heard = Heard()
    scheduler.submit(ask([3] * length, 100), heard)
    finish(scheduler)
    assert (heard.reason, heard.tokens) == (Reason.LENGTH, answer([3] * length, count, GREEDY))


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ([], "has 0 tokens; it has 1 to 16, which is the context"),
        ([1] * 17, "has 17 tokens"),
        ([1, 256], "a token outside of 0 to 255"),
        ([-1], "a token outside"),
    ],
)
def test_a_prompt_that_no_slot_can_read_is_refused_at_once(prompt: list[int], words: str) -> None:
    scheduler = scheduler_of(SummingEngine(context=16))
    with pytest.raises(ValueError, match=words):
        scheduler.submit_all([(ask([1], 1), Heard()), (ask(prompt, 1), Heard())])
    assert scheduler.statistics().waiting == 0


@pytest.mark.parametrize("max_tokens", [0, 2])
def test_a_scored_prompt_is_heard_piece_by_piece_before_the_answer(max_tokens: int) -> None:
    engine = SummingEngine(grid=2)
    scheduler = scheduler_of(engine)
    heard = Heard()
    parameters = SamplingParameters(temperature=0, logprobs=1)
    scheduler.submit(ask([5, 8, 7], max_tokens, parameters=parameters, score_prompt=True), heard)
    finish(scheduler)
    # Behind 5 the state is 6, behind 8 it is 127: 8 is 2 places behind, 7 is 136.
    assert heard.scores == [
        Choice(token=8, logprob=-3 * math.log(2), top=((6, -math.log(2)),)),
        Choice(token=7, logprob=-137 * math.log(2), top=((127, -math.log(2)),)),
    ]
    assert heard.tokens == answer([5, 8, 7], max_tokens, GREEDY)
    assert heard.reason is Reason.LENGTH


def test_what_happened_when_is_told() -> None:
    seconds = iter(range(1000))
    scheduler = scheduler_of(SummingEngine(), clock=lambda: float(next(seconds)))
    ended: list[Ended] = []
    listeners = [Heard(), Heard()]
    for listener in listeners:
        scheduler.submit(ask(list(range(20)), 3), listener)
    while scheduler.turn():
        pass
    ended = [listener.end for listener in listeners if listener.end is not None]
    for end in ended:
        timings = end.timings
        assert timings.admitted is not None
        assert timings.first_token is not None
        assert timings.submitted < timings.admitted < timings.first_token < timings.ended
    assert len(ended) == 2


def test_what_never_happened_has_no_time() -> None:
    scheduler = scheduler_of(SummingEngine(slots=1), clock=lambda: 7.0)
    running, waiting = Heard(), Heard()
    tickets = [scheduler.submit(ask([1] * 40, 3), running), scheduler.submit(ask([1], 3), waiting)]
    scheduler.turn()
    for ticket in tickets:
        scheduler.cancel(ticket)
    finish(scheduler)
    assert running.end == Ended(
        reason=Reason.CANCELLED,
        cached_tokens=0,
        generated_tokens=0,
        timings=Timings(submitted=7.0, admitted=7.0, first_token=None, ended=7.0),
    )
    assert waiting.end is not None
    assert waiting.end.timings == Timings(submitted=7.0, admitted=None, first_token=None, ended=7.0)


def test_seeds_and_draws_are_kept_apart() -> None:
    scheduler = scheduler_of(SummingEngine(slots=2))
    asked = [
        ask([5, 2, 7], 5, parameters=SamplingParameters(seed=seed, draw=draw)) for seed in (0, 7) for draw in (0, 1)
    ]
    listeners = [Heard() for _ in asked]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    finish(scheduler)
    for heard, generation in zip(listeners, asked, strict=True):
        check(heard, generation)
    assert len({tuple(heard.tokens) for heard in listeners}) == 4
