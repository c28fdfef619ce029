"""Rotary positions: exact where fp32 alone is wrong, and blind to where a text begins."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from training.mixers.rope import rotate, turned_channels

BASE = 10_000.0


def turned(vectors: np.ndarray, positions: np.ndarray, base: float = BASE, fraction: float = 1.0) -> Array:
    """(time, d) vectors at (time,) positions."""
    x = jnp.asarray(vectors, jnp.float32)[None, :, None]
    return rotate(x, jnp.asarray(positions, jnp.int32)[None], base=base, fraction=fraction)[0, :, 0]


@pytest.mark.parametrize("first", [0, 999_990, 2**24 + 1, 2**31 - 20])
@pytest.mark.parametrize("base", [BASE, 1e7])
def test_cosines_and_sines_are_right_at_any_position(first: int, base: float) -> None:
    positions, d = np.arange(first, first + 16), 8
    both = np.concatenate([np.ones((16, d // 2)), np.zeros((16, d // 2))], axis=1)
    got = turned(both, positions, base)
    # The product of a position below 2^31 and a frequency has an error of 2e-7 in fp64, and less at a million.
    angle = positions[:, None] * base ** (-2 * np.arange(d // 2) / d)
    np.testing.assert_allclose(got, np.concatenate([np.cos(angle), np.sin(angle)], axis=1), atol=2e-6)


def test_fp32_alone_would_be_wrong_there() -> None:
    positions = np.arange(999_990, 1_000_006)
    frequency = BASE ** (-2 * 1 / 8)
    alone = np.cos(positions.astype(np.float32) * np.float32(frequency))
    assert np.abs(alone - np.cos(positions * frequency)).max() > 1e-3


def test_scores_depend_on_distances_alone() -> None:
    draw = np.random.default_rng(0)
    q, k = (np.repeat(draw.standard_normal((1, 16)), 3, axis=0) for _ in range(2))
    starts = np.asarray([0, 12_345, 1_000_000])
    scores = jnp.sum(turned(q, starts + 7) * turned(k, starts), axis=-1)
    np.testing.assert_allclose(scores, np.broadcast_to(scores[0], 3), rtol=1e-5)


def test_position_0_turns_nothing_and_lengths_stay() -> None:
    x = np.random.default_rng(1).standard_normal((4, 6))
    np.testing.assert_allclose(turned(x, np.zeros(4)), x, rtol=1e-6)
    np.testing.assert_allclose(jnp.linalg.norm(turned(x, np.arange(4)), axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-6)


def test_a_fraction_of_the_channels_turns_and_the_others_pass() -> None:
    x = np.random.default_rng(2).standard_normal((5, 8))
    got = turned(x, np.arange(1, 6), fraction=0.5)
    np.testing.assert_array_equal(got[:, 4:], x[:, 4:].astype(np.float32))
    np.testing.assert_allclose(got[:, :4], turned(x[:, :4], np.arange(1, 6)), rtol=1e-6)
    assert [turned_channels(8, fraction) for fraction in (0.0, 0.2, 0.5, 0.9, 1.0)] == [0, 0, 4, 6, 8]


def test_the_dtype_stays_and_the_angles_do_not_suffer() -> None:
    x = jnp.ones((1, 1, 1, 4), jnp.bfloat16)
    far = jnp.full((1, 1), 1_000_003, jnp.int32)
    got = rotate(x, far, base=BASE)
    assert got.dtype == jnp.bfloat16
    wide = rotate(x.astype(jnp.float32), far, base=BASE)
    np.testing.assert_allclose(got.astype(jnp.float32), wide, atol=0.01)
    assert jax.eval_shape(lambda x: rotate(x, far, base=BASE), x).shape == x.shape
