"""The cap on the global norm, for gradients of every size."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.optim.clip import clip_by_global_norm, shrinkage

GRADS = {"a": np.array([[3.0, 0.0], [0.0, 4.0]], np.float32), "b": np.array([12.0, 0.0], np.float32)}
"""Its norm is 13."""


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1.0, 1e15, 1e18, 1e30])
def test_a_long_gradient_is_scaled_to_the_cap(size: float) -> None:
    cap = 6.5 * size
    factor = jax.jit(lambda grads: shrinkage(grads, cap))(jax.tree.map(lambda leaf: leaf * np.float32(size), GRADS))
    # The square of 1e-30 is zero in fp32, and such a gradient shorter than any cap that can be written down in earnest.
    assert float(factor) == pytest.approx(1.0 if size < 1e-20 else 0.5, rel=1e-5)


def test_a_short_one_keeps_its_bits() -> None:
    clipped, _ = clip_by_global_norm(14.0).update(jax.tree.map(jnp.asarray, GRADS), clip_by_global_norm(14.0).init({}))
    for name, leaf in GRADS.items():
        np.testing.assert_array_equal(clipped[name], leaf)


@pytest.mark.parametrize("grads", [{}, {"zero": jnp.zeros(3)}])
def test_a_gradient_of_length_zero_stays_it(grads: dict[str, jax.Array]) -> None:
    assert float(shrinkage(grads, 1.0)) == 1.0
