"""What the factors descend to, and that nothing drives them out of the positive definite matrices."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jaxtyping import Array

from training.optim.factor_kind import Kind
from training.optim.kron_config import KronConfig
from training.optim.kron_state import StackState
from training.optim.norms import spectral_norm
from training.optim.randomness import Randomness
from training.optim.refresh import Blocks, Pace, refresh_rows

UPDATES = 10_000
RATES = (0.5, 0.1, 0.05, 0.01)


def identity_stack(shape: tuple[int, ...], kinds: tuple[Kind, ...], rows: int) -> StackState:
    """Factors of 1 for rows of blocks."""
    q = [jnp.eye(d) if kind is Kind.DENSE else jnp.ones(d) for d, kind in zip(shape, kinds, strict=True)]
    stack = tuple(jnp.tile(factor, (rows, *[1] * factor.ndim)) for factor in q)
    p = tuple(factor if kind is Kind.DENSE else None for factor, kind in zip(stack, kinds, strict=True))
    return StackState(q=stack, p=p, lipschitz=jnp.zeros((rows, len(shape))))


def randomness(key: Array, shape: tuple[int, ...]) -> Randomness:
    """Probes and signs for blocks of a shape."""
    keys = jax.random.split(key, 2 * len(shape))
    return Randomness(
        probes=tuple(jax.random.normal(k, (8, d)) for k, d in zip(keys, shape, strict=False)),
        signs=tuple(jax.random.rademacher(k, (d,), jnp.float32) for k, d in zip(keys[::-1], shape, strict=False)),
        key=key,
    )


def refreshed(state: StackState, gradient: Array, kinds: tuple[Kind, ...], key: Array, rate: Any) -> StackState:
    """One refresh with a gradient (rows, *block)."""
    axes = tuple(range(1, gradient.ndim))
    blocks = Blocks(
        gradient=gradient, preconditioned=None, magnitude=jnp.mean(jnp.abs(gradient), axis=axes), basis=None
    )
    pace = Pace(rate=rate, balance=jnp.array(False))
    return refresh_rows(state, blocks, kinds, randomness(key, gradient.shape[1:]), pace, KronConfig())


def spd(rng: np.random.Generator, size: int, condition: float) -> np.ndarray:
    """A symmetric matrix with eigenvalues from 1/condition to 1."""
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    values: np.ndarray = (basis * np.geomspace(1 / condition, 1, size)) @ basis.T
    return values


def power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    """A power of a symmetric positive definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    raised: np.ndarray = (vectors * values**exponent) @ vectors.T
    return raised


@functools.cache
def whitened_errors() -> tuple[np.ndarray, np.ndarray]:
    """Relative errors of P for G = A^(1/2) Z B^(1/2), 12 x 8, cond 10: for each rate, and for an annealed one."""
    rng = np.random.default_rng(0)
    a, b = spd(rng, 12, 10.0), spd(rng, 8, 10.0)
    left, right = jnp.asarray(power(a, 0.5), jnp.float32), jnp.asarray(power(b, 0.5), jnp.float32)
    kinds = (Kind.DENSE, Kind.DENSE)
    rows = len(RATES) + 1

    def step(state: StackState, index: Array) -> tuple[StackState, None]:
        key = jax.random.fold_in(jax.random.key(1), index)
        gradient = left @ jax.random.normal(key, (rows, 12, 8)) @ right
        annealed = 0.5 * 1e-3 ** (index / UPDATES)
        rates = jnp.concatenate([jnp.array(RATES), annealed[None]])
        return refreshed(state, gradient, kinds, key, rates), None

    final, _ = jax.jit(lambda s: lax.scan(step, s, jnp.arange(UPDATES)))(identity_stack((12, 8), kinds, rows))
    exact = np.kron(power(a, -0.5), power(b, -0.5))
    found = [np.kron(p, q) for p, q in zip(np.asarray(final.p[0]), np.asarray(final.p[1]), strict=True)]
    errors = np.array([np.linalg.norm(p - exact) / np.linalg.norm(exact) for p in found])
    return errors[:-1], errors[-1:]


@pytest.mark.parametrize("row", range(len(RATES)))
def test_factors_whiten_as_exactly_as_their_step_size_lets_them(row: int) -> None:
    assert whitened_errors()[0][row] <= 0.55 * RATES[row] ** 0.5


def test_an_annealed_step_size_whitens_to_three_percent() -> None:
    assert whitened_errors()[1][0] <= 0.03


