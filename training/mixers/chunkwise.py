"""Linear attention with a scalar decay a head, chunk by chunk: matrix products in place of a loop over tokens.

Inside a chunk, with G the sum of the log decays up to each token, S the state in front of the chunk and S' behind it,

    D_ij = exp(G_i - G_j) for j <= i,  a = exp(G),  w = exp(G_C - G),  c = exp(G_C)

    P = Q K^T,  O = (P * D) V + a Q S,  S' = c S + K^T (w V)

The backward pass goes from the last chunk to the first. It keeps the inputs and the state in front of each chunk, and
computes P and D again; nothing is kept of the length squared, and no state a token. Written with d for the gradient in
what follows it,

    dP = (dO V^T) * D
    dQ = dP K + a (dO S^T),  dK = dP^T Q + (w V) dS'^T,  dV = (P * D)^T dO + w (K dS'),  dS = c dS' + Q^T (a dO)

The log decay of a token t is a factor of all that goes from in front of t to t or behind it. The loss owes
E_ij = dP_ij P_ij to what token i sees of token j, x_i = Q_i . (a dO S^T)_i to what it sees of S,
y_j = V_j . (w K dS')_j to what token j leaves in S', and z = c <S, dS'> to what S leaves there:

    dg_t = sum_(i >= t > j) E_ij + sum_(i >= t) x_i + sum_(j < t) y_j + z

These are sums of what crosses t and of nothing else: a token's view of itself, which may be large and which no decay
touches, does not have to cancel. The first sum is that of E_ij over i >= t, less that over j >= t, for j < i.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from einops import rearrange
from jaxtyping import Array, Float, Int

from training.mixers.chunk_decays import (
    FORGOTTEN,
    Decays,
    Documents,
    Paths,
    Sums,
    decays_between,
    decays_of,
    documents_by_chunk,
    slopes_by_token,
    sums_by_chunk,
)
from training.mixers.documents import runs_of
from training.mixers.precision import EXACT, accumulation_dtype


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
    matter of speed alone, and need not divide the length; a constant `g` has its D computed once. Differentiable in
    reverse, once.
    """
    batch, time, heads, dv = v.shape
    dtype = accumulation_dtype(q, k, v)
    size, groups = min(chunk, time), q.shape[2]
    q, k, v = (each.astype(jnp.result_type(q, k, v)) for each in (q, k, v))
    if state is None:
        state = jnp.zeros((batch, heads, k.shape[-1], dv), dtype)
    g = jnp.maximum(g.astype(dtype), FORGOTTEN)
    between = None
    if g.ndim == 1:
        of_a_chunk = jnp.broadcast_to(jax.lax.stop_gradient(g), (1, size, heads))
        between = decays_between(Sums(*(each[0] for each in sums_by_chunk(of_a_chunk, size, groups))))
        g = jnp.broadcast_to(g, (1, time, heads))
    documents = None
    if segments is not None:
        runs = runs_of(segments)
        g = jnp.where(runs.real[..., None], g, 0)
        documents = documents_by_chunk(runs, size)
    # Keys of 0 that do not decay change no state: the last chunk is filled up with them.
    q, k, v, g = (jnp.pad(each, ((0, 0), (0, -time % size), *((0, 0),) * (each.ndim - 2))) for each in (q, k, v, g))
    out, after = _attention(size, _Rows(q, k, v, g, between, documents), state.astype(dtype))
    return out[:, :time], after


class _Chunk(NamedTuple):
    """One chunk of every row, axes by head in front of those by token."""

    q: Float[Array, "batch groups 1 time dk"]
    k: Float[Array, "batch groups 1 time dk"]
    v: Float[Array, "batch groups share time dv"]
    decays: Decays

    def product(self, form: str, one: Array, other: Array) -> Array:
        """A product a head, of the operands' dtype, added up in that of the decays. One of length 1 is that of all."""
        heads = jnp.broadcast_shapes(one.shape[:3], other.shape[:3])
        factors = (jnp.broadcast_to(x.astype(self.v.dtype), (*heads, *x.shape[3:])) for x in (one, other))
        return jnp.einsum(form, *factors, preferred_element_type=self.decays.into.dtype, precision=EXACT)


class _Rows(NamedTuple):
    """Rows in chunks, of which one at a time is brought into the order that products need."""

    q: Float[Array, "batch time groups dk"]
    k: Float[Array, "batch time groups dk"]
    v: Float[Array, "batch time heads dv"]
    g: Float[Array, "batch time heads"]
    between: Float[Array, "1 groups share size size"] | None
    """D, where it is the same for all chunks."""
    documents: Documents | None

    def by_chunk(self, size: int) -> tuple[Array, Sums, Documents | None]:
        """What a scan goes over: places, and what is a number a token."""
        places = jnp.arange(0, self.q.shape[1], size)
        return places, sums_by_chunk(self.g, size, self.q.shape[2]), self.documents

    def chunk(self, place: Array, sums: Sums, documents: Documents | None) -> _Chunk:
        """The chunk that begins at a place."""
        size, groups = sums.fine.shape[-1], self.q.shape[2]
        q, k, v = (_piece(x, place, size, groups) for x in (self.q, self.k, self.v))
        return _Chunk(q, k, v, decays_of(sums, documents, self.between))


def _piece(x: Float[Array, "batch time heads d"], place: Array, size: int, groups: int) -> Array:
    piece = jax.lax.dynamic_slice_in_dim(x, place, size, axis=1)
    return rearrange(piece, "batch time (groups share) d -> batch groups share time d", groups=groups)


