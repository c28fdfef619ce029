"""An engine over eight devices: answers have the bits of an engine over one, wherever they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference.engine.abstract_engine import Choice, Limits, Prefilled, SlotError
from inference.engine.device_rows import DeviceRows
from inference.engine.engine import Engine
from inference.engine.replicated_engine import ReplicatedEngine
from inference.engine.sampling_parameters import SamplingParameters
from inference.engine.slots import FaultySlotsError
from tests.inference.engine.driving import (
    CONTEXT,
    GREEDY,
    QUICK,
    SHORT_GRID,
    answer,
    fresh_model,
    ids,
    prompt_of,
)
from tests.inference.engine.invariants import assert_sound
from training.mixers.ssd import SsdConfig
from training.model.language_model import LanguageModel

DEVICES = 8
PER_DEVICE = 2
ALL = range(1, 1 + DEVICES * PER_DEVICE)
TOKENS = 12
PROMPT = prompt_of(2 * SHORT_GRID + 9, 6)
POISON = 59
"""A token whose embedding is no number, in the model of faults."""
KINDS = {
    "greedy": SamplingParameters(temperature=0, logprobs=5),
    "drawn": SamplingParameters(temperature=0.9, top_p=0.95, seed=21, logprobs=20, presence_penalty=0.4),
    "marked": SamplingParameters(temperature=1.2, seed=8, repetition_penalty=1.3, logit_bias={4: 3.0}, logprobs=1),
}


@cache
def small_model() -> LanguageModel:
    """One layer: it is compiled nine times."""
    return fresh_model(SsdConfig(d_head=8, d_state=8, chunk=16))


@cache
def single() -> Engine:
    """Over one device, with as many slots as each of the eight has."""
    return Engine(small_model(), slots=PER_DEVICE, context=CONTEXT, grid=SHORT_GRID, compiler_options=QUICK)


@cache
def eight() -> ReplicatedEngine:
    """Over all devices."""
    return ReplicatedEngine(
        small_model(),
        devices=jax.devices(),
        slots=PER_DEVICE,
        context=CONTEXT,
        grid=SHORT_GRID,
        compiler_options=QUICK,
    )


@pytest.fixture
def engine() -> Iterator[ReplicatedEngine]:
    """Over all devices, sound and free before and behind a test."""
    yield from given_back(eight())


def given_back(engine: ReplicatedEngine) -> Iterator[ReplicatedEngine]:
    """As that of one device."""
    yield engine
    for slot in set(range(1, engine.limits.slots + 1)) - set(engine.free_slots()):
        engine.release(slot)
    for replica in engine.replicas:
        assert_sound(replica)


@cache
def alone(kind: str) -> tuple[Choice, ...]:
    """The answer of the engine over one device."""
    return tuple(answer(single(), PROMPT, KINDS[kind], tokens=TOKENS))


def read_all(engine: ReplicatedEngine, slots: Sequence[int], *, scored: bool = False) -> dict[int, list[Prefilled]]:
    """Read the prompts of all, a piece of each before the next of any; devices are begun before one is waited for."""
    pieces: dict[int, list[Prefilled]] = {slot: [] for slot in slots}
    left = list(slots)
    while left:
        for row in range(PER_DEVICE):
            beside = [slot for slot in left if (slot - 1) % PER_DEVICE == row]
            for slot in beside:
                engine.begin_prefill(slot, scored=scored)
            for slot in beside:
                pieces[slot].append(engine.prefill(slot, scored=scored))
        left = [slot for slot in left if pieces[slot][-1].choice is None]
    return pieces


def answers_of_all(engine: ReplicatedEngine, slots: Sequence[int]) -> dict[int, list[Choice]]:
    """All answers, behind prompts that were admitted."""
    got: dict[int, list[Choice]] = {}
    for slot, pieces in read_all(engine, slots).items():
        choice = pieces[-1].choice
        assert choice is not None
        got[slot] = [choice]
    for _ in range(TOKENS - 1):
        for slot, choice in engine.decode(slots).items():
            got[slot].append(choice)
    return got


@pytest.mark.parametrize("kind", list(KINDS))
def test_in_every_slot_of_eight_devices_an_answer_has_the_bits_of_one_device(
    engine: ReplicatedEngine, kind: str
) -> None:
    for slot in ALL:
        assert engine.admit(slot, KINDS[kind], prompt=PROMPT, start=None) == 0
    got = answers_of_all(engine, ALL)
    assert {slot: tuple(choices) for slot, choices in got.items()} == dict.fromkeys(ALL, alone(kind))


def test_a_state_that_was_kept_on_one_device_goes_on_on_every_other(engine: ReplicatedEngine) -> None:
    engine.admit(3, GREEDY, prompt=PROMPT, start=None)
    for _ in range(2):
        engine.prefill(3)
    kept = engine.snapshot(3)
    engine.release(3)
    single().admit(2, GREEDY, prompt=PROMPT, start=None)
    single().prefill(2)
    single().prefill(2)
    assert single().snapshot(2).digest == kept.digest
    single().release(2)
    kinds = list(KINDS)
    for slot in ALL:
        kind = kinds[slot % 3]
        assert engine.admit(slot, KINDS[kind], prompt=PROMPT, start=kept) == 2 * SHORT_GRID
    got = answers_of_all(engine, ALL)
    assert {slot: tuple(choices) for slot, choices in got.items()} == {slot: alone(kinds[slot % 3]) for slot in ALL}
    assert engine.fingerprint == single().fingerprint


def test_scores_of_a_prompt_are_the_same_on_every_device(engine: ReplicatedEngine) -> None:
    single().admit(1, KINDS["greedy"], prompt=PROMPT, start=None)
    wanted = [single().prefill(1, scored=True) for _ in range(3)]
    single().release(1)
    for slot in (1, 16):
        engine.admit(slot, KINDS["greedy"], prompt=PROMPT, start=None)
    assert read_all(engine, (1, 16), scored=True) == dict.fromkeys((1, 16), wanted)
    assert sum(len(piece.scores) for piece in wanted) == len(PROMPT) - 1


def test_what_is_on_other_devices_and_in_what_order_slots_are_named_changes_nothing(engine: ReplicatedEngine) -> None:
    for slot, kind in ((2, "greedy"), (5, "drawn"), (16, "marked")):
        engine.admit(slot, KINDS[kind], prompt=PROMPT, start=None)
    got = {slot: [pieces[-1].choice] for slot, pieces in read_all(engine, (16, 2, 5)).items()}
    picks: list[Callable[[int], list[int]]] = [lambda now: [16, 2, 5], lambda now: [5], lambda now: [2, 16]]
    for now in range(8):
        for slot, choice in engine.decode(picks[now % 3](now)).items():
            got[slot].append(choice)
        if now == 3:
            engine.admit(6, KINDS["marked"], prompt=PROMPT[:5], start=None)  # beside 5
    for slot, kind in ((2, "greedy"), (5, "drawn"), (16, "marked")):
        assert tuple(got[slot]) == alone(kind)[: len(got[slot])]
        assert len(got[slot]) > 5


def test_weights_pool_and_controls_of_each_replica_are_on_its_device(engine: ReplicatedEngine) -> None:
    engine.admit(16, GREEDY, prompt=PROMPT, start=None)
    read_all(engine, [16])
    engine.decode([16])
    for device, replica in zip(jax.devices(), engine.replicas, strict=True):
        rows = replica._device
        for array in jax.tree.leaves((rows.weights, rows.pool, rows.table.on_device(), rows._mask((1,)))):
            assert array.devices() == {device}
            assert array.committed


def test_weights_that_are_there_are_not_copied() -> None:
    arrays = jax.tree.leaves(small_model())
    held = eight().replicas[0]._device.weights
    assert [each.unsafe_buffer_pointer() for each in held] == [each.unsafe_buffer_pointer() for each in arrays]


class Waited:
    """Tokens that note when somebody waits for them."""

    def __init__(self, tokens: Any, note: Callable[[], None]) -> None:
        self._tokens, self._note = tokens, note

    def copy_to_host_async(self) -> None:
        self._tokens.copy_to_host_async()

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        self._note()
        return np.asarray(self._tokens)


@pytest.mark.parametrize("program", ["decode", "prefill"])
def test_every_device_has_work_before_one_is_waited_for(
    engine: ReplicatedEngine, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    meant = [2, 7, 16]
    for slot in meant:
        engine.admit(slot, KINDS["greedy"], prompt=PROMPT[:9], start=None)
    if program == "decode":
        read_all(engine, meant)
    events: list[str] = []
    of_rows = {id(replica._device): number for number, replica in enumerate(engine.replicas)}
    run = getattr(DeviceRows, program)

    def watched(rows: DeviceRows, given: Any) -> Any:
        device = of_rows[id(rows)]
        events.append(f"give {device}")
        chosen = run(rows, given)
        return chosen._replace(token=Waited(chosen.token, lambda: events.append(f"wait {device}")))

    monkeypatch.setattr(DeviceRows, program, watched)
    choices = engine.decode(meant) if program == "decode" else read_all(engine, meant)
    assert set(choices) == set(meant)
    steps = [event.split()[0] for event in events]
    # Slots 2 and 16 stand in second rows, and 7 in a first: read_all takes rows one after another.
    assert steps == (
        ["give"] * 3 + ["wait"] * 3 if program == "decode" else ["give", "wait", *["give"] * 2, *["wait"] * 2]
    )
    assert sorted(events) == sorted(f"{step} {device}" for step in ("give", "wait") for device in (0, 3, 7))


def test_free_slots_come_by_turns_of_the_least_busy_device(engine: ReplicatedEngine) -> None:
    assert engine.free_slots() == (*range(1, 17, 2), *range(2, 17, 2))
    for slot in (1, 2, 3, 8):
        engine.admit(slot, GREEDY, prompt=[1], start=None)
    # Of the devices the first is full, the second and the fourth have one slot left each.
    assert engine.free_slots() == (5, 9, 11, 13, 15, 4, 6, 7, 10, 12, 14, 16)
    assert engine.limits.device_of(16) == 7


def admit_1(engine: ReplicatedEngine) -> None:
    engine.admit(1, GREEDY, prompt=PROMPT, start=None)


def admit_12(engine: ReplicatedEngine) -> None:
    engine.admit(12, GREEDY, prompt=PROMPT, start=None)


def begin_12(engine: ReplicatedEngine) -> None:
    engine.begin_prefill(12)


Step = Callable[[ReplicatedEngine], Any]


@pytest.mark.parametrize(
    ("before", "call", "message"),
    [
        ((), lambda e: e.decode([0]), "slot 0: there are slots 1 to 16"),
        ((), lambda e: e.prefill(17), "slot 17: there are slots 1 to 16"),
        ((), lambda e: e.release(12), "slot 12: release is for .*; this one is free"),
        ((admit_12,), admit_12, "slot 12: admit is for a slot that is free; this one is reading its prompt"),
        ((admit_12,), lambda e: e.decode([12]), "slot 12: decode is for a slot that is answering"),
        ((admit_12, begin_12), begin_12, "slot 12: another comes behind the prefill that was begun"),
        ((admit_12, begin_12), lambda e: e.snapshot(12), "slot 12: snapshot comes behind the prefill that was begun"),
        ((admit_12, begin_12), lambda e: e.decode([12]), "slot 12: decode is for a slot that is answering"),
        ((admit_12, begin_12), lambda e: e.prefill(12, scored=True), "slot 12: the pieces .* all scored, or none"),
        ((admit_1, lambda e: read_all(e, [1])), lambda e: e.decode([1, 1]), r"slots \[1, 1\]: one of them is named"),
        ((admit_1, lambda e: read_all(e, [1])), lambda e: e.decode([1, 12]), "slot 12: decode is for a slot"),
    ],
)
def test_what_a_slot_cannot_do_is_refused_by_its_name_and_changes_nothing(
    engine: ReplicatedEngine, before: Sequence[Step], call: Step, message: str
) -> None:
    for step in before:
        step(engine)
    held = [np.asarray(array).copy() for replica in engine.replicas for array in replica.pool.state]
    with pytest.raises(SlotError, match=message):
        call(engine)
    for array, kept in zip((each for replica in engine.replicas for each in replica.pool.state), held, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_a_slot_is_released_with_a_piece_under_way_and_its_device_goes_on(engine: ReplicatedEngine) -> None:
    for slot in (11, 12):
        engine.admit(slot, KINDS["greedy"], prompt=PROMPT, start=None)
    engine.begin_prefill(12)
    engine.release(12)
    engine.admit(12, KINDS["drawn"], prompt=PROMPT, start=None)
    got = answers_of_all(engine, [11, 12])
    assert (tuple(got[11]), tuple(got[12])) == (alone("greedy"), alone("drawn"))


@pytest.mark.parametrize(
    ("devices", "message"), [(0, "devices: are .*; there is at least one"), (2, "devices: are .*each of them once")]
)
def test_devices_that_make_no_engine(devices: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReplicatedEngine(small_model(), devices=[jax.devices()[0]] * devices, slots=1, context=CONTEXT, grid=64)


@pytest.mark.parametrize(("slots", "devices"), [(4, 0), (4, 3), (2, 4)])
def test_slots_are_the_same_number_on_each_device(slots: int, devices: int) -> None:
    with pytest.raises(ValueError, match=f"devices: {slots} slots are not the same number on each of {devices}"):
        Limits(slots=slots, devices=devices, grid=64, context=64, vocab_size=8, state_bytes=1)


LOWER_EVENT = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"


@contextmanager
def heard() -> Iterator[Counter[str]]:
    """How many programs JAX lowers and compiles meanwhile."""
    events: Counter[str] = Counter()

    def hear(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event in (LOWER_EVENT, COMPILE_EVENT):
            events[event] += 1

    jax.monitoring.register_event_duration_secs_listener(hear)
    yield events
    jax.monitoring.unregister_event_duration_listener(hear)


def test_a_pattern_that_is_repeated_in_another_dtype_is_traced_once_and_compiled_for_each_device() -> None:
    model = fresh_model(SsdConfig(d_head=8, d_state=8, chunk=16), repeats=2)
    made = ReplicatedEngine(
        model, devices=jax.devices()[:2], slots=1, context=200, grid=64, dtype="bfloat16", compiler_options=QUICK
    )
    one = Engine(model, slots=1, context=200, grid=64, dtype="bfloat16", compiler_options=QUICK)
    with heard() as events:
        made.compile()
    assert made.compilations == 2 * (3 + 5)  # see test_compilations.py; the pool is made as the engine is
    assert events == {LOWER_EVENT: 7, COMPILE_EVENT: 2 * 7}
    wanted = answer(one, PROMPT[:70])
    for slot in (1, 2):
        made.admit(slot, GREEDY, prompt=PROMPT[:70], start=None)
        made.prefill(slot)
    first = {slot: made.prefill(slot).choice for slot in (1, 2)}
    assert first == dict.fromkeys((1, 2), wanted[0])
    for choice in wanted[1:]:
        assert made.decode([1, 2]) == {1: choice, 2: choice}
    assert made.fingerprint == one.fingerprint


@pytest.fixture(scope="module")
def poisoned() -> ReplicatedEngine:
    """Over a model with output weights of its own, so that only who reads the token is hit."""
    model = fresh_model(SsdConfig(d_head=8, d_state=8, chunk=16))
    head = type(model.embedding)(weight=model.embedding.weight)
    spoilt = eqx.tree_at(lambda each: each.embedding.weight, model, model.embedding.weight.at[POISON].set(jnp.nan))
    spoilt = eqx.tree_at(lambda each: each.lm_head, spoilt, head, is_leaf=lambda leaf: leaf is None)
    return ReplicatedEngine(
        spoilt, devices=jax.devices()[:3], slots=PER_DEVICE, context=200, grid=64, compiler_options=QUICK
    )


@pytest.fixture
def faulty(poisoned: ReplicatedEngine) -> Iterator[ReplicatedEngine]:
    """With every slot free."""
    yield from given_back(poisoned)


SAFE = [token for token in prompt_of(90, 2) if token != POISON]
ONTO_POISON = SamplingParameters(temperature=0, logit_bias={POISON: 100.0})


def safe_answer(engine: ReplicatedEngine, slot: int, count: int) -> list[Choice]:
    """What a slot answers with nobody beside it."""
    engine.admit(slot, GREEDY, prompt=SAFE, start=None)
    choices = [read_all(engine, [slot])[slot][-1].choice]
    choices += [engine.decode([slot])[slot] for _ in range(count - 1)]
    engine.release(slot)
    return [choice for choice in choices if choice is not None]


def test_rows_that_become_no_numbers_on_two_devices_are_named_and_the_others_have_their_tokens(
    faulty: ReplicatedEngine,
) -> None:
    wanted = safe_answer(faulty, 1, 4)
    for slot in range(1, 7):
        faulty.admit(slot, ONTO_POISON if slot in (2, 5) else GREEDY, prompt=SAFE, start=None)
    got = {slot: [pieces[-1].choice] for slot, pieces in read_all(faulty, range(1, 7)).items()}
    with pytest.raises(FaultySlotsError, match="slot 2, 5: the logits are no numbers") as raised:
        faulty.decode(range(1, 7))
    assert raised.value.slots == (2, 5)
    assert set(raised.value.choices) == {1, 3, 4, 6}
    for slot, choice in raised.value.choices.items():
        got[slot].append(choice)
    with pytest.raises(SlotError, match=r"slot 5: .* this one is failed"):
        faulty.decode([1, 5])
    for _ in range(2):
        for slot, choice in faulty.decode([1, 3, 4, 6]).items():
            got[slot].append(choice)
    assert [got[slot] for slot in (1, 3, 4, 6)] == [wanted] * 4
    faulty.release(5)
    assert safe_answer(faulty, 5, 4) == wanted


def test_a_prompt_that_is_no_number_fails_where_it_is_waited_for(faulty: ReplicatedEngine) -> None:
    faulty.admit(1, GREEDY, prompt=[1, POISON, 2], start=None)
    faulty.admit(3, GREEDY, prompt=SAFE[:5], start=None)
    for slot in (1, 3):
        faulty.begin_prefill(slot)
    with pytest.raises(FaultySlotsError, match="slot 1: the logits are no numbers"):
        faulty.prefill(1)
    assert faulty.prefill(3).choice is not None


@pytest.mark.parametrize("where", [0, 2])
@pytest.mark.parametrize("program", ["decode", "prefill"])
def test_a_program_that_fails_on_one_device_costs_all_that_is_in_the_engine_and_not_the_engine(
    faulty: ReplicatedEngine, monkeypatch: pytest.MonkeyPatch, program: str, where: int
) -> None:
    wanted = ids(safe_answer(faulty, 6, 8))
    for slot in (1, 3, 5):
        faulty.admit(slot, GREEDY, prompt=SAFE, start=None)
    read_all(faulty, [1, 3, 5])
    faulty.admit(2 + 2 * where, GREEDY, prompt=SAFE, start=None)
    faulty.admit(4, GREEDY, prompt=SAFE, start=None)
    faulty.begin_prefill(4)
    rows = faulty.replicas[where]._device

    def lost(*_: object) -> None:
        for array in rows.pool.state:
            array.delete()
        raise RuntimeError("the device is out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(rows, program, lost)
        with pytest.raises(RuntimeError, match="the device is out of memory"):
            faulty.decode([1, 3, 5]) if program == "decode" else faulty.prefill(2 + 2 * where)
    for slot in (1, 2 + 2 * where, 3, 4, 5):
        with pytest.raises(SlotError, match=f"slot {slot}: .* this one is failed"):
            faulty.prefill(slot)
        faulty.release(slot)
    assert sorted(faulty.free_slots()) == [1, 2, 3, 4, 5, 6]
    for slot in (1, 4, 6):
        assert ids(safe_answer(faulty, slot, 8)) == wanted
