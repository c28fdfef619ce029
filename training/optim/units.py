"""Units: what is treated as one parameter when sizes are judged. A unit is one layer of one leaf."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from training.optim.blocks import Layout


@final
@dataclass(frozen=True, kw_only=True)
class Units:
    """Which unit every row of every stack belongs to."""

    rows: Mapping[str, np.ndarray]
    """For each stack, the unit of each row, int32."""
    numbers: np.ndarray
    """How many numbers each unit has, fp32."""

    @property
    def count(self) -> int:
        """How many units there are."""
        return len(self.numbers)


def units_of(layout: Layout) -> Units:
    """The units of a layout, in the order of its leaves."""
    trained = [leaf if leaf.trained else None for leaf in layout.leaves]
    starts = np.cumsum([0, *(leaf.layers if leaf else 0 for leaf in trained)])
    numbers = [np.full(leaf.layers, math.prod(leaf.axes)) for leaf in trained if leaf]
    rows = {}
    for group in layout.groups:
        parts = [np.repeat(starts[region.leaf] + np.arange(region.layers), region.blocks) for region in group.regions]
        rows[group.name] = np.concatenate(parts).astype(np.int32)
    return Units(rows=rows, numbers=np.concatenate([*numbers, []]).astype(np.float32))


def unit_magnitudes(layout: Layout, leaves: Sequence[Array]) -> Float[Array, " units"]:
    """The mean absolute value of each unit. A sum neither over- nor underflows where squares would."""
    sums = [
        jnp.sum(jnp.abs(value.astype(jnp.float32)).reshape(leaf.layers, -1), axis=1) / math.prod(leaf.axes)
        for leaf, value in zip(layout.leaves, leaves, strict=True)
        if leaf.trained
    ]
    return jnp.concatenate(sums) if sums else jnp.zeros(0)