def _by_token(x: Float[Array, "batch groups share time d"]) -> Float[Array, "batch time heads d"]:
    return rearrange(x, "batch groups share time d -> batch time (groups share) d")


def _joined(chunks: Float[Array, "chunks batch size heads d"]) -> Float[Array, "batch time heads d"]:
    return rearrange(chunks, "chunks batch size heads d -> batch (chunks size) heads d")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(size: int, rows: _Rows, state: Float[Array, "batch heads dk dv"]) -> tuple[Array, Array]:
    """Outputs of rows whose length is a multiple of `size`, and the state behind them."""
    out, after, _ = _forward(size, rows, state, keep=False)
    return out, after


def _forward(size: int, rows: _Rows, state: Array, *, keep: bool) -> tuple[Array, Array, Array | None]:
    """Outputs, the state behind the rows, and where it is asked for the state in front of each chunk."""

    def through(front: Array, each: tuple[Array, Sums, Documents | None]) -> tuple[Array, tuple[Array, Array | None]]:
        behind, out = _through(front, rows.chunk(*each))
        return behind, (_by_token(out), front if keep else None)

    front = rearrange(state, "batch (groups share) dk dv -> batch groups share dk dv", groups=rows.q.shape[2])
    behind, (out, fronts) = jax.lax.scan(through, front, rows.by_chunk(size))
    return _joined(out), behind.reshape(state.shape), fronts


def _through(front: Array, chunk: _Chunk) -> tuple[Array, Array]:
    """The state behind a chunk, and its outputs."""
    q, k, v, decays = chunk
    scores = chunk.product("...ck,...sk->...cs", q, k)
    inside = chunk.product("...cs,...sv->...cv", scores * decays.between, v)
    carried = decays.into * chunk.product("...ck,...kv->...cv", q, front)
    written = chunk.product("...ck,...cv->...kv", k, decays.onward * v)
    return decays.kept * front + written, inside + carried


class _Slopes(NamedTuple):
    """Gradients in the operands of a chunk."""

    q: Float[Array, "batch time groups dk"]
    k: Float[Array, "batch time groups dk"]
    v: Float[Array, "batch time heads dv"]
    g: Paths


def _attention_forward(size: int, rows: _Rows, state: Array) -> tuple[tuple[Array, Array], tuple[_Rows, Array]]:
    out, after, fronts = _forward(size, rows, state, keep=True)
    assert fronts is not None
    return (out, after), (rows, fronts)


def _attention_backward(
    size: int, kept: tuple[_Rows, Array], slopes: tuple[Array, Array]
) -> tuple[_Rows, Float[Array, "batch heads dk dv"]]:
    rows, fronts = kept
    of_out, of_after = slopes
    groups = rows.q.shape[2]

    def back(behind: Array, each: tuple[Any, Array]) -> tuple[Array, _Slopes]:
        of_chunk, front = each
        return _back(behind, rows.chunk(*of_chunk), front, _piece(of_out, of_chunk[0], size, groups))

    behind = rearrange(of_after, "batch (groups share) dk dv -> batch groups share dk dv", groups=groups)
    of_state, by_chunk = jax.lax.scan(back, behind, (rows.by_chunk(size), fronts), reverse=True)
    of_g = slopes_by_token(by_chunk.g)
    if rows.g.shape[0] == 1:
        of_g = jnp.sum(of_g, axis=0, keepdims=True)
    of_q, of_k, of_v = (_joined(each) for each in by_chunk[:3])
    return _Rows(of_q, of_k, of_v, of_g, None, None), of_state.reshape(of_after.shape)


def _back(behind: Array, chunk: _Chunk, front: Array, out: Array) -> tuple[Array, _Slopes]:
    """Gradients in the state in front of a chunk and in its operands, from the state behind it and the outputs."""
    q, k, v, decays = chunk
    scores = chunk.product("...ck,...sk->...cs", q, k)
    of_scores = decays.between * chunk.product("...cv,...sv->...cs", out, v)
    of_q_carried = decays.into * chunk.product("...cv,...kv->...ck", out, front)
    of_k_written = chunk.product("...cv,...kv->...ck", decays.onward * v, behind)
    of_v_written = decays.onward * chunk.product("...ck,...kv->...cv", k, behind)
    of_v = of_v_written + chunk.product("...cs,...cv->...sv", scores * decays.between, out)
    of_front = decays.kept * behind + chunk.product("...ck,...cv->...kv", q, decays.into * out)

    shared = jnp.sum(of_scores, axis=2, keepdims=True)
    of_q = chunk.product("...cs,...sk->...ck", shared, k) + jnp.sum(of_q_carried, axis=2, keepdims=True)
    of_k = chunk.product("...cs,...ck->...sk", shared, q) + jnp.sum(of_k_written, axis=2, keepdims=True)

    earlier = jnp.tril(jnp.ones(scores.shape[-2:], bool), -1)
    seen = jnp.where(earlier, of_scores * scores, 0)
    paths = Paths(
        ending=jnp.sum(q * of_q_carried, axis=-1) + jnp.sum(seen, axis=-1) - jnp.sum(seen, axis=-2),
        leaving=jnp.sum(v * of_v_written, axis=-1),
        through=jnp.sum(decays.kept * behind * front, axis=(-1, -2)),
    )
    of_q, of_k, of_v = (_by_token(each.astype(v.dtype)) for each in (of_q, of_k, of_v))
    return of_front, _Slopes(of_q, of_k, of_v, paths)


_attention.defvjp(_attention_forward, _attention_backward)
