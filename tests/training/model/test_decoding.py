"""Forward pass, prefill and steps of every mixer: causal, packed as separate, and equal however a text is cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from tests.training.model.patterns import LIGHTNING, PATTERNS, VOCABULARY, WINDOW, fresh, quick_jit, tiny
from training.model.decoding import ModelState, init_state, prefill, prefill_all, step
from training.model.language_model import LanguageModel, unrolled

ROWS, TIME, CONTEXT = 3, 11, 16
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@dataclass(frozen=True)
class Decoder:
    """A model with its functions compiled, and what the forward pass says of a batch."""

    model: LanguageModel
    tokens: Array
    logits: Array
    forward: Callable[..., Array]
    read_all: Callable[..., tuple[Array, ModelState]]
    step: Callable[..., tuple[Array, ModelState]]

    def fresh(self) -> ModelState:
        """A batch of nothing."""
        return init_state(self.model, ROWS, context=CONTEXT)

    def prefilled(self, lengths: Any, state: ModelState | None = None, tokens: Array | None = None) -> Any:
        """The logits and state behind the first `lengths` of `tokens`."""
        given = self.tokens if tokens is None else tokens
        ends = jnp.asarray(lengths, jnp.int32)
        logits, after = self.read_all(self.model, given, ends, jnp.ones_like(given), state or self.fresh())
        return logits[jnp.arange(ROWS), ends - 1], after

    def stepped(self, token: Array, active: Any, state: ModelState) -> tuple[Array, ModelState]:
        """One token more."""
        return self.step(self.model, token, jnp.asarray(active, bool), state)


@pytest.fixture(scope="module", params=sorted(PATTERNS))
def decoder(request: pytest.FixtureRequest) -> Decoder:
    """One a pattern; compiled once."""
    model = fresh(tiny(*PATTERNS[request.param]))
    tokens = jax.random.randint(jax.random.key(1), (ROWS, TIME), 0, VOCABULARY)
    forward = quick_jit(lambda m, t, s: m(t, s))
    return Decoder(
        model=model,
        tokens=tokens,
        logits=forward(model, tokens, jnp.ones_like(tokens)),
        forward=forward,
        read_all=quick_jit(prefill_all),
        step=quick_jit(step),
    )


def assert_same_bits(got: Any, wanted: Any, rows: Any = slice(None)) -> None:
    """Every array of two states, in these rows."""
    for mine, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(mine)[rows], np.asarray(other)[rows])


def assert_close(got: Any, wanted: Any, rows: Any = slice(None)) -> None:
    """Every array of two states, in these rows."""
    for mine, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(mine)[rows], np.asarray(other)[rows], **CLOSE)


def test_a_token_changes_nothing_before_it(decoder: Decoder) -> None:
    for place in (1, 7, TIME - 1):
        changed = decoder.tokens.at[:, place].set((decoder.tokens[:, place] + 1) % VOCABULARY)
        after = decoder.forward(decoder.model, changed, jnp.ones_like(changed))
        np.testing.assert_array_equal(after[:, :place], decoder.logits[:, :place])
        assert jnp.any(after[:, place] != decoder.logits[:, place])


def test_packed_documents_are_as_they_are_alone(decoder: Decoder) -> None:
    lengths = (4, 1, 6)
    segments = jnp.broadcast_to(jnp.repeat(jnp.array([1, 2, 3]), jnp.array(lengths)), (ROWS, TIME))
    together = decoder.forward(decoder.model, decoder.tokens, segments)
    start = 0
    for length in lengths:
        alone = jnp.roll(decoder.tokens, -start, axis=1)
        apart = decoder.forward(
            decoder.model, alone, jnp.broadcast_to(jnp.arange(TIME) < length, (ROWS, TIME)).astype(int)
        )
        np.testing.assert_allclose(together[:, start : start + length], apart[:, :length], **CLOSE)
        start += length


def test_prefill_is_the_forward_pass(decoder: Decoder) -> None:
    logits, _ = decoder.read_all(
        decoder.model, decoder.tokens, jnp.full(ROWS, TIME), jnp.ones_like(decoder.tokens), decoder.fresh()
    )
    np.testing.assert_allclose(logits, decoder.logits, **CLOSE)


def test_steps_from_nothing_are_the_forward_pass(decoder: Decoder) -> None:
    state = decoder.fresh()
    for time in range(TIME):
        logits, state = decoder.stepped(decoder.tokens[:, time], [True] * ROWS, state)
        np.testing.assert_allclose(logits, decoder.logits[:, time], **CLOSE)
    np.testing.assert_array_equal(state.position, [TIME] * ROWS)


def test_every_split_into_two_prefills_and_steps_is_the_forward_pass(decoder: Decoder) -> None:
    for split in range(TIME + 1):
        _, state = decoder.prefilled([split] * ROWS)
        rest = jnp.roll(decoder.tokens, -split, axis=1)
        if split < TIME:
            logits, _ = decoder.prefilled([TIME - split] * ROWS, state, rest)
            np.testing.assert_allclose(logits, decoder.logits[:, -1], **CLOSE)
            logits, after = decoder.stepped(rest[:, 0], [True] * ROWS, state)
            np.testing.assert_allclose(logits, decoder.logits[:, split], **CLOSE)
            np.testing.assert_array_equal(after.position, [split + 1] * ROWS)


def test_rows_of_several_lengths_each_go_on_from_their_own_place(decoder: Decoder) -> None:
    lengths = jnp.array([4, TIME, 1])
    logits, state = decoder.prefilled(lengths)
    np.testing.assert_allclose(logits, decoder.logits[jnp.arange(ROWS), lengths - 1], **CLOSE)
    np.testing.assert_array_equal(state.position, lengths)
    following = jnp.array([decoder.tokens[0, 4], 0, decoder.tokens[2, 1]])
    logits, after = decoder.stepped(following, [True, False, True], state)
    np.testing.assert_allclose(logits[0], decoder.logits[0, 4], **CLOSE)
    np.testing.assert_allclose(logits[2], decoder.logits[2, 1], **CLOSE)
    assert_same_bits(after, state, rows=1)


def test_a_row_that_rests_keeps_its_bits(decoder: Decoder) -> None:
    _, state = decoder.prefilled([5, 3, 7])
    none = jnp.full(ROWS, -1)  # what stands in a row that rests is no token
    _, stepped = decoder.stepped(none, [False] * ROWS, state)
    assert_same_bits(stepped, state)
    _, read = decoder.prefilled([0] * ROWS, state, jnp.full_like(decoder.tokens, -1))
    assert_same_bits(read, state)


def test_a_fresh_row_joins_a_batch_that_is_on_its_way(decoder: Decoder) -> None:
    _, state = decoder.prefilled([5, 3, 7])
    joined = jax.tree.map(lambda old, new: old.at[1].set(new[1]), state, decoder.fresh())
    logits, after = decoder.prefilled([0, 6, 0], joined)
    np.testing.assert_allclose(logits[1], decoder.logits[1, 5], **CLOSE)
    assert_same_bits(after, state, rows=[0, 2])


def test_what_else_is_in_the_batch_changes_no_bit(decoder: Decoder) -> None:
    others = decoder.tokens.at[jnp.array([0, 2])].set((decoder.tokens[jnp.array([0, 2])] + 7) % VOCABULARY)
    (logits, state), (other_logits, other) = decoder.prefilled([4, 6, 8]), decoder.prefilled([9, 6, 0], tokens=others)
    np.testing.assert_array_equal(logits[1], other_logits[1])
    assert_same_bits(other, state, rows=1)
    logits, state = decoder.stepped(decoder.tokens[:, 6], [True, True, False], state)
    other_logits, other = decoder.stepped(others[:, 6], [False, True, True], other)
    np.testing.assert_array_equal(logits[1], other_logits[1])
    assert_same_bits(other, state, rows=1)


def test_the_state_behind_packed_documents_is_that_of_the_last(decoder: Decoder) -> None:
    # Row 0 goes on with 2 tokens of what it has read and then has two new documents; row 1 has one; row 2 rests.
    _, before = decoder.prefilled([3, 5, 2])
    row = jnp.concatenate([decoder.tokens[0, 3:5], decoder.tokens[1, :4], decoder.tokens[2, :3]])
    tokens = jnp.stack([jnp.pad(row, (0, TIME - 9)), decoder.tokens[1], decoder.tokens[2]])
    segments = jnp.stack([jnp.repeat(jnp.array([1, 2, 3]), jnp.array([2, 4, 5])), *jnp.ones((2, TIME), jnp.int32)])
    logits, state = decoder.read_all(decoder.model, tokens, jnp.array([9, 0, 0]), segments, before)
    np.testing.assert_allclose(logits[0, :2], decoder.logits[0, 3:5], **CLOSE)
    np.testing.assert_allclose(logits[0, 2:6], decoder.logits[1, :4], **CLOSE)
    np.testing.assert_allclose(logits[0, 6:9], decoder.logits[2, :3], **CLOSE)
    assert int(state.position[0]) == 3
    assert_same_bits(state, before, rows=[1, 2])
    _, alone = decoder.prefilled([0, 0, 3])
    logits, _ = decoder.stepped(jnp.full(ROWS, decoder.tokens[2, 3]), [True] * ROWS, state)
    wanted, _ = decoder.stepped(jnp.full(ROWS, decoder.tokens[2, 3]), [True] * ROWS, alone)
    np.testing.assert_allclose(logits[0], wanted[2], **CLOSE)


def test_state_is_batch_first_in_every_array_and_what_adds_up_is_fp32(decoder: Decoder) -> None:
    state = decoder.fresh()
    assert state.position.dtype == jnp.int32
    for leaf in jax.tree.leaves(state):
        assert leaf.shape[0] == ROWS
    _, after = decoder.prefilled([1] * ROWS)
    assert [(a.shape, a.dtype) for a in jax.tree.leaves(after)] == [(a.shape, a.dtype) for a in jax.tree.leaves(state)]


def test_an_unrolled_model_decodes_as_the_stacked_one_and_prefill_gives_the_last_logits() -> None:
    stacked = fresh(tiny(LIGHTNING, WINDOW))
    model = unrolled(stacked)
    tokens = jax.random.randint(jax.random.key(1), (ROWS, TIME), 0, VOCABULARY)
    wanted = quick_jit(lambda m, t: m(t))(stacked, tokens)
    lengths = jnp.array([5, TIME, 1])
    logits, state = quick_jit(prefill)(model, tokens, lengths, None, init_state(model, ROWS, context=CONTEXT))
    np.testing.assert_allclose(logits, wanted[jnp.arange(ROWS), lengths - 1], **CLOSE)
    logits, _ = quick_jit(step)(model, tokens[:, 5], jnp.ones(ROWS, bool), state)
    np.testing.assert_allclose(logits[0], wanted[0, 5], **CLOSE)
