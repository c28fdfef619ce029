"""Root mean square normalisation, computed in fp32 whatever comes in."""

from __future__ import annotations

from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from training.mixers.precision import accumulation_dtype


@final
class RMSNorm(eqx.Module):
    """Vectors divided by their root mean square, then scaled channel by channel (https://arxiv.org/abs/1910.07467)."""

    weight: Float[Array, " channels"]
    """fp32 in any model."""
    eps: float = eqx.field(static=True)
    """Added to the mean square."""

    @staticmethod
    def init(channels: int, *, eps: float = 1e-6) -> RMSNorm:
        """Scales of one."""
        return RMSNorm(weight=jnp.ones(channels, jnp.float32), eps=eps)

    def __call__(self, x: Float[Array, "*tokens channels"]) -> Float[Array, "*tokens channels"]:
        """Each vector by itself; the dtype is that of `x`."""
        return (rms_normalised(x, self.eps) * self.weight).astype(x.dtype)


def rms_normalised(x: Float[Array, "*tokens channels"], eps: float) -> Float[Array, "*tokens channels"]:
    """Each vector divided by its root mean square, in fp32 or better."""
    wide = x.astype(accumulation_dtype(x))
    return wide * jax.lax.rsqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + eps)
