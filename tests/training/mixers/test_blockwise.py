"""Blockwise attention against jax's own, and against what it must not do: keep scores, look past a window, mix runs."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from training.mixers.blockwise import EMPTY, Marks, blockwise_attention

QUICKLY = {"xla_backend_optimization_level": 0}
D = 4


def operands(time: int, heads: int, groups: int) -> list[Array]:
    draw = np.random.default_rng(0)
    return [jnp.asarray(draw.standard_normal((2, time, h, D)), jnp.float32) for h in (heads, groups, groups, heads)]


def in_order(time: int, batch: int = 2) -> Marks:
    return Marks(
        order=jnp.broadcast_to(jnp.arange(time, dtype=jnp.int32), (batch, time)),
        run=jnp.zeros((batch, time), jnp.int32),
    )


@functools.partial(jax.jit, static_argnames=("window", "block"), compiler_options=QUICKLY)
def outputs(q: Array, k: Array, v: Array, marks: Marks, *, window: int | None = None, block: int) -> Array:
    return blockwise_attention(q, k, v, marks, marks, window=window, block=block)


def with_slopes(attention: Any, q: Array, k: Array, v: Array, aim: Array) -> Any:
    def loss(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
        out = attention(q, k, v)
        return jnp.sum(out * aim), out

    return jax.jit(jax.grad(loss, argnums=(0, 1, 2), has_aux=True), compiler_options=QUICKLY)(q, k, v)


@pytest.mark.parametrize(
    ("time", "heads", "groups", "window", "block"),
    [
        (23, 4, 2, None, 8),
        (24, 4, 1, 6, 8),
        (9, 2, 2, None, 64),
        (40, 2, 1, 9, 4),
        (12, 1, 1, 1, 5),
    ],
)
def test_outputs_and_gradients_are_those_of_jax(
    time: int, heads: int, groups: int, window: int | None, block: int
) -> None:
    q, k, v, aim = operands(time, heads, groups)
    marks = in_order(time)
    peer = functools.partial(
        jax.nn.dot_product_attention, is_causal=True, local_window_size=None if window is None else (window - 1, 0)
    )
    wanted = with_slopes(peer, q, k, v, aim)
    got = with_slopes(
        lambda q, k, v: blockwise_attention(q, k, v, marks, marks, window=window, block=block), q, k, v, aim
    )
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=2e-6), got, wanted)


def test_runs_do_not_meet_and_empty_slots_are_not_seen() -> None:
    time = 21
    q, k, v, aim = operands(time, 2, 1)
    run = np.zeros((2, time), np.int32)
    run[0, 6:], run[0, 17:], run[1, 9:] = 1, 2, 1
    there = run.copy()
    there[1, 2:5] = EMPTY
    places = np.arange(time)
    seen = (run[:, :, None] == there[:, None, :]) & (places[:, None] >= places)
    # Row 1 has queries in the gap that still see the tokens before it: no query is without a key.
    assert seen.any(axis=2).all()
    marks = in_order(time)
    wanted = with_slopes(
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, mask=jnp.asarray(seen)[:, None]), q, k, v, aim
    )
    queries, keys = (marks._replace(run=jnp.asarray(each)) for each in (run, there))
    got = with_slopes(lambda q, k, v: blockwise_attention(q, k, v, queries, keys, block=4), q, k, v, aim)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=2e-6), got, wanted)


def test_a_query_without_a_key_has_zero_and_no_gradient() -> None:
    q, k, v, aim = operands(6, 1, 1)
    marks = in_order(6)
    nobody = marks._replace(run=jnp.full((2, 6), EMPTY, jnp.int32))
    slopes, out = with_slopes(lambda q, k, v: blockwise_attention(q, k, v, marks, nobody, block=4), q, k, v, aim)
    for each in (out, *slopes):
        np.testing.assert_array_equal(each, 0)


def test_great_scores_do_not_overflow() -> None:
    q, k, v, aim = operands(12, 1, 1)
    marks = in_order(12)
    slopes, out = with_slopes(
        lambda q, k, v: blockwise_attention(100 * q, 100 * k, v, marks, marks, block=4), q, k, v, aim
    )
    assert all(bool(jnp.all(jnp.isfinite(each))) for each in (out, *slopes))
    assert float(jnp.max(jnp.abs(out))) <= float(jnp.max(jnp.abs(v)))


def test_bf16_operands_add_up_in_fp32() -> None:
    q, k, v, _ = (each.astype(jnp.bfloat16) for each in operands(24, 2, 1))
    marks = in_order(24)
    out = outputs(q, k, v, marks, block=8)
    assert out.dtype == jnp.float32
    wanted = jax.nn.dot_product_attention(*(each.astype(jnp.float32) for each in (q, k, v)), is_causal=True)
    np.testing.assert_allclose(out, wanted, atol=0.03)


@pytest.mark.parametrize("window", [None, 64])
def test_memory_grows_with_the_length_and_not_with_its_square(window: int | None) -> None:
    def taken(time: int) -> int:
        shape = jax.eval_shape(lambda: jnp.zeros((1, time, 1, 16)))
        marks = in_order(time, batch=1)
        slopes = jax.grad(
            lambda q, k, v: jnp.sum(blockwise_attention(q, k, v, marks, marks, window=window, block=64) ** 2),
            argnums=(0, 1, 2),
        )
        memory = jax.jit(slopes, compiler_options=QUICKLY).lower(shape, shape, shape).compile().memory_analysis()
        assert memory is not None
        return int(memory.temp_size_in_bytes)

    short, long = taken(2048), taken(16384)
    assert long < 8.5 * short
    assert long < 16384**2 * 4 / 32  # the scores alone would be a GiB


def test_a_window_looks_at_the_blocks_that_it_reaches_alone() -> None:
    """Keys and values that nobody may see are NaN: a block of them that is looked at shows in the output."""
    time, block, window = 64, 8, 9
    q, k, v, _ = operands(time, 1, 1)
    marks = in_order(time)
    spoilt = jnp.arange(time)[:, None, None] < 40
    out = outputs(q, k, jnp.where(spoilt, jnp.nan, v), marks, window=window, block=block)
    np.testing.assert_array_equal(jnp.isnan(out[:, 56:]), np.zeros((2, 8, 1, D), bool))
    assert bool(jnp.all(jnp.isnan(out[:, :40])))