def test_a_diagonal_factor_has_the_closed_form() -> None:
    # q^4 E g^2 = 1 for every number of a vector.
    sizes = jnp.array([[0.01, 0.3, 1.0, 7.0]])

    def step(state: StackState, index: Array) -> tuple[StackState, None]:
        key = jax.random.fold_in(jax.random.key(2), index)
        gradient = sizes * jax.random.rademacher(key, (1, 4), jnp.float32)
        return refreshed(state, gradient, (Kind.DIAGONAL,), key, 0.5), None

    final, _ = lax.scan(step, identity_stack((4,), (Kind.DIAGONAL,), 1), jnp.arange(3000))
    np.testing.assert_allclose(final.q[0] ** 4 * sizes**2, np.ones((1, 4)), rtol=1e-4)


def test_factors_stay_symmetric_and_positive_definite_over_a_hundred_thousand_refreshes() -> None:
    kinds = (Kind.DENSE, Kind.DENSE)
    scales = jnp.array([1.0, 0.0, 1e20, 1e-20, 1.0])

    def gradient(key: Array, index: Array) -> Array:
        full = jax.random.normal(key, (5, 4))
        rank_one = full[:, :1] * full[:1, :]
        return jnp.where(index % 5 == 4, rank_one, full * scales[index % 5])[None]

    def step(state: StackState, index: Array) -> tuple[StackState, tuple[Array, Array]]:
        key = jax.random.fold_in(jax.random.key(3), index)
        after = refreshed(state, gradient(key, index), kinds, key, 0.5)
        asymmetry = [jnp.max(jnp.abs(q - jnp.swapaxes(q, 1, 2))) / jnp.max(jnp.abs(q)) for q in after.q]
        return after, (jnp.max(jnp.stack(asymmetry)), jnp.stack([jnp.min(jnp.diagonal(q[0])) for q in after.q]))

    def thousand(state: StackState, number: Array) -> tuple[StackState, Any]:
        after, (asymmetry, diagonal) = lax.scan(step, state, 1000 * number + jnp.arange(1000))
        return after, (jnp.max(asymmetry), jnp.min(diagonal), after.q)

    _, (asymmetry, diagonal, factors) = jax.jit(lambda s: lax.scan(thousand, s, jnp.arange(100)))(
        identity_stack((5, 4), kinds, 1)
    )
    assert np.max(asymmetry) <= 1e-6
    assert np.min(diagonal) > 0
    for stack in factors:
        assert np.all(np.isfinite(stack))
        assert np.all(np.linalg.eigvalsh(np.asarray(stack, np.float64)) > 0)


def test_a_zero_gradient_leaves_the_bits_of_its_rows() -> None:
    kinds = (Kind.DENSE, Kind.DIAGONAL)
    key = jax.random.key(4)
    gradient = jax.random.normal(key, (2, 5, 4))
    state = identity_stack((5, 4), kinds, 2)
    once = jax.jit(lambda state, gradient: refreshed(state, gradient, kinds, key, 0.5))
    for _ in range(3):
        state = once(state, gradient)
    after = once(state, gradient.at[0].set(0.0))
    for old, new in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(new[0], old[0])
        assert np.any(new[1] != old[1])


def matrices() -> dict[str, np.ndarray]:
    """Symmetric positive semi-definite matrices, hard ones for the power method among them."""
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.standard_normal((48, 48)))[0]
    wide, low = rng.standard_normal((48, 200)), rng.standard_normal((48, 3))
    return {
        "identity": np.eye(48),
        "random": wide @ wide.T,
        "square": wide[:, :48] @ wide[:, :48].T,
        "low rank": low @ low.T,
        "rank one": low[:, :1] @ low[:, :1].T,
        "spike": (basis * np.r_[np.full(47, 0.5), 1]) @ basis.T,
        "wide spectrum": (basis * np.geomspace(1e-6, 1, 48)) @ basis.T,
        "diagonal": np.diag(np.linspace(0, 1, 48)),
        "tiny": 1e-25 * wide @ wide.T,
        "huge": 1e25 * wide @ wide.T,
    }


@pytest.mark.parametrize("name", matrices())
def test_the_norm_estimate_is_a_close_lower_bound(name: str) -> None:
    matrix = matrices()[name]
    probes = jax.random.normal(jax.random.key(6), (32, 48))
    found = spectral_norm(jnp.asarray(matrix, jnp.float32)[None], probes)[0]
    ratio = float(found) / np.linalg.norm(matrix, 2)
    assert 0.5**0.5 - 1e-3 <= ratio <= 1 + 1e-5


def test_the_norm_of_zero_is_zero() -> None:
    assert spectral_norm(jnp.zeros((1, 8, 8)), jnp.ones((4, 8)))[0] == 0
