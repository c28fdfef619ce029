"""Embeddings of tokens, at both ends of the model."""

from __future__ import annotations

from math import sqrt
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from training.sharding import Axis, gather


@final
class Embedding(eqx.Module):
    """A vector a token, of variance 1/d_model; scaled by sqrt(d_model) where it enters the residual stream.

    A tied embedding has two tasks with two scales. As the output it is a projection, whose rows should have norm 1, so
    that hidden states behind a norm give logits of variance 1. As the input it should have variance 1 in each channel,
    as what the blocks add to it has: the first norm then divides by no small number, which is what lets gradients spike
    early in training. Drawing the rows with variance 1/d and scaling the input by sqrt(d) is both. Sources: section 3.4
    of https://arxiv.org/abs/1706.03762; why it trains stably, https://arxiv.org/abs/2312.16903 ("scaled embed").
    """

    weight: Float[Array, "vocabulary model"]

    @staticmethod
    def init(vocab_size: int, d_model: int, *, key: PRNGKeyArray) -> Embedding:
        """Fresh vectors in fp32."""
        return Embedding(jax.random.normal(key, (vocab_size, d_model), jnp.float32) / sqrt(d_model))

    def __call__(self, tokens: Int[Array, "*tokens"]) -> Float[Array, "*tokens model"]:
        """The vectors of `tokens`; a token outside the vocabulary is NaN, not the last one's vector."""
        vectors = jnp.take(self.gathered_weight(), tokens, axis=0, mode="fill", fill_value=jnp.nan)
        return vectors * jnp.asarray(sqrt(self.weight.shape[1]), self.weight.dtype)

    def gathered_weight(self) -> Float[Array, "vocabulary model"]:
        """The weight as it is used: whole in its channels on every device."""
        return gather(self.weight, Axis.VOCABULARY, Axis.MODEL)
