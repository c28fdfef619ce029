"""A sample of text, to see with one's own eyes what a model has learnt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from training.model.decoding import init_state, prefill, step
from training.model.language_model import LanguageModel
from training.model.precision import cast_for_compute

Sampler = Callable[[LanguageModel, Int[Array, " prompt"], PRNGKeyArray], Int[Array, " new"]]
"""(model, prompt, key) -> the tokens that follow."""


def make_sampler(*, tokens: int, temperature: float, compute: jnp.dtype[Any]) -> Sampler:
    """A sampler of so many tokens, compiled at its first call; at temperature 0 it takes the likeliest each time."""

    def choose(logits: Array, key: PRNGKeyArray) -> Array:
        if temperature == 0:
            return jnp.argmax(logits, axis=-1)
        return jax.random.categorical(key, logits / temperature)

    @jax.jit
    def sample(model: LanguageModel, prompt: Int[Array, " prompt"], key: PRNGKeyArray) -> Int[Array, " new"]:
        model = cast_for_compute(model, compute)
        state = init_state(model, 1, context=prompt.shape[0] + tokens)
        lengths = jnp.array([prompt.shape[0]], jnp.int32)
        logits, state = prefill(model, prompt[None], lengths, None, state)

        def one(carry: tuple[Array, Any], key: PRNGKeyArray) -> tuple[tuple[Array, Any], Array]:
            logits, state = carry
            token = choose(logits, key)
            return step(model, token, jnp.ones(1, bool), state), token[0]

        _, chosen = jax.lax.scan(one, (logits, state), jax.random.split(key, tokens))
        return chosen

    return sample
