"""Which blocks are refreshed at a step: all of them at first, then an equal share, in an order fixed by the step alone.

A step refreshes a range of the chunks of a stack, in a loop whose bounds are data. So the dense phase and the rotation
are one program, nothing is computed that is not used, and every block is refreshed exactly once in `refresh_period`
steps.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from training.optim.chunks import Chunks
from training.optim.kron_config import KronConfig


def chunk_range(
    step: Int[Array, ""], chunks: Chunks, offset: int, config: KronConfig
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """The first chunk of a step, and the one after its last. `offset` sets the turns of the stacks apart."""
    period = config.refresh_period
    slot = (step + offset) % period
    dense = step < config.dense_steps
    first = jnp.where(dense, 0, slot * chunks.count // period)
    end = jnp.where(dense, chunks.count, (slot + 1) * chunks.count // period)
    return first, end


def is_balanced(step: Int[Array, ""], config: KronConfig) -> Bool[Array, ""]:
    """Whether the refreshes of this step balance: every block's once in `balance_every` of its refreshes."""
    after = jnp.maximum(step - config.dense_steps, 0)
    rounds = jnp.minimum(step, config.dense_steps) + after // config.refresh_period
    return rounds % config.balance_every == 0


def precondition_rate(step: Int[Array, ""], config: KronConfig) -> Float[Array, ""]:
    """The step size of the factors: on a cosine from its start to its end over `anneal_steps`."""
    start, end = config.precondition_rate, config.final_rate
    progress = jnp.minimum(step.astype(jnp.float32) / config.anneal_steps, 1.0)
    return end + 0.5 * (start - end) * (1 + jnp.cos(jnp.pi * progress))
