"""Linear attention whose weights are divided by their sum, as those of softmax attention are."""

from __future__ import annotations

from typing import Final

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from training.mixers.dispatch import linear_attention

EPS: Final = 1e-12
"""Added to the sum of the weights, which is 0 where there is no token."""


def normalised_attention(
    q: Float[Array, "batch time heads dk"],
    k: Float[Array, "batch time heads dk"],
    v: Float[Array, "batch time heads dv"],
    *,
    memory: Float[Array, "batch heads dk dv_and_one"] | None,
    segments: Int[Array, "batch time"],
    chunk: int,
) -> tuple[Float[Array, "batch time heads dv"], Float[Array, "batch heads dk dv_and_one"]]:
    """Means of the values under the weights q·k, which must be positive: without decay, in fp32.

    The sum of the weights is the attention to a value of one: a column of ones goes along with the values, and the last
    column of the memory is the sum of the keys.
    """
    with_one = jnp.concatenate([v, jnp.ones_like(v[..., :1])], axis=-1)
    no_decay = jnp.zeros(v.shape[2], jnp.float32)
    out, memory = linear_attention(q, k, with_one, no_decay, state=memory, segments=segments, chunk=chunk)
    return out[..., :-1] / (out[..., -1:] + EPS), memory
