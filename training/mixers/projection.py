"""Linear maps between the residual stream and the inside of a mixer."""

from __future__ import annotations

from math import sqrt
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from einops import einsum
from jaxtyping import Array, Float, PRNGKeyArray


@final
class Projection(eqx.Module):
    """A linear map without bias; its weight is (out, in), as in most files of weights."""

    weight: Float[Array, "outputs inputs"]

    @staticmethod
    def inward(d_model: int, outputs: int, *, key: PRNGKeyArray) -> Projection:
        """From the residual stream: normal with variance 1/inputs, which keeps the variance of the input."""
        return Projection(jax.random.normal(key, (outputs, d_model), jnp.float32) / sqrt(d_model))

    @staticmethod
    def outward(inputs: int, d_model: int, *, n_layers: int, key: PRNGKeyArray) -> Projection:
        """Back onto the residual stream: scaled down further by sqrt(2 n_layers), so that all layers together add the
        variance of one (Radford et al. 2019, section 2.3)."""
        scale = 1 / sqrt(inputs * 2 * n_layers)
        return Projection(jax.random.normal(key, (d_model, inputs), jnp.float32) * scale)

    def __call__(self, x: Float[Array, "*tokens inputs"]) -> Float[Array, "*tokens outputs"]:
        """The image of every vector."""
        return einsum(x, self.weight, "... inputs, outputs inputs -> ... outputs")
