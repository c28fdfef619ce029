"""States that are kept and put back: the same bits, and nothing from a snapshot that is not what it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from inference.engine.abstract_engine import SlotError, Snapshot
from inference.engine.engine import Engine
from tests.inference.engine.driving import (
    GREEDY,
    SHORT_GRID,
    answer,
    fresh_model,
    prompt_of,
    quick_engine,
    read,
)
from training.mixers.ssd import SsdConfig

PROMPT = prompt_of(2 * SHORT_GRID + 30)


@pytest.fixture
def kept(engine: Engine) -> Snapshot:
    """Of the first 64 tokens."""
    engine.admit(2, GREEDY, prompt=PROMPT, start=None)
    engine.prefill(2)
    snapshot = engine.snapshot(2)
    engine.release(2)
    return snapshot


def test_it_is_read_only_and_says_where_it_is(kept: Snapshot, engine: Engine) -> None:
    assert kept.position == SHORT_GRID
    assert kept.nbytes == engine.limits.state_bytes
    with pytest.raises(ValueError, match="read-only"):
        kept.arrays[1][0] = 1


def test_taken_again_further_on_it_is_the_one_of_a_prompt_read_whole(kept: Snapshot, engine: Engine) -> None:
    digests = []
    for start in (None, kept):
        position = engine.admit(1, GREEDY, prompt=PROMPT, start=start)
        assert position == (0 if start is None else SHORT_GRID)
        while position < 2 * SHORT_GRID:
            position = engine.prefill(1).position
        digests.append(engine.snapshot(1).digest)
        engine.release(1)
    assert digests[0] == digests[1]


def test_another_prompt_with_the_same_beginning_goes_on_from_it(kept: Snapshot, engine: Engine) -> None:
    other = PROMPT[:SHORT_GRID] + prompt_of(20, 8)
    assert answer(engine, other, start=kept) == answer(engine, other)


def test_one_at_the_end_of_a_prompt_has_not_seen_the_token_that_was_chosen(engine: Engine) -> None:
    digests = []
    for prompt in (PROMPT[:SHORT_GRID], PROMPT):
        engine.admit(1, GREEDY, prompt=prompt, start=None)
        engine.prefill(1)
        digests.append(engine.snapshot(1).digest)
        engine.release(1)
    assert digests[0] == digests[1]


def test_a_cache_of_the_whole_context_is_kept_too(softmax_engine: Engine) -> None:
    grid = softmax_engine.limits.grid
    prompt = prompt_of(grid + 9)
    softmax_engine.admit(1, GREEDY, prompt=prompt, start=None)
    softmax_engine.prefill(1)
    snapshot = softmax_engine.snapshot(1)
    softmax_engine.release(1)
    assert answer(softmax_engine, prompt, slot=2, start=snapshot) == answer(softmax_engine, prompt)


def bit_flipped(snapshot: Snapshot) -> Snapshot:
    """With one bit of one array changed."""
    arrays = list(snapshot.arrays)
    changed = arrays[1].copy()
    changed.view(np.uint32).flat[5] ^= 1
    return replace(snapshot, arrays=(arrays[0], changed, *arrays[2:]))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (bit_flipped, "the snapshot at 64 is damaged: its bytes are not those of its digest"),
        (lambda each: replace(each, digest=each.digest[::-1]), "the snapshot at 64 is damaged"),
        (lambda each: replace(each, position=2 * SHORT_GRID), "the snapshot at 128 is damaged"),
        (lambda each: replace(each, position=65), "the snapshot at 65: states are kept at multiples of 64 tokens"),
        (lambda each: replace(each, arrays=each.arrays[:-1]), "is of another model, context or dtype"),
        (
            lambda each: replace(each, arrays=tuple(array.astype(np.float16) for array in each.arrays)),
            "is of another model, context or dtype",
        ),
    ],
)
def test_a_damaged_one_is_refused_and_the_slot_stays_free(
    kept: Snapshot, engine: Engine, damage: Callable[[Snapshot], Snapshot], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        engine.admit(3, GREEDY, prompt=PROMPT, start=damage(kept))
    assert 3 in engine.free_slots()


@pytest.mark.parametrize("length", [1, SHORT_GRID])
def test_one_that_is_not_shorter_than_the_prompt_is_refused(kept: Snapshot, engine: Engine, length: int) -> None:
    with pytest.raises(ValueError, match=f"at 64 is not shorter than the prompt of {length} tokens"):
        engine.admit(3, GREEDY, prompt=PROMPT[:length], start=kept)


def test_there_is_none_off_the_grid_or_behind_the_prompt(engine: Engine) -> None:
    engine.admit(1, GREEDY, prompt=PROMPT[: SHORT_GRID + 1], start=None)
    read(engine, 1)
    with pytest.raises(
        SlotError, match="slot 1: is at 65 of a prompt of 65 tokens; a state is kept at multiples of 64"
    ):
        engine.snapshot(1)
    for _ in range(SHORT_GRID - 1):
        engine.decode([1])
    with pytest.raises(SlotError, match="slot 1: is at 128 of a prompt of 65 tokens"):
        engine.snapshot(1)
    with pytest.raises(SlotError, match="slot 2: snapshot is for a slot that is reading"):
        engine.snapshot(2)


def test_the_fingerprint_tells_states_apart_that_are_not_the_same_bits() -> None:
    model = fresh_model(SsdConfig(d_head=8, d_state=8))
    prints = [
        Engine(model, slots=1, context=100, grid=64).fingerprint,
        Engine(model, slots=1, context=100, grid=128).fingerprint,
        Engine(model, slots=1, context=100, grid=64, dtype="bfloat16").fingerprint,
        Engine(model, slots=1, context=100, grid=64, weights_digest="of the file").fingerprint,
        quick_engine("softmax").fingerprint,
    ]
    assert len(set(prints)) == len(prints)
    assert Engine(model, slots=2, context=100, grid=64).fingerprint == prints[0]
