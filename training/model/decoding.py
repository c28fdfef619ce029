"""Going on from what was read: the state of the model, many tokens at once (prefill), and one at a time (step).

A state is batch first in every array: row `i` of each is all that the model knows of sequence `i`, so that rows are
copied, kept and put back without knowing what they are. Rows never mix: what stands in one changes no other.
"""

from __future__ import annotations

from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from training.model.documents import positions_in_documents
from training.model.language_model import LanguageModel, through_blocks


@final
class ModelState(eqx.Module):
    """What a batch of sequences has been read of."""

    position: Int[Array, " batch"]
    """Tokens of the present document that were read, int32."""
    mixers: tuple[Any, ...]
    """The state of the mixer at each place of the pattern; its arrays are (batch, repeat, ...)."""


def init_state(model: LanguageModel, batch: int, *, context: int) -> ModelState:
    """The state before the first token. `context` is the most tokens that a row will see, for mixers with a cache."""
    repeats = model.config.repeats

    def of_every_repeat(array: Array) -> Array:
        return jnp.repeat(array[:, None], repeats, axis=1)

    mixers = tuple(
        jax.tree.map(of_every_repeat, jax.tree.map(lambda a: a[0], block).mixer.init_state(batch, context=context))
        for block in model.blocks
    )
    return ModelState(position=jnp.zeros(batch, jnp.int32), mixers=mixers)


def prefill(
    model: LanguageModel,
    tokens: Int[Array, "batch time"],
    lengths: Int[Array, " batch"],
    segment_ids: Int[Array, "batch time"] | None,
    state: ModelState,
) -> tuple[Float[Array, "batch vocabulary"], ModelState]:
    """Read the first `lengths` tokens of each row, and give the logits behind the last of them in fp32.

    Each row goes on from its state. `segment_ids` number the documents of a row from 1, where it has several: the first
    goes on from the state, and the state that comes back is that of the last. A row of length 0 keeps its state bit for
    bit; its logits are void.
    """
    hidden, state = _read(model, tokens, lengths, segment_ids, state)
    last = jnp.maximum(lengths - 1, 0)
    return model.logits(jnp.take_along_axis(hidden, last[:, None, None], axis=1)[:, 0]), state


def prefill_all(
    model: LanguageModel,
    tokens: Int[Array, "batch time"],
    lengths: Int[Array, " batch"],
    segment_ids: Int[Array, "batch time"] | None,
    state: ModelState,
) -> tuple[Float[Array, "batch time vocabulary"], ModelState]:
    """As `prefill`, with the logits behind every token, to score a text; those from the length on are void."""
    hidden, state = _read(model, tokens, lengths, segment_ids, state)
    return model.logits(hidden), state


def step(
    model: LanguageModel, token: Int[Array, " batch"], active: Bool[Array, " batch"], state: ModelState
) -> tuple[Float[Array, "batch vocabulary"], ModelState]:
    """Read one token more a row, and give the logits behind it in fp32.

    A row that is not `active` keeps its state bit for bit; its logits are void.
    """
    x, mixers = through_blocks(
        model.blocks,
        model.embedding(jnp.where(active, token, 0)),
        state.mixers,
        lambda block, x, mixer: block.step(x, state.position, active, mixer),
    )
    position = state.position + active.astype(jnp.int32)
    return model.logits(model.final_norm(x)), ModelState(position=position, mixers=mixers)


def _read(
    model: LanguageModel, tokens: Array, lengths: Array, segment_ids: Array | None, state: ModelState
) -> tuple[Array, ModelState]:
    places = jnp.arange(tokens.shape[1])
    ids = jnp.ones_like(tokens) if segment_ids is None else segment_ids
    segments = jnp.where(places < lengths[:, None], ids, 0)
    positions = positions_in_documents(segments, first=state.position)
    x, mixers = through_blocks(
        model.blocks,
        model.embedding(jnp.where(segments > 0, tokens, 0)),  # what stands in padding is no token
        state.mixers,
        lambda block, x, mixer: block(x, positions, segments, mixer),
    )
    last = jnp.take_along_axis(positions, jnp.maximum(lengths - 1, 0)[:, None], axis=1)[:, 0]
    position = jnp.where(lengths > 0, last + 1, state.position)
    return model.final_norm(x), ModelState(position=position, mixers=mixers)
