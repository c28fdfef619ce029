"""The options of the compiler: only where they help, known to it, and of no consequence to the numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.compiling import compiler_options


@pytest.mark.parametrize("version", [(0, 10, 0), (0, 10, 2)])
def test_products_on_a_cpu_of_jax_0_10_are_told_where_to_go(version: tuple[int, ...]) -> None:
    assert compiler_options("cpu", version)


@pytest.mark.parametrize(
    ("platform", "version"), [("cpu", (0, 9, 2)), ("cpu", (0, 11, 0)), ("cpu", (0, 12, 0, 1)), ("tpu", (0, 10, 2))]
)
def test_nothing_is_said_where_the_default_is_best(platform: str, version: tuple[int, ...]) -> None:
    assert compiler_options(platform, version) == {}


def test_the_compiler_here_takes_the_options() -> None:
    stack = jax.random.normal(jax.random.key(0), (4, 128, 128))
    product = jax.jit(jnp.matmul, compiler_options=compiler_options())(stack, stack)
    exact = np.asarray(stack, np.float64) @ np.asarray(stack, np.float64)
    np.testing.assert_allclose(product, exact, atol=1e-3)
