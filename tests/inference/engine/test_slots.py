"""What a slot may be asked for, and when; and that nothing of one answer is left for the next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from inference.engine.abstract_engine import SlotError
from inference.engine.engine import Engine
from inference.engine.sampling_parameters import SamplingParameters
from tests.inference.engine.driving import GREEDY, SHORT_GRID, SLOTS, VOCABULARY, answer, prompt_of
from tests.inference.engine.invariants import assert_sound

PROMPT = prompt_of(SHORT_GRID + 6)
Call = Callable[[Engine], object]


def admit(engine: Engine) -> object:
    """To slot 1."""
    return engine.admit(1, GREEDY, prompt=PROMPT, start=None)


def prefill(engine: Engine) -> object:
    """A piece in slot 1."""
    return engine.prefill(1)


def decode(engine: Engine) -> object:
    """Slot 1."""
    return engine.decode([1])


def snapshot(engine: Engine) -> object:
    """Of slot 1."""
    return engine.snapshot(1)


def release(engine: Engine) -> object:
    """Slot 1."""
    return engine.release(1)


READ: tuple[Call, ...] = (admit, prefill, prefill)


@pytest.mark.parametrize(
    ("before", "call", "message"),
    [
        ((), prefill, "slot 1: prefill is for a slot that is reading its prompt; this one is free"),
        ((), decode, "slot 1: decode is for a slot that is answering; this one is free"),
        ((), snapshot, "slot 1: snapshot is for a slot that is reading its prompt or answering; this one is free"),
        ((), release, "slot 1: release is for .*; this one is free"),
        ((admit,), admit, "slot 1: admit is for a slot that is free; this one is reading its prompt"),
        ((admit,), decode, "slot 1: decode is for a slot that is answering; this one is reading its prompt"),
        ((admit, prefill), decode, "this one is reading its prompt"),
        (READ, prefill, "slot 1: prefill is for a slot that is reading its prompt; this one is answering"),
        (READ, admit, "slot 1: admit is for a slot that is free; this one is answering"),
        (READ, lambda engine: engine.decode([1, 1]), r"slots \[1, 1\]: one of them is named twice"),
        (READ, lambda engine: engine.decode([1, 2]), "slot 2: decode is for a slot that is answering"),
        ((*READ, release), release, "this one is free"),
        ((*READ, release), decode, "this one is free"),
        ((), lambda engine: engine.decode([0]), f"slot 0: there are slots 1 to {SLOTS}"),
        ((), lambda engine: engine.prefill(SLOTS + 1), f"slot {SLOTS + 1}: there are slots 1 to {SLOTS}"),
        ((admit, prefill), lambda engine: engine.prefill(1, scored=True), "slot 1: the pieces .* all scored, or none"),
    ],
)
def test_what_a_slot_cannot_do_is_refused_and_changes_nothing(
    engine: Engine, before: tuple[Call, ...], call: Call, message: str
) -> None:
    for step in before:
        step(engine)
    held = [np.array(array) for array in engine.pool.state]
    with pytest.raises(SlotError, match=message):
        call(engine)
    for array, kept in zip(engine.pool.state, held, strict=True):
        np.testing.assert_array_equal(array, kept)
    assert_sound(engine)


def test_a_prompt_from_a_snapshot_cannot_be_scored(engine: Engine) -> None:
    engine.admit(1, GREEDY, prompt=PROMPT, start=None)
    engine.prefill(1)
    kept = engine.snapshot(1)
    engine.admit(2, GREEDY, prompt=PROMPT, start=kept)
    with pytest.raises(SlotError, match="slot 2: a prompt is scored from its first token on"):
        engine.prefill(2, scored=True)


@pytest.mark.parametrize(
    ("prompt", "parameters", "message"),
    [
        ([], GREEDY, "prompt: is 0 tokens; it is 1 to 400, the context"),
        ([1] * 401, GREEDY, "prompt: is 401 tokens; it is 1 to 400, the context"),
        ([1, VOCABULARY], GREEDY, "prompt: token 61 is none of this model, whose tokens are 0 to 60"),
        ([1, -1], GREEDY, "prompt: token -1 is none of this model"),
        ([2**40], GREEDY, "prompt: token 1099511627776 is none of this model"),
        ([1], SamplingParameters(logit_bias={61: 1.0}), "logit_bias: token 61 is none of this model"),
    ],
)
def test_a_prompt_that_does_not_fit_leaves_the_slot_free(
    engine: Engine, prompt: list[int], parameters: SamplingParameters, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        engine.admit(1, parameters, prompt=prompt, start=None)
    assert engine.free_slots() == tuple(range(1, SLOTS + 1))


def test_slots_are_free_in_order(engine: Engine) -> None:
    for slot in (2, 1, 5):
        engine.admit(slot, GREEDY, prompt=PROMPT, start=None)
    assert engine.free_slots() == (3, 4, 6, 7, 8)
    engine.release(1)
    assert engine.free_slots() == (1, 3, 4, 6, 7, 8)


def test_no_slots_are_nothing_to_decode(engine: Engine) -> None:
    assert engine.decode([]) == {}


@pytest.mark.parametrize("pieces", [0, 1, 2])
def test_release_at_any_point_leaves_nothing_for_the_next(engine: Engine, pieces: int) -> None:
    wanted = answer(engine, PROMPT)
    asking = SamplingParameters(logit_bias={5: 50.0}, repetition_penalty=2, frequency_penalty=2, temperature=2, top_k=2)
    engine.admit(1, asking, prompt=prompt_of(SHORT_GRID + 20, 4), start=None)
    for _ in range(pieces):
        engine.prefill(1)
    if pieces == 2:
        for _ in range(5):
            engine.decode([1])
    engine.release(1)
    assert_sound(engine)
    assert answer(engine, PROMPT) == wanted


def test_a_piece_ends_at_the_next_place_on_the_grid(engine: Engine) -> None:
    engine.admit(1, GREEDY, prompt=prompt_of(150), start=None)
    pieces = [engine.prefill(1) for _ in range(3)]
    assert [piece.position for piece in pieces] == [64, 128, 150]
    assert [piece.choice is None for piece in pieces] == [True, True, False]
