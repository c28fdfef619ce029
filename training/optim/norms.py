"""The spectral norm of a stack of symmetric positive semi-definite matrices, by matrix products alone."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

TINY = 2.0**-126
"""The smallest normal number of fp32, added to a divisor that may be zero."""


def spectral_norm(
    matrices: Float[Array, "rows d d"],
    probes: Float[Array, "k d"],
    *,
    half_iterations: int = 2,
    precision: str = "highest",
) -> Float[Array, " rows"]:
    """A lower bound of the largest eigenvalue of each matrix, rarely below 1/sqrt(2) of it; 0 for a zero matrix.

    Subspace iteration from the random `probes`, each of them added to the largest row of the matrix with the sign that
    makes them agree, so that a matrix of low rank is found at once. A matrix is divided by its largest diagonal entry
    first, which keeps products of entries such as 1e-20 from underflowing.
    """
    scale = jnp.max(jnp.diagonal(matrices, axis1=1, axis2=2), axis=1) + TINY
    unit = matrices / scale[:, None, None]
    largest = jnp.argmax(jnp.sum(unit * unit, axis=2), axis=1)
    row = jnp.take_along_axis(unit, largest[:, None, None], axis=1)
    signs = jnp.sign(jnp.einsum("nid,kd->nk", row, probes, precision=precision))
    vectors = row + signs[:, :, None] * probes
    for _ in range(half_iterations):
        vectors = jnp.matmul(vectors, unit, precision=precision)
        lengths = jnp.sqrt(jnp.sum(vectors * vectors, axis=2, keepdims=True))
        vectors = jnp.matmul(vectors / (lengths + TINY), unit, precision=precision)
    return scale * jnp.sqrt(jnp.max(jnp.sum(vectors * vectors, axis=2), axis=1))
