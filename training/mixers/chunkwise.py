"""Linear attention with a scalar decay a head, chunk by chunk: matrix products in place of a loop over tokens.

Inside a chunk, with G the sum of the log decays up to each token and S the state in front of the chunk,

    O = (Q K^T * D) V + e^G Q S,   D_ij = exp(G_i - G_j) for j <= i;    S <- e^(G_C) S + (e^(G_C - G) K)^T V

Every exponent here is 0 or less, so nothing overflows however strong the decay is, and what is masked is masked in the
exponent, so that no gradient is infinity times 0. A sum of strong decays is large, and the difference of two large sums
has lost its small digits: each decay is cut into a coarse part, whose sums fp32 holds exactly, and a small rest.

The backward pass keeps the inputs and the state in front of each chunk, and computes the rest again.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from einops import rearrange
from jaxtyping import Array, Bool, Float, Int

from training.mixers.documents import runs_of
from training.mixers.precision import EXACT, accumulation_dtype

FORGOTTEN: Final = -128.0
"""A log decay below which exp is 0 in fp32, denormal numbers included. A stronger one changes nothing."""
MANTISSA: Final = 24
"""Bits of an fp32 number."""


class _Sums(NamedTuple):
    """Sums of log decays from the beginning of a chunk on, each token's own included."""

    coarse: Float[Array, "*lead time"]
    """The exact part; no gradient passes here."""
    fine: Float[Array, "*lead time"]
    """The rest, below a unit of the coarse part a token."""


class _Documents(NamedTuple):
    """Which tokens of a chunk may meet, where a row has several documents or ends in padding."""

    run: Int[Array, "*n batch time"]
    real: Bool[Array, "*n batch time"]
    before: Int[Array, "*n batch"]
    """The run that was open in front of the chunk."""


class _Chunk(NamedTuple):
    """One chunk of every row; for the scan, all chunks, with an axis more in front."""

    q: Float[Array, "*n batch time groups dk"]
    k: Float[Array, "*n batch time groups dk"]
    v: Float[Array, "*n batch time heads dv"]
    sums: _Sums
    """(batch or 1, heads, time)."""
    documents: _Documents | None


def chunkwise(
    q: Float[Array, "batch time groups dk"],
    k: Float[Array, "batch time groups dk"],
    v: Float[Array, "batch time heads dv"],
    g: Float[Array, " heads"] | Float[Array, "batch time heads"],
    *,
    state: Float[Array, "batch heads dk dv"] | None = None,
    segments: Int[Array, "batch time"] | None = None,
    chunk: int = 64,
) -> tuple[Float[Array, "batch time heads dv"], Float[Array, "batch heads dk dv"]]:
    """What `recurrent` gives without erase and write gates, up to rounding; the outputs at padding are void.

    Products are of the operands' dtype and add up in fp32, in which the state stays (fp64 for fp64). `chunk` is a
    matter of speed alone, and need not divide the length; a constant `g` has its D computed once.
    """
    batch, time, heads, dv = v.shape
    dtype = accumulation_dtype(q, k, v)
    size = min(chunk, time)
    g = g.astype(dtype)
    steady = _decay_matrix(_sums(jnp.broadcast_to(g[None, :, None], (1, heads, size)))) if g.ndim == 1 else None
    if segments is None and time % size:
        segments = jnp.ones((batch, time), jnp.int32)
    if state is None:
        state = jnp.zeros((batch, heads, k.shape[-1], dv), dtype)

    def through(state: Array, chunk: _Chunk) -> tuple[Array, Array]:
        return _through(state, chunk, _decay_matrix(chunk.sums) if steady is None else steady)

    chunks = _cut(q, k, v, g, segments, size)
    after, out = jax.lax.scan(jax.checkpoint(through, prevent_cse=False), state.astype(dtype), chunks)
    return rearrange(out, "n batch size heads dv -> batch (n size) heads dv")[:, :time], after


