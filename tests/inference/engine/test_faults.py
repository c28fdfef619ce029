"""Rows whose logits are no numbers, and programs that fail: who is hit, and who is not."""

from __future__ import annotations

from collections.abc import Iterator

import equinox as eqx
import jax.numpy as jnp
import pytest

from inference.engine.abstract_engine import SlotError
from inference.engine.engine import Engine
from inference.engine.sampling_parameters import SamplingParameters
from inference.engine.slots import FaultySlotsError
from tests.inference.engine.driving import GREEDY, QUICK, answer, fresh_model, ids, prompt_of, read
from tests.inference.engine.invariants import assert_sound
from training.mixers.ssd import SsdConfig

POISON = 59
"""A token whose embedding is no number."""
SAFE = [token for token in prompt_of(90, 2) if token != POISON]
ONTO_POISON = SamplingParameters(temperature=0, logit_bias={POISON: 100.0})


@pytest.fixture(scope="module")
def poisoned() -> Engine:
    """Over a model with output weights of its own, so that only who reads the token is hit."""
    model = fresh_model(SsdConfig(d_head=8, d_state=8, chunk=16))
    head = type(model.embedding)(weight=model.embedding.weight)
    spoilt = eqx.tree_at(lambda each: each.embedding.weight, model, model.embedding.weight.at[POISON].set(jnp.nan))
    spoilt = eqx.tree_at(lambda each: each.lm_head, spoilt, head, is_leaf=lambda leaf: leaf is None)
    return Engine(spoilt, slots=3, context=200, grid=64, compiler_options=QUICK)


@pytest.fixture
def engine(poisoned: Engine) -> Iterator[Engine]:
    """With every slot free, before and behind the test."""
    yield poisoned
    for slot in {1, 2, 3} - set(poisoned.free_slots()):
        poisoned.release(slot)
    assert_sound(poisoned)


def test_a_row_that_becomes_no_number_is_named_and_the_others_have_their_tokens(engine: Engine) -> None:
    wanted = answer(engine, SAFE, tokens=8)
    for slot, parameters in ((1, GREEDY), (2, ONTO_POISON), (3, GREEDY)):
        engine.admit(slot, parameters, prompt=SAFE, start=None)
    got = {slot: [read(engine, slot)] for slot in (1, 2, 3)}
    assert ids(got[2]) == [POISON]
    with pytest.raises(FaultySlotsError, match="slot 2: the logits are no numbers") as raised:
        engine.decode([1, 2, 3])
    assert raised.value.slots == (2,)
    assert set(raised.value.choices) == {1, 3}
    for slot, choice in raised.value.choices.items():
        got[slot].append(choice)
    for call in (lambda: engine.decode([2]), lambda: engine.snapshot(2), lambda: engine.prefill(2)):
        with pytest.raises(SlotError, match="this one is failed"):
            call()
    for _ in range(6):
        for slot, choice in engine.decode([1, 3]).items():
            got[slot].append(choice)
    assert got[1] == got[3] == wanted
    engine.release(2)
    assert answer(engine, SAFE, slot=2) == wanted


@pytest.mark.parametrize("place", [0, 63, 64, 80])
def test_a_prompt_that_is_no_number_is_named_at_the_piece_where_it_becomes_so(engine: Engine, place: int) -> None:
    engine.admit(1, GREEDY, prompt=[*SAFE[:place], POISON, *SAFE[place:]], start=None)
    if place >= 64:
        engine.prefill(1)
    with pytest.raises(FaultySlotsError, match="slot 1: the logits are no numbers") as raised:
        engine.prefill(1)
    assert raised.value.choices == {}
    with pytest.raises(SlotError, match="this one is failed"):
        engine.snapshot(1)


def test_a_program_that_fails_costs_those_that_are_in_it_and_not_the_engine(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = answer(engine, SAFE)
    engine.admit(1, GREEDY, prompt=SAFE, start=None)
    read(engine, 1)
    engine.admit(2, GREEDY, prompt=SAFE, start=None)

    def lost(*_: object) -> None:
        for array in engine.pool.state:
            array.delete()
        raise RuntimeError("the device is out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(engine._device, "decode", lost)
        with pytest.raises(RuntimeError, match="the device is out of memory"):
            engine.decode([1])
    for slot in (1, 2):
        with pytest.raises(SlotError, match=f"slot {slot}: .* this one is failed"):
            engine.prefill(slot)
        engine.release(slot)
    assert answer(engine, SAFE) == wanted
