"""The small parts of mixers: norms, feature maps, short convolutions, runs of documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from training.mixers.documents import runs_of
from training.mixers.feature_maps import elu_plus_one, taylor, taylor_features
from training.mixers.norm import RMSNorm
from training.mixers.short_convolution import ShortConvolution, convolved


def quickly(call: Callable[..., Any]) -> Any:
    """`call` compiled without the optimisations that take the time."""
    return jax.jit(call, compiler_options={"xla_backend_optimization_level": 0})


def convolve(convolution: ShortConvolution, x: Array, segments: list[list[int]], tail: Array | None = None) -> Any:
    call = quickly(lambda convolution, x, segments, tail: convolution(x, runs_of(segments), tail))
    return call(convolution, x, jnp.asarray(segments, jnp.int32), tail)


def test_a_norm_divides_by_the_root_mean_square() -> None:
    norm = RMSNorm(weight=jnp.asarray([1.0, 2.0]), eps=0.0)
    np.testing.assert_allclose(norm(jnp.asarray([[3.0, 4.0]])), [[3 / 12.5**0.5, 8 / 12.5**0.5]], rtol=1e-6)


def test_a_norm_computes_in_fp32_and_gives_back_the_dtype() -> None:
    x = jnp.full((1, 4096), 1e-3, jnp.bfloat16).at[0, 0].set(3.0)
    got = RMSNorm.init(4096)(x)
    assert got.dtype == jnp.bfloat16
    wide = np.asarray(x, np.float64)
    np.testing.assert_allclose(got.astype(jnp.float32), wide / np.sqrt((wide**2).mean() + 1e-6), rtol=0.01)


def test_a_norm_of_nothing_is_nothing_and_has_a_gradient() -> None:
    norm = RMSNorm.init(3)
    assert not jnp.any(norm(jnp.zeros((1, 3))))
    assert bool(jnp.all(jnp.isfinite(jax.grad(lambda x: jnp.sum(norm(x)))(jnp.zeros((1, 3))))))


def test_elu_plus_one_is_positive_where_elu_has_ended() -> None:
    x = jnp.asarray([-80.0, -20.0, -1.0, 0.0, 2.0])
    np.testing.assert_allclose(elu_plus_one(x), [*np.exp([-80.0, -20.0, -1.0, 0.0]), 3.0], rtol=1e-5)
    assert bool(jnp.all(elu_plus_one(x) > 0))


@pytest.mark.parametrize("d", [1, 2, 5, 16])
def test_compact_taylor_features_have_the_inner_products_of_the_full_ones(d: int) -> None:
    draw = np.random.default_rng(d)
    q, k = draw.standard_normal((2, 7, d))

    def full(x: np.ndarray) -> np.ndarray:
        square = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1) / (2**0.5 * d**0.5)
        return np.concatenate([np.ones((len(x), 1)), x / d**0.25, square], axis=1)

    features = quickly(taylor)(jnp.asarray(np.stack([q, k]), jnp.float32))
    assert features.shape == (2, 7, taylor_features(d))
    got = np.asarray(features[0]) @ np.asarray(features[1]).T
    np.testing.assert_allclose(got, full(q) @ full(k).T, rtol=1e-5)
    score = (q @ k.T) / d**0.5
    np.testing.assert_allclose(got, 1 + score + score**2 / 2, rtol=1e-5)


def test_sixteen_channels_make_153_features() -> None:
    assert taylor_features(16) == 153


def test_runs_count_documents_and_padding_bears_the_last() -> None:
    runs = runs_of(jnp.asarray([[4, 4, 2, 7, 0, 0], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]], jnp.int32))
    np.testing.assert_array_equal(runs.index, [[0, 0, 1, 2, 2, 2], [0] * 6, [0] * 6])
    np.testing.assert_array_equal(runs.count, [4, 6, 0])
    np.testing.assert_array_equal(runs.last, [2, 0, 0])


def test_a_convolution_sees_the_last_tokens_of_its_own_document() -> None:
    weight = jnp.asarray([[1000.0, 100.0, 10.0, 1.0]])
    convolution = ShortConvolution(weight=weight, bias=jnp.asarray([0.5]))
    x = jnp.asarray([[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [9.0]]])
    out, tail = convolve(convolution, x, [[1, 1, 1, 1, 2, 2, 0]])
    np.testing.assert_allclose(out[0, :6, 0], [1.5, 12.5, 123.5, 1234.5, 5.5, 56.5])
    np.testing.assert_array_equal(tail.ravel(), [0, 5, 6])
    more, tail = convolve(convolution, x[:, :2], [[3, 3]], tail)
    np.testing.assert_allclose(more.ravel(), [561.5, 5612.5])
    np.testing.assert_array_equal(tail.ravel(), [6, 1, 2])


def test_a_convolution_of_padding_keeps_the_tail_bit_for_bit() -> None:
    convolution = ShortConvolution.init(3, 4, key=jax.random.key(0))
    tail = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3, 3)), jnp.float32)
    _, after = convolve(convolution, jnp.ones((2, 5, 3)), [[0] * 5] * 2, tail)
    np.testing.assert_array_equal(after, tail)


def test_without_taps_inputs_pass() -> None:
    inputs = (jnp.ones((1, 2, 3)),)
    none = ShortConvolution.several((3,), 0, key=jax.random.key(0))
    assert convolved(none, inputs, runs_of(jnp.ones((1, 2), jnp.int32)), None) == (inputs, ())