def _through(state: Array, chunk: _Chunk, decay: Array) -> tuple[Array, Array]:
    """The state behind a chunk, and its outputs. `decay` is D, (batch or 1, heads, time, time)."""
    dtype, groups = state.dtype, chunk.q.shape[2]
    q, k = (rearrange(each, "batch time groups d -> batch groups time d") for each in (chunk.q, chunk.k))
    v, state, decay = (
        rearrange(each, f"batch (groups share) {axes} -> batch groups share {axes}", groups=groups)
        for each, axes in ((jnp.moveaxis(chunk.v, 1, 2), "time d"), (state, "dk dv"), (decay, "time earlier"))
    )
    into, onward, kept = (_by_group(each, groups) for each in _weights(chunk))
    scores = jnp.einsum("bgck,bgsk->bgcs", q, k, preferred_element_type=dtype, precision=EXACT)
    scores = _of_same_run(scores[:, :, None] * decay, chunk.documents).astype(v.dtype)
    inside = jnp.einsum("bgrcs,bgrsv->bgrcv", scores, v, preferred_element_type=dtype, precision=EXACT)
    carried = jnp.einsum("bgck,bgrkv->bgrcv", q, state.astype(q.dtype), preferred_element_type=dtype, precision=EXACT)
    out = rearrange(inside + into * carried, "batch groups share time d -> batch time (groups share) d")
    new = jnp.einsum(
        "bgck,bgrcv->bgrkv", k, (onward * v).astype(v.dtype), preferred_element_type=dtype, precision=EXACT
    )
    after = kept * state + new
    if chunk.documents is not None:
        after = jnp.where(chunk.documents.real[:, 0, None, None, None, None], after, state)
    return rearrange(after, "batch groups share dk dv -> batch (groups share) dk dv"), out


def _weights(chunk: _Chunk) -> tuple[Array, Array, Array]:
    """With how much each token sees the state in front of the chunk and goes into the one behind it; what is left of
    the first in the second. (batch or 1, heads, time or 1)."""
    coarse, fine = chunk.sums
    into = jnp.exp(coarse + fine)
    onward = jnp.exp((coarse[..., -1:] - coarse) + (fine[..., -1:] - fine))
    kept = into[..., -1:]
    if chunk.documents is None:
        return into, onward, kept
    run, real, before = (each[:, None] for each in chunk.documents)
    last = run[..., -1:]
    goes_on = run == before[..., None]
    return (
        jnp.where(goes_on, into, 0),
        jnp.where((run == last) & real, onward, 0),
        jnp.where(goes_on[..., -1:], kept, 0),
    )


def _of_same_run(scores: Array, documents: _Documents | None) -> Array:
    if documents is None:
        return scores
    same = documents.run[:, :, None] == documents.run[:, None, :]
    return jnp.where(same[:, None, None], scores, 0)


def _by_group(weights: Array, groups: int) -> Array:
    """(batch or 1, groups, share, time or 1, 1)."""
    return rearrange(weights, "batch (groups share) time -> batch groups share time 1", groups=groups)


def _decay_matrix(sums: _Sums) -> Array:
    """D of a chunk: the decay between any token and each one before it, 0 between it and those after it."""
    coarse, fine = sums
    between = (coarse[..., :, None] - coarse[..., None, :]) + (fine[..., :, None] - fine[..., None, :])
    causal = jnp.tril(jnp.ones((coarse.shape[-1],) * 2, bool))
    return jnp.exp(jnp.where(causal, between, -jnp.inf))


def _sums(g: Array) -> _Sums:
    """Sums along the last axis."""
    size = g.shape[-1]
    # The greatest sum, in units, just fits into the mantissa: the sums of the coarse part are exact in any order.
    unit = 2.0 ** (ceil(log2(-FORGOTTEN * size)) - MANTISSA)
    bounded = jnp.maximum(g, FORGOTTEN)
    coarse = jax.lax.stop_gradient(jnp.round(bounded / unit) * unit)
    # One small product: a loop over the tokens of every chunk would take longer than all else that is done with sums.
    up_to = jnp.tril(jnp.ones((size, size), g.dtype))
    return _Sums(*(jnp.einsum("...s,cs->...c", each, up_to, precision=EXACT) for each in (coarse, bounded - coarse)))


def _cut(q: Array, k: Array, v: Array, g: Array, segments: Array | None, size: int) -> _Chunk:
    """All chunks, along a new first axis; the last is filled up with padding."""
    runs = None if segments is None else runs_of(segments)
    gates = g[None, None] if g.ndim == 1 else g
    if runs is not None:
        gates = jnp.where(runs.real[..., None], gates, 0)
    gates = jnp.broadcast_to(gates, (gates.shape[0], *v.shape[1:3]))
    q, k, v = (_pieces(each, size) for each in (q, k, v))
    sums = _sums(jnp.swapaxes(_pieces(gates, size), -1, -2))
    if runs is None:
        return _Chunk(q, k, v, sums, None)
    index, real = _pieces(runs.index, size, mode="edge"), _pieces(runs.real, size)
    before = jnp.pad(index[:-1, :, -1], ((1, 0), (0, 0)))
    return _Chunk(q, k, v, sums, _Documents(index, real, before))


def _pieces(x: Array, size: int, mode: str = "constant") -> Array:
    padded = jnp.pad(x, ((0, 0), (0, -x.shape[1] % size), *((0, 0),) * (x.ndim - 2)), mode=mode)
    return jnp.moveaxis(padded.reshape(x.shape[0], -1, size, *x.shape[2:]), 1, 0)
