"""What is left of what within a chunk of tokens: the decays of the chunkwise form, and the way back to their logs.

Every exponent here is 0 or less, so nothing overflows however strong a decay is, and what is masked is masked in the
exponent. A sum of strong decays is large, and the difference of two large sums has lost its small digits: each log
decay is cut into a coarse part, whose sums fp32 holds exactly, and a small rest.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Final, NamedTuple

import jax.numpy as jnp
from einops import rearrange
from jaxtyping import Array, Bool, Float, Int

from training.mixers.documents import Runs
from training.mixers.precision import EXACT

FORGOTTEN: Final = -128.0
"""A log decay below which exp is 0 in fp32, denormal numbers included. A stronger one changes nothing."""
MANTISSA: Final = 24
"""Bits of an fp32 number."""


class Sums(NamedTuple):
    """Sums of log decays from the beginning of a chunk on, each token's own included."""

    coarse: Float[Array, "*lead time"]
    """The exact part."""
    fine: Float[Array, "*lead time"]
    """The rest, below a unit of the coarse part a token."""


class Documents(NamedTuple):
    """Which tokens of a chunk may meet, where a row has several documents or ends in padding."""

    run: Int[Array, "*chunks batch time"]
    real: Bool[Array, "*chunks batch time"]
    before: Int[Array, "*chunks batch"]
    """The run that was open in front of the chunk."""


class Decays(NamedTuple):
    """The factors of one chunk. The axis of the batch is of length 1 where all rows have the same."""

    between: Float[Array, "batch groups share time time"]
    """D: what a token sees of each one before it and of itself; 0 for those after it and for other documents."""
    into: Float[Array, "batch groups share time 1"]
    """a: what each token sees of the state in front of the chunk."""
    onward: Float[Array, "batch groups share time 1"]
    """w: what is left of each token in the state behind the chunk."""
    kept: Float[Array, "batch groups share 1 1"]
    """c: what is left of the state in front of the chunk in the one behind it."""


def sums_by_chunk(g: Float[Array, "batch time heads"], size: int, groups: int) -> Sums:
    """Sums of log decays of no less than FORGOTTEN, (chunks, batch, groups, share, size)."""
    form = "batch (chunks size) (groups share) -> chunks batch groups share size"
    return sums_of(rearrange(g, form, size=size, groups=groups))


def sums_of(g: Float[Array, "*lead time"]) -> Sums:
    """Sums along the last axis of log decays of no less than FORGOTTEN."""
    size = g.shape[-1]
    # The greatest sum, in units, just fits into the mantissa: the sums of the coarse part are exact in any order.
    unit = 2.0 ** (ceil(log2(-FORGOTTEN * size)) - MANTISSA)
    coarse = jnp.round(g / unit) * unit
    # One small product: a loop over the tokens of every chunk would take longer than all else that is done with sums.
    up_to = jnp.tril(jnp.ones((size, size), g.dtype))
    return Sums(*(jnp.einsum("...s,cs->...c", each, up_to, precision=EXACT) for each in (coarse, g - coarse)))


def decays_of(
    sums: Sums,
    documents: Documents | None,
    between: Float[Array, "batch groups share time time"] | None = None,
) -> Decays:
    """The factors of one chunk; `between` is given where it is known already, but for the documents."""
    coarse, fine = sums
    into = jnp.exp(coarse + fine)
    onward = jnp.exp((coarse[..., -1:] - coarse) + (fine[..., -1:] - fine))
    decays = Decays(
        between=decays_between(sums) if between is None else between,
        into=into[..., None],
        onward=onward[..., None],
        kept=into[..., -1:, None],
    )
    return decays if documents is None else _within(documents, decays)


def decays_between(sums: Sums) -> Float[Array, "*lead time time"]:
    """D of a chunk without documents."""
    coarse, fine = sums
    between = (coarse[..., :, None] - coarse[..., None, :]) + (fine[..., :, None] - fine[..., None, :])
    causal = jnp.tril(jnp.ones((coarse.shape[-1],) * 2, bool))
    return jnp.exp(jnp.where(causal, between, -jnp.inf))


def documents_by_chunk(runs: Runs, size: int) -> Documents:
    """The runs of each chunk, (chunks, batch, ...); the last chunk is filled up with padding."""
    beyond = (0, 0), (0, -runs.index.shape[1] % size)
    form = "batch (chunks size) -> chunks batch size"
    index = rearrange(jnp.pad(runs.index, beyond, mode="edge"), form, size=size)
    real = rearrange(jnp.pad(runs.real, beyond), form, size=size)
    return Documents(run=index, real=real, before=jnp.pad(index[:-1, :, -1], ((1, 0), (0, 0))))


def _within(documents: Documents, decays: Decays) -> Decays:
    """What is left where no document sees another, and padding goes nowhere."""
    run, real, before = documents
    same = run[:, :, None] == run[:, None, :]
    goes_on = run == before[:, None]
    last = (run == run[:, -1:]) & real
    return Decays(
        between=jnp.where(same[:, None, None], decays.between, 0),
        into=jnp.where(goes_on[:, None, None, :, None], decays.into, 0),
        onward=jnp.where(last[:, None, None, :, None], decays.onward, 0),
        kept=jnp.where(goes_on[:, None, None, -1:, None], decays.kept, 0),
    )


class Paths(NamedTuple):
    """How much a loss owes to the ways through a chunk; the log decay of a token is on those that cross it."""

    ending: Float[Array, "*lead time"]
    """Of ways that end in each token, less those that begin in it, for ways within the chunk or from in front of it."""
    leaving: Float[Array, "*lead time"]
    """Of ways from each token to what is behind the chunk."""
    through: Float[Array, "*lead"]
    """Of ways from in front of the chunk to behind it."""


def slopes_by_token(paths: Paths) -> Float[Array, "batch time heads"]:
    """The gradients of log decays from the paths of all chunks, (chunks, batch, groups, share, size)."""
    size = paths.ending.shape[-1]
    ones = jnp.ones((size, size), paths.ending.dtype)
    behind = jnp.einsum("...s,sc->...c", paths.ending, jnp.tril(ones), precision=EXACT)
    before = jnp.einsum("...s,sc->...c", paths.leaving, jnp.triu(ones, 1), precision=EXACT)
    slopes = behind + before + paths.through[..., None]
    return rearrange(slopes, "chunks batch groups share size -> batch (chunks size) (groups share)")
