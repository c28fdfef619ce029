"""What an engine or a listener does wrong hurts the answers it concerns, and nobody else."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from inference.engine.abstract_engine import Choice, Snapshot
from inference.engine.sampling_parameters import SamplingParameters
from inference.scheduling.admission import DeadError
from inference.scheduling.generation import Ended, Reason
from inference.scheduling.scheduler import MOST_FAILURES
from inference.scheduling.turns import Turn
from inference.testing import Call, Fault, SummingEngine
from tests.inference.scheduling.answers import Heard, ask, cache_of, check, finish, scheduler_of


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Failures are logged with their tracebacks."""
    caplog.set_level(logging.CRITICAL + 1)


@pytest.mark.parametrize("call", [Call.ADMIT, Call.PREFILL, Call.SNAPSHOT, Call.DECODE])
def test_an_engine_that_fails_once_fails_what_is_in_it_and_goes_on(call: Call) -> None:
    engine = SummingEngine(slots=2, grid=8, faults=[Fault(call=call, turn=2)])
    scheduler = scheduler_of(engine, cache=cache_of(engine))
    asked = [ask([number] * 20, 10) for number in range(6)]
    listeners = [Heard() for _ in asked]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    finish(scheduler)
    reasons = [heard.reason for heard in listeners]
    assert reasons == [Reason.FAILED] * 2 + [Reason.LENGTH] * 4
    for heard, generation in zip(listeners, asked, strict=True):
        check(heard, generation)
    assert engine.free_slots() == [1, 2]
    assert scheduler.failed is None
    assert scheduler.statistics().engine_failures == 1


@pytest.mark.parametrize("call", [Call.PREFILL, Call.DECODE])
def test_a_slot_without_numbers_fails_its_answer_alone(call: Call) -> None:
    engine = SummingEngine(slots=3, grid=8, faults=[Fault(call=call, slot=2, turn=5, no_numbers=True)])
    cache = cache_of(engine)
    scheduler = scheduler_of(engine, cache=cache, prefill_tokens_a_turn=24)
    asked = [ask([number] * 20, 10) for number in range(4)]
    listeners = [Heard() for _ in asked]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    finish(scheduler)
    assert [heard.reason for heard in listeners] == [Reason.LENGTH, Reason.FAILED, Reason.LENGTH, Reason.LENGTH]
    for heard, generation in zip(listeners, asked, strict=True):
        check(heard, generation)
    assert engine.free_slots() == [1, 2, 3]
    assert scheduler.statistics().engine_failures == 0


@pytest.mark.parametrize("call", [Call.ADMIT, Call.PREFILL, Call.DECODE])
def test_an_engine_that_always_fails_is_dead(call: Call) -> None:
    engine = SummingEngine(slots=1, grid=8, faults=[Fault(call=call)])
    scheduler = scheduler_of(engine)
    listeners = [Heard() for _ in range(MOST_FAILURES + 2)]
    for heard in listeners:
        scheduler.submit(ask([1] * 30, 10), heard)
    finish(scheduler)
    assert {heard.reason for heard in listeners} == {Reason.FAILED}
    assert scheduler.failed is not None
    assert scheduler.failed.startswith("the engine is dead: it failed 3 times in a row; last: EngineFaultError: ")
    assert engine.calls[call] == MOST_FAILURES
    with pytest.raises(DeadError, match="the engine is dead"):
        scheduler.submit(ask([1], 1), Heard())
    assert not scheduler.turn()


@pytest.mark.parametrize(("call", "count"), [(Call.DECODE, 10), (Call.PREFILL, 1)])
def test_an_engine_that_fails_now_and_then_is_not_dead(call: Call, count: int) -> None:
    engine = SummingEngine(slots=1, grid=32, faults=[Fault(call=call, turn=turn) for turn in range(3, 60, 3)])
    scheduler = scheduler_of(engine)
    for _ in range(20):
        scheduler.submit(ask([1] * 30, count), Heard())
    finish(scheduler)
    assert scheduler.failed is None
    assert scheduler.statistics().engine_failures > MOST_FAILURES
    assert engine.free_slots() == [1]


