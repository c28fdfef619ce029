"""The scale of the preconditioner taken from the first gradient, for `initial_scale: null`."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from training.optim.blocks import Layout
from training.optim.kron_config import KronConfig
from training.optim.kron_state import StackState
from training.optim.statistics import expand
from training.optim.units import Units, units_of


def scale_first(
    layout: Layout,
    stacks: Mapping[str, StackState],
    gradients: Mapping[str, Array],
    magnitudes: Float[Array, " units"],
    config: KronConfig,
) -> Mapping[str, StackState]:
    """Stacks whose rows that see their first gradient have Q = (mean g^4 + damping^4)^(-1/8); the others as they are.

    The mean is over a layer's leaf. A leaf whose gradient is zero waits for one that is not.
    """
    if config.initial_scale is not None or not layout.groups:
        return stacks
    units = units_of(layout)
    new = {name: (stacks[name].lipschitz[:, 0] == 0) & (magnitudes[rows] > 0) for name, rows in units.rows.items()}
    any_new = jnp.any(jnp.concatenate([jnp.any(rows)[None] for rows in new.values()]))
    scaled: Mapping[str, StackState] = lax.cond(
        any_new,
        lambda before: _scaled(before, new, _first_scales(units, gradients, magnitudes, config)),
        lambda before: before,
        dict(stacks),
    )
    return scaled


def _first_scales(
    units: Units, gradients: Mapping[str, Array], magnitudes: Float[Array, " units"], config: KronConfig
) -> dict[str, Float[Array, " rows"]]:
    """The scale of Q for each row, from fourth powers of numbers divided by their mean, which do not overflow."""
    total = jnp.zeros(units.count)
    for name, rows in units.rows.items():
        blocks = gradients[name]
        ratio = jnp.abs(blocks) / expand(magnitudes[rows] + config.damping, blocks.ndim)
        fourth = jnp.sum(ratio**4, axis=tuple(range(1, blocks.ndim)))
        total = total + jax.ops.segment_sum(fourth, rows, num_segments=units.count)
    size = magnitudes + config.damping
    scale = (total / units.numbers + (config.damping / size) ** 4) ** -0.125 / jnp.sqrt(size)
    return {name: scale[rows] for name, rows in units.rows.items()}


def _scaled(
    stacks: Mapping[str, StackState], new: Mapping[str, Array], scales: Mapping[str, Float[Array, " rows"]]
) -> dict[str, StackState]:
    """The stacks with the new rows scaled."""
    after = {}
    for name, stack in stacks.items():
        each = jnp.where(new[name], scales[name] ** (1 / len(stack.q)), 1.0)
        q = tuple((factor * expand(each, factor.ndim)).astype(factor.dtype) for factor in stack.q)
        p = tuple(None if old is None else (old * expand(each * each, old.ndim)).astype(old.dtype) for old in stack.p)
        after[name] = StackState(q=q, p=p, lipschitz=stack.lipschitz)
    return after
