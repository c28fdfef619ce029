"""An engine on several devices: who stands where, and that pieces are read side by side, within a budget of each."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from inference.engine.abstract_engine import Limits, SlotError
from inference.engine.sampling_parameters import SamplingParameters
from inference.scheduling.devices import Devices
from inference.scheduling.generation import Reason
from inference.scheduling.ticket import Ticket, new_ticket
from inference.testing import Call, Fault, SummingEngine, answer
from tests.inference.scheduling.answers import GREEDY, Heard, ask, cache_of, check, finish, scheduler_of


def limits(slots: int, devices: int) -> Limits:
    """Of an engine with pieces of 8 tokens."""
    return Limits(slots=slots, devices=devices, grid=8, context=4096, vocab_size=256, state_bytes=1)


def reading(length: int) -> Ticket:
    """An answer whose prompt is read."""
    return new_ticket(ask([1] * length, 1), Heard(), 0.0, limits(1, 1), None)


def test_slots_are_taken_where_the_most_are_free() -> None:
    devices = Devices(limits(6, 3), range(1, 7))
    assert [devices.take() for _ in range(6)] == [1, 3, 5, 2, 4, 6]
    assert not devices.has_room
    for slot in (4, 3, 5):
        devices.give(slot)
    assert [devices.take() for _ in range(3)] == [3, 4, 5]  # the second has two; what was left last is warm


def test_of_equally_free_devices_it_is_the_one_with_the_least_to_read() -> None:
    devices = Devices(limits(6, 3), range(1, 7))
    book, question = reading(400), reading(9)
    for ticket in (book, question):
        devices.order(devices.take()).add(ticket)  # in 1 and 3
    assert devices.take() == 5
    assert devices.take() == 6  # nothing is read there
    assert devices.take() == 4
    book.position = 399
    devices.give(4)
    assert devices.take() == 2
    assert [bool(order) for order in devices.orders] == [True, True, False]


@pytest.mark.parametrize("devices", [2, 4])
def test_pieces_of_different_devices_are_begun_before_one_is_waited_for(devices: int) -> None:
    calls: list[tuple[Call, tuple[int, ...]]] = []
    engine = SummingEngine(slots=devices, devices=devices, watch=lambda call, slots: calls.append((call, slots)))
    scheduler = scheduler_of(engine, prefill_tokens_a_turn=8)
    asked = [ask([number] * 24, 4) for number in range(devices)]
    listeners = [Heard() for _ in asked]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    scheduler.turn()
    of_device = [(slot,) for slot in range(1, devices + 1)]
    assert [slots for call, slots in calls if call is Call.ADMIT] == of_device
    assert [each for each in calls if each[0] is not Call.ADMIT] == [
        *((Call.BEGIN_PREFILL, slots) for slots in of_device),
        *((Call.PREFILL, slots) for slots in of_device),
    ]
    assert 1 + finish(scheduler) == 5  # three of a piece each, the last of which makes two tokens, and two more tokens
    for heard, generation in zip(listeners, asked, strict=True):
        check(heard, generation)


def test_a_piece_that_is_alone_is_read_at_once() -> None:
    engine = SummingEngine(slots=4, devices=2)
    scheduler = scheduler_of(engine)
    scheduler.submit(ask([1] * 40, 1), Heard())
    finish(scheduler)
    assert (engine.calls[Call.PREFILL], engine.calls[Call.BEGIN_PREFILL]) == (5, 0)


def test_each_device_has_a_budget_of_its_own() -> None:
    slots_read: Counter[int] = Counter()
    engine = SummingEngine(
        slots=6, devices=3, watch=lambda call, slots: slots_read.update(slots if call is Call.PREFILL else ())
    )
    scheduler = scheduler_of(engine, prefill_tokens_a_turn=24)
    for length in (80, 80, 40):
        scheduler.submit(ask([length] * length, 1), Heard())
    scheduler.turn()
    assert slots_read == {1: 3, 3: 3, 5: 3}
    assert scheduler.statistics().prefilled_tokens == 9 * 8
    scheduler.turn()
    assert slots_read == {1: 6, 3: 6, 5: 5}  # it has no more


def test_nobody_waits_on_one_device_for_what_is_read_on_another() -> None:
    engine = SummingEngine(slots=4, devices=2)
    scheduler = scheduler_of(engine, prefill_tokens_a_turn=8)
    heard = {name: Heard() for name in ("book", "book beside", "question", "question beside")}
    scheduler.submit(ask([1] * 800, 1, tenant="a"), heard["book"])  # in slot 1
    scheduler.submit(ask([2] * 800, 1, tenant="a"), heard["book beside"])  # in slot 3
    scheduler.submit(ask([3] * 32, 1, tenant="b"), heard["question"])  # in slot 2
    scheduler.submit(ask([4] * 32, 1, tenant="a"), heard["question beside"])  # in slot 4
    turns = 0
    while not (heard["question"].tokens and heard["question beside"].tokens):
        scheduler.turn()
        turns += 1
    # b is given every other piece of its device, and the question of a is so beside the book, though the books of a
    # are read on both devices.
    assert turns <= 8
    finish(scheduler)


def test_an_answer_that_is_cancelled_is_not_read_beside_others() -> None:
    engine = SummingEngine(slots=2, devices=2)
    scheduler = scheduler_of(engine)
    kept, gone = Heard(), Heard()
    first = ask([1] * 8, 1)
    scheduler.submit(first, Heard(on_token=lambda _: scheduler.cancel(ticket)))
    ticket = scheduler.submit(ask([2] * 80, 1), gone)
    scheduler.submit(ask([3] * 80, 1), kept)
    finish(scheduler)
    assert (gone.reason, kept.reason) == (Reason.CANCELLED, Reason.LENGTH)
    assert engine.read_tokens == 8 + 8 + 80  # of the cancelled one the piece that was begun before
    assert sorted(engine.free_slots()) == [1, 2]


def test_of_many_answers_to_one_prompt_on_all_devices_one_reads_it() -> None:
    engine = SummingEngine(slots=8, devices=4)
    scheduler = scheduler_of(engine, cache=cache_of(engine))
    prompt = list(range(65))
    asked = [ask(prompt, 9, parameters=SamplingParameters(temperature=1, seed=3, draw=draw)) for draw in range(8)]
    listeners = [Heard() for _ in asked]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    finish(scheduler)
    for heard, generation in zip(listeners, asked, strict=True):
        check(heard, generation)
    assert engine.read_tokens == 65 + 7


@pytest.mark.parametrize("call", [Call.BEGIN_PREFILL, Call.PREFILL])
def test_an_engine_that_fails_between_pieces_gives_all_slots_back(call: Call, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(100)
    engine = SummingEngine(slots=3, devices=3, faults=[Fault(call=call, turn=2)])
    scheduler = scheduler_of(engine)
    asked = [ask([number] * 20, 3) for number in range(5)]
    listeners = [Heard() for _ in asked]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    finish(scheduler)
    assert [heard.reason for heard in listeners] == [Reason.FAILED] * 3 + [Reason.LENGTH] * 2
    assert sorted(engine.free_slots()) == [1, 2, 3]
    assert scheduler.failed is None


def test_a_prompt_without_numbers_fails_alone_beside_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(100)
    engine = SummingEngine(slots=3, devices=3, faults=[Fault(call=Call.PREFILL, slot=2, turn=5, no_numbers=True)])
    scheduler = scheduler_of(engine)
    asked = [ask([number] * 20, 3) for number in range(3)]
    listeners = [Heard() for _ in asked]
    scheduler.submit_all(zip(asked, listeners, strict=True))
    finish(scheduler)
    assert [heard.reason for heard in listeners] == [Reason.LENGTH, Reason.FAILED, Reason.LENGTH]
    for heard, generation in zip(listeners, asked, strict=True):
        check(heard, generation)


def test_the_summing_engine_holds_to_what_was_begun() -> None:
    engine = SummingEngine(slots=2, devices=2, grid=4)
    engine.admit(1, GREEDY, prompt=[1] * 9, start=None)
    engine.begin_prefill(1)
    for refused in (lambda: engine.begin_prefill(1), lambda: engine.snapshot(1)):
        with pytest.raises(SlotError, match="slot 1: a piece of its prompt is begun, and not waited for"):
            refused()
    with pytest.raises(SlotError, match="its prompt is not read yet"):
        engine.decode([1])
    assert engine.prefill(1).position == 4
    engine.begin_prefill(1)
    engine.release(1)
    assert engine.free_slots() == [1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_the_same_on_any_number_of_devices(seed: int) -> None:
    drawn = random.Random(seed)
    asked = [
        ask(
            [drawn.randrange(256) for _ in range(drawn.randint(1, 70))],
            drawn.randint(1, 20),
            parameters=SamplingParameters(temperature=drawn.choice([0, 1]), seed=drawn.randrange(9)),
            tenant=drawn.choice("ab"),
        )
        for _ in range(60)
    ]
    for devices in (1, 2, 6):
        engine = SummingEngine(slots=6, devices=devices)
        scheduler = scheduler_of(engine, cache=cache_of(engine))
        listeners = [Heard() for _ in asked]
        order = drawn.sample(range(60), 60)
        for number in order:
            scheduler.submit(asked[number], listeners[number])
            for _ in range(drawn.randrange(3)):
                scheduler.turn()
        finish(scheduler)
        for heard, generation in zip(listeners, asked, strict=True):
            assert heard.tokens == answer(generation.prompt, generation.max_tokens, generation.parameters)
        assert engine.read_tokens == scheduler.statistics().prefilled_tokens
