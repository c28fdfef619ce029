"""The feed-forward of a block."""

from __future__ import annotations

from typing import final

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from training.mixers.projection import Projection
from training.sharding import Axis, constrain


@final
class SwiGLU(eqx.Module):
    """`down(silu(gate(x)) * up(x))`: a feed-forward whose hidden units are gated (https://arxiv.org/abs/2002.05202)."""

    gate_proj: Projection
    up_proj: Projection
    down_proj: Projection

    @staticmethod
    def init(d_model: int, d_hidden: int, *, n_layers: int, key: PRNGKeyArray) -> SwiGLU:
        """Fresh parameters in fp32, of a block among `n_layers`; what goes back is scaled down by the depth."""
        of_gate, of_up, of_down = jax.random.split(key, 3)
        return SwiGLU(
            gate_proj=Projection.inward(d_model, d_hidden, key=of_gate),
            up_proj=Projection.inward(d_model, d_hidden, key=of_up),
            down_proj=Projection.outward(d_hidden, d_model, n_layers=n_layers, key=of_down),
        )

    def __call__(self, x: Float[Array, "*tokens model"]) -> Float[Array, "*tokens model"]:
        """Each token by itself."""
        hidden = jax.nn.silu(self.gate_proj(x)) * self.up_proj(x)
        if hidden.ndim == 3:
            hidden = constrain(hidden, Axis.BATCH, Axis.TIME, Axis.INNER)
        return self.down_proj(hidden)
