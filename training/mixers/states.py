"""The state of mixers that remember in a space of fixed size, and decoding by them."""

from __future__ import annotations

from typing import TypeVar, final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from training.mixers.mixer import AbstractMixer

StateT = TypeVar("StateT", bound=eqx.Module)


@final
class RecurrentState(eqx.Module):
    """What a mixer over the recurrence knows of the tokens before."""

    memory: Float[Array, "batch heads dk dv"]
    """fp32 in any model: a sum over all tokens."""
    tails: tuple[Float[Array, "batch tail _"], ...]
    """The last inputs of each short convolution, in the order in which the mixer names them."""


def step_as_stretch(
    mixer: AbstractMixer[StateT],
    x: Float[Array, "batch model"],
    position: Int[Array, " batch"],
    active: Bool[Array, " batch"],
    state: StateT,
) -> tuple[Float[Array, "batch model"], StateT]:
    """One token as a stretch of one: rows that are not active are padding, which changes no bit of a state."""
    out, after = mixer(x[:, None], position[:, None], active[:, None].astype(jnp.int32), state)
    assert after is not None  # a state went in
    return out[:, 0], after


def empty_memory(batch: int, heads: int, dk: int, dv: int) -> Float[Array, "batch heads dk dv"]:
    """A memory of nothing."""
    return jnp.zeros((batch, heads, dk, dv), jnp.float32)
