"""What is computed from a stack of blocks and its factors: P applied, its Gram matrices, and the damping noise."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from training.optim.factor_kind import Kind
from training.optim.geometries import Evidence, Statistic, Statistics
from training.optim.norms import TINY, spectral_norm


def apply_factor(factor: Array, kind: Kind, blocks: Array, axis: int, precision: str) -> Array:
    """One factor, symmetric (rows, d, d) or diagonal (rows, d), applied along an axis of the blocks (rows, *block)."""
    if kind is Kind.DIAGONAL:
        shape = [1] * blocks.ndim
        shape[0], shape[axis + 1] = factor.shape
        return blocks * factor.reshape(shape)
    letters = string.ascii_lowercase[: blocks.ndim - 1]
    before, after = letters.replace(letters[axis], "y"), letters.replace(letters[axis], "z")
    # Of a symmetric factor either index may be summed over; a CPU is faster with the second.
    return jnp.einsum(f"Nzy,N{before}->N{after}", factor, blocks, precision=precision)


def apply_factors(factors: Sequence[Array], kinds: Sequence[Kind], blocks: Array, precision: str) -> Array:
    """All factors applied to the blocks, the first axis first."""
    for axis, (factor, kind) in enumerate(zip(factors, kinds, strict=True)):
        blocks = apply_factor(factor, kind, blocks, axis, precision)
    return blocks


def mean_magnitude(blocks: Float[Array, rows * block]) -> Float[Array, " rows"]:
    """The mean of the absolute values of each block: unlike squares, it neither over- nor underflows."""
    axes = tuple(range(1, blocks.ndim))
    return jnp.sum(jnp.abs(blocks), axis=axes) / math.prod(blocks.shape[1:])


def expand(per_row: Float[Array, " rows"], ndim: int) -> Array:
    """Numbers of rows, to be multiplied with stacks of `ndim` axes."""
    return per_row.reshape(-1, *[1] * (ndim - 1))


def damping_noise(
    factors: Sequence[Array], kinds: Sequence[Kind], signs: Sequence[Array], size: Float[Array, " rows"], precision: str
) -> Array:
    """P applied to noise of that size.

    The noise is an outer product of random signs, one vector an axis. It has the same second moments as independent
    noise in every element has, on which alone the expected step depends, and costs a matrix-vector product.
    """
    noise = expand(size, 1 + len(kinds))
    for axis, (factor, kind, sign) in enumerate(zip(factors, kinds, signs, strict=True)):
        vector = factor * sign if kind is Kind.DIAGONAL else jnp.einsum("Nij,j->Ni", factor, sign, precision=precision)
        shape = [1] * (1 + len(kinds))
        shape[0], shape[axis + 1] = vector.shape
        noise = noise * vector.reshape(shape)
    return noise


def gram(blocks: Array, kind: Kind, axis: int, precision: str) -> Array:
    """The contraction of blocks with themselves over all axes but one; for a diagonal kind, the diagonal of that."""
    if kind is Kind.DIAGONAL:
        return jnp.sum(blocks * blocks, axis=tuple(i for i in range(1, blocks.ndim) if i != axis + 1))
    lines = jnp.moveaxis(blocks, axis + 1, 1).reshape(blocks.shape[0], blocks.shape[axis + 1], -1)
    if axis:
        # Kept apart from the product: one that sums over first indices costs a CPU more than the transposition.
        lines = lax.optimization_barrier(lines)  # type: ignore[no-untyped-call]
    return jnp.einsum("Nyi,Nzi->Nyz", lines, lines, precision=precision)


def gram_statistics(evidence: Evidence) -> Statistics:
    """T1 = the Gram matrix of the preconditioned gradient, t2 = numbers in a block / size of the axis."""
    whitened = evidence.preconditioned
    scale = jnp.maximum(evidence.magnitude, 1)
    unit = scale * scale
    scaled = whitened * expand(1 / scale, whitened.ndim)
    count = math.prod(whitened.shape[1:])
    axes = []
    for axis, (kind, probes) in enumerate(zip(evidence.kinds, evidence.probes, strict=True)):
        excess = gram(scaled, kind, axis, evidence.precision)
        target = count / whitened.shape[axis + 1] / unit
        norm = (
            jnp.max(excess, axis=1)
            if kind is Kind.DIAGONAL
            else spectral_norm(excess, probes, precision=evidence.precision)
        )
        axes.append(Statistic(excess=excess, target=target, bound=norm + target + TINY))
    return Statistics(axes=tuple(axes), unit=unit)
