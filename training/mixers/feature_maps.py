"""Maps of queries and keys whose inner products stand in for the exponential of softmax attention."""

from __future__ import annotations

from math import sqrt

import jax.numpy as jnp
from jaxtyping import Array, Float


def elu_plus_one(x: Float[Array, "*tokens d"]) -> Float[Array, "*tokens d"]:
    """elu(x) + 1: x + 1 above 0, exp(x) below; always positive (https://arxiv.org/abs/2006.16236)."""
    # Not by elu, which ends at -1: 1 more is 0 from -17 on, and a denominator of such features could vanish.
    return jnp.where(x > 0, x + 1, jnp.exp(jnp.minimum(x, 0)))


def taylor(x: Float[Array, "*tokens d"]) -> Float[Array, "*tokens features"]:
    """The features of BASED: phi(q)·phi(k) = 1 + q·k/sqrt(d) + (q·k)²/(2d), which is at least 1/2.

    1 + d + d(d+1)/2 features in place of 1 + d + d²: each product of two channels stands there once, with the weight of
    both its places. d = 16 needs 153 and not 273. Source: https://arxiv.org/abs/2402.18668.
    """
    d = x.shape[-1]
    squares = jnp.square(x) / sqrt(2 * d)
    crossed = [x[..., i : i + 1] * x[..., i + 1 :] / sqrt(d) for i in range(d - 1)]
    return jnp.concatenate([jnp.ones_like(x[..., :1]), x / d**0.25, squares, *crossed], axis=-1)


def taylor_features(d: int) -> int:
    """How many features `taylor` makes of `d` channels."""
    return 1 + d + d * (d + 1) // 2
