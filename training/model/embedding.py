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
    """A vector a token, with norm 1 in the mean: variance 1/d_model in each channel, and no factor where it enters.

    As the output of a model with tied embeddings it gives logits of variance 1 from hidden states behind a norm, so
    that a fresh model loses ln V + 1/2. Scaled by sqrt(d_model) as the input, as in section 3.4 of
    https://arxiv.org/abs/1706.03762, the token just read would outweigh what the blocks add to it, and a tied output
    would predict it again, by a logit of about sqrt(d_model / 2). GPT-2 and its heirs draw embeddings as small and do
    not scale them: 0.02 is 1/sqrt(d_model) at 2500 channels. What that asks of the first norm, and what a factor would
    be good for: https://arxiv.org/abs/2312.16903.
    """

    weight: Float[Array, "vocabulary model"]

    @staticmethod
    def init(vocab_size: int, d_model: int, *, key: PRNGKeyArray) -> Embedding:
        """Fresh vectors in fp32."""
        return Embedding(jax.random.normal(key, (vocab_size, d_model), jnp.float32) / sqrt(d_model))

    def __call__(self, tokens: Int[Array, "*tokens"]) -> Float[Array, "*tokens model"]:
        """The vectors of `tokens`; a token outside the vocabulary is NaN, not the last one's vector."""
        return jnp.take(self.gathered_weight(), tokens, axis=0, mode="fill", fill_value=jnp.nan)

    def gathered_weight(self) -> Float[Array, "vocabulary model"]:
        """The weight as it is used: whole in its channels on every device."""
        return gather(self.weight, Axis.VOCABULARY, Axis.MODEL)
