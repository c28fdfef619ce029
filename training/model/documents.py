"""Packed documents: several in one row, told apart by segment ids that count from 1; 0 is padding at the end."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


def document_starts(segments: Int[Array, "batch time"]) -> Bool[Array, "batch time"]:
    """Where another document begins than the token before is of; the first token of a row begins one."""
    changes = segments[:, 1:] != segments[:, :-1]
    return jnp.pad(changes, ((0, 0), (1, 0)), constant_values=True)


def positions_in_documents(
    segments: Int[Array, "batch time"], first: Int[Array, " batch"] | None = None
) -> Int[Array, "batch time"]:
    """The place of every token in its document, counted from 0.

    With `first`, the first document of each row goes on from that place, and the others still count from 0.
    """
    places = jnp.arange(segments.shape[1], dtype=jnp.int32)
    starts = document_starts(segments)
    since = places - jax.lax.cummax(jnp.where(starts, places, 0), axis=1)
    if first is None:
        return since
    goes_on = jnp.cumsum(starts, axis=1) == 1
    return since + jnp.where(goes_on, first[:, None], 0)


def next_is_of_same_document(segments: Int[Array, "batch time_and_one"]) -> Bool[Array, "batch time"]:
    """Where the token after is of the same document, so that it can be predicted; never in padding."""
    return (segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] != 0)
