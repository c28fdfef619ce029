"""Strong decays in chunks of 64: where a form that divides one product of decays by another gives infinity times 0.

Queries, keys and values are 1, and the decay is the same for every token: the output at token t is the sum of
exp(g)^i over i = 0..t.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from training.mixers.chunkwise import chunkwise
from training.mixers.recurrence import recurrent

STRONG_DECAY_LAST_OUTPUT = 1.0067836549063043  # 1 / (1 - exp(-5))


@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def compiled(ones: Array, decay: Array) -> tuple[Array, tuple[Array, ...]]:
    def total(q: Array, k: Array, v: Array, g: Array) -> tuple[Array, Array]:
        out, _ = chunkwise(q, k, v, g, chunk=64)
        return jnp.sum(out), out

    slopes, out = jax.grad(total, argnums=(0, 1, 2, 3), has_aux=True)(ones, ones, ones, decay)
    return out, slopes


def outputs_and_slopes(g: np.ndarray) -> tuple[Array, tuple[Array, ...]]:
    out, slopes = compiled(jnp.ones((1, len(g), 1, 1)), jnp.asarray(g, jnp.float32)[None, :, None])
    return out.ravel(), slopes


def test_256_tokens_of_a_strong_decay_end_in_the_limit_of_the_series() -> None:
    out, slopes = outputs_and_slopes(np.full(256, -5.0))
    assert float(out[-1]) == pytest.approx(STRONG_DECAY_LAST_OUTPUT, rel=1e-6)
    assert all(bool(jnp.all(jnp.isfinite(each))) for each in (out, *slopes))


def test_without_decay_4096_tokens_add_up_to_4096() -> None:
    out, slopes = outputs_and_slopes(np.zeros(4096))
    np.testing.assert_array_equal(out, np.arange(1, 4097))
    assert all(bool(jnp.all(jnp.isfinite(each))) for each in slopes)


@pytest.mark.parametrize("g", [-20.0, -100.0, -1e30])
def test_a_decay_that_leaves_nothing(g: float) -> None:
    out, slopes = outputs_and_slopes(np.full(65, g))
    np.testing.assert_allclose(out, 1 / (1 - np.exp(g)), rtol=1e-6)
    assert all(bool(jnp.all(jnp.isfinite(each))) for each in slopes)


@pytest.mark.parametrize("time", [1, 63])
def test_decays_of_none_and_thirty_in_turn(time: int) -> None:
    g = np.where(np.arange(time) % 2, -30.0, 0.0)
    out, slopes = outputs_and_slopes(g)
    total, wanted = 0.0, []
    for each in g:
        total = total * np.exp(each) + 1
        wanted.append(total)
    np.testing.assert_allclose(out, wanted, rtol=1e-6)
    ones = jnp.ones((1, time, 1, 1))
    by_token, _ = jax.jit(recurrent)(ones, ones, ones, jnp.asarray(g, jnp.float32)[None, :, None])
    np.testing.assert_allclose(out, by_token.ravel(), rtol=1e-6)
    assert all(bool(jnp.all(jnp.isfinite(each))) for each in slopes)