def test_an_engine_that_keeps_its_slots_is_dead() -> None:
    engine = SummingEngine(slots=2, faults=[Fault(call=Call.RELEASE, slot=2)])
    scheduler = scheduler_of(engine)
    listeners = [Heard() for _ in range(4)]
    for heard in listeners:
        scheduler.submit(ask([1], 3), heard)
    finish(scheduler)
    assert all(heard.end is not None for heard in listeners)
    assert listeners[1].tokens == listeners[0].tokens
    assert scheduler.failed is not None
    assert "it does not give its slots back" in scheduler.failed


def test_what_an_engine_loses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SummingEngine(slots=2, faults=[Fault(call=Call.PREFILL, turn=1)])
    scheduler = scheduler_of(engine)
    monkeypatch.setattr(engine, "free_slots", lambda: [1])
    heard = Heard()
    scheduler.submit(ask([1], 3), heard)
    finish(scheduler)
    assert heard.reason is Reason.FAILED
    assert scheduler.failed is not None
    assert "it does not give its slots back" in scheduler.failed


class Raising(Heard):
    """Raises in one of its calls."""

    where = ""

    def scored(self, scores: tuple[Choice, ...]) -> None:
        super().scored(scores)
        if self.where == "scored":
            raise ConnectionError("gone")

    def token(self, choice: Choice) -> bool:
        super().token(choice)
        if self.where == f"token {len(self.tokens)}":
            raise KeyError("gone")
        return False

    def ended(self, ended: Ended) -> None:
        super().ended(ended)
        if self.where == "ended":
            raise AssertionError("gone")


@pytest.mark.parametrize(
    ("where", "tokens", "reason"),
    [
        ("scored", 0, Reason.FAILED),
        ("token 1", 1, Reason.FAILED),
        ("token 4", 4, Reason.FAILED),
        ("ended", 10, Reason.LENGTH),
    ],
)
def test_a_listener_that_raises_hurts_itself_alone(where: str, tokens: int, reason: Reason) -> None:
    engine = SummingEngine(slots=3)
    scheduler = scheduler_of(engine)
    asked = [ask([number] * 20, 10, score_prompt=True) for number in range(4)]
    raising = Raising()
    raising.where = where
    listeners: list[Heard] = [Heard(), raising, Heard(), Heard()]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    finish(scheduler)
    assert (len(raising.tokens), raising.reason) == (tokens, reason)
    for heard, generation in zip(listeners, asked, strict=True):
        check(heard, generation)
    assert [heard.reason for heard in listeners if heard is not raising] == [Reason.LENGTH] * 3
    assert engine.free_slots() == [1, 2, 3]
    assert scheduler.statistics().listener_failures == 1
    assert scheduler.statistics().engine_failures == 0


def test_what_counts_turns_may_raise() -> None:
    def raising(turn: Turn) -> None:
        raise RuntimeError("no room for a number")

    scheduler = scheduler_of(SummingEngine(), on_turn=raising)
    heard = Heard()
    scheduler.submit(ask([1] * 30, 3), heard)
    finish(scheduler)
    assert heard.reason is Reason.LENGTH


def test_a_prompt_that_the_engine_alone_refuses_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SummingEngine()
    admit = engine.admit

    def picky(slot: int, parameters: SamplingParameters, *, prompt: Sequence[int], start: Snapshot | None) -> int:
        if prompt[0] == 1:
            raise ValueError("not this one")
        return admit(slot, parameters, prompt=prompt, start=start)

    monkeypatch.setattr(engine, "admit", picky)
    scheduler = scheduler_of(engine)
    listeners = [Heard() for _ in range(3)]
    for number, heard in enumerate(listeners):
        scheduler.submit(ask([number], 3), heard)
    finish(scheduler)
    assert [heard.reason for heard in listeners] == [Reason.LENGTH, Reason.FAILED, Reason.LENGTH]
    assert scheduler.statistics().engine_failures == 0
