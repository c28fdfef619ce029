"""Caps on what a preconditioner may give: the RMS of each layer's leaf, and each number by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from training.optim.norms import TINY
from training.optim.statistics import expand, mean_magnitude
from training.optim.units import Units


class BlockSize(NamedTuple):
    """How large the blocks of a stack are, in a form that holds for numbers of 1e30."""

    magnitude: Float[Array, " rows"]
    """The mean absolute value."""
    squares: Float[Array, " rows"]
    """The sum of the squares of what has been divided by it."""


def block_size(blocks: Float[Array, rows * block]) -> BlockSize:
    """The size of each block."""
    magnitude = mean_magnitude(blocks)
    scaled = blocks * expand(1 / (magnitude + TINY), blocks.ndim)
    return BlockSize(magnitude=magnitude, squares=jnp.sum(scaled * scaled, axis=tuple(range(1, blocks.ndim))))


def rms_factors(units: Units, sizes: Mapping[str, BlockSize], cap: float) -> dict[str, Float[Array, " rows"]]:
    """What the rows of each stack are multiplied with so that the RMS of their unit is at most `cap`."""
    if not units.rows:
        return {}
    unit_of_row = np.concatenate(list(units.rows.values()))
    magnitude = jnp.concatenate([sizes[name].magnitude for name in units.rows])
    squares = jnp.concatenate([sizes[name].squares for name in units.rows])
    largest = jax.ops.segment_max(magnitude, unit_of_row, num_segments=units.count)
    share = magnitude / (largest[unit_of_row] + TINY)
    total = jax.ops.segment_sum(squares * share * share, unit_of_row, num_segments=units.count)
    rms = largest * jnp.sqrt(total / units.numbers)
    factor = jnp.minimum(1.0, cap / (rms + TINY))
    return {name: factor[rows] for name, rows in units.rows.items()}
