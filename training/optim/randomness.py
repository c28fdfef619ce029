"""What is random in a step: the probes of the norm estimates and the signs of the damping noise.

All of it is a function of the seed and the number of the step, so the state holds no key. One draw serves all stacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from training.optim.blocks import Layout
from training.optim.kron_config import FactorDtype, KronConfig

PROBES = 32
"""Random vectors for the estimate of a norm."""
PROBES_BFLOAT16 = 128
"""The same for factors of lower precision."""

Probes = Callable[[Array, tuple[int, int]], Array]
"""From a key and a shape (k, d), as `jax.random.normal`."""


class Randomness(NamedTuple):
    """What is random in the refresh of one stack at one step; its rows share it."""

    probes: tuple[Array, ...]
    """For each axis, vectors (k, d) for the estimate of norms."""
    signs: tuple[Array, ...]
    """For each axis, the signs (d,) of the damping noise."""
    key: Array
    """For a geometry that needs more."""


def draw(layout: Layout, step: Int[Array, ""], config: KronConfig, probes: Probes) -> dict[str, Randomness]:
    """The randomness of a step for every stack, by its name."""
    if not layout.groups:
        return {}
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), step), 3)
    sizes = [size for group in layout.groups for size in group.shape]
    cuts = np.cumsum(sizes)[:-1].tolist()
    count = PROBES if config.factor_dtype is FactorDtype.FLOAT32 else PROBES_BFLOAT16
    vectors = jnp.split(probes(keys[0], (count, sum(sizes))), cuts, axis=1)
    signs = jnp.split(jax.random.rademacher(keys[1], (sum(sizes),), jnp.float32), cuts)
    drawn = {}
    for number, group in enumerate(layout.groups):
        first = sum(len(before.shape) for before in layout.groups[:number])
        axes = slice(first, first + len(group.shape))
        key = jax.random.fold_in(keys[2], number)
        drawn[group.name] = Randomness(probes=tuple(vectors[axes]), signs=tuple(signs[axes]), key=key)
    return drawn
