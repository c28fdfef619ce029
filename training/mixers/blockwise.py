"""Exact softmax attention block by block: memory that grows with the length, in both directions, never with its square.

A block of queries goes over the blocks of keys that it may see and keeps the greatest score and the sum so far
(https://arxiv.org/abs/2205.14135). Blocks that it may not see are not looked at: those behind it, those before its
window, those of other documents, and slots of a cache that are empty. The backward pass keeps the output and one number
a query, and computes the scores again.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from einops import rearrange
from jaxtyping import Array, Bool, Float, Int

from training.mixers.precision import EXACT, accumulation_dtype

EMPTY: Final = -1
"""The run of a key that nobody sees."""
LEAST: Final = -1e30
"""Stands for minus infinity where a difference of two is taken."""
FAR: Final = 2**29
"""Further than any token from any other, with room for a difference of two."""


class Marks(NamedTuple):
    """What decides who sees whom: a query sees the keys of its own run that are not after it in order."""

    order: Int[Array, "batch time"]
    """Place in the row; differences inside a run are distances in tokens."""
    run: Int[Array, "batch time"]
    """The document, from 0; `EMPTY` is seen by none."""


class _Operands(NamedTuple):
    """Whole blocks. q is (batch, groups, share, time, d), k and v are (batch, groups, time, d)."""

    q: Array
    k: Array
    v: Array


class _Sight(NamedTuple):
    """The marks of the same blocks."""

    queries: Marks
    keys: Marks


class _Tiling(NamedTuple):
    """How the work is cut."""

    queries: int
    keys: int
    window: int | None


class _Tile(NamedTuple):
    """One block of queries before one block of keys."""

    k: Array
    v: Array
    scores: Float[Array, "batch groups share queries keys"]
    seen: Bool[Array, "batch 1 1 queries keys"]


class _Kept(NamedTuple):
    """What the backward pass needs of the forward pass."""

    operands: _Operands
    sight: _Sight
    out: Array
    log_sums: Array
    """The logarithm of the sum of exp(score) of each query."""


class _Extent(NamedTuple):
    """From where to where each block of each row reaches, over what is not empty."""

    first: Array
    last: Array
    first_run: Array
    last_run: Array


def blockwise_attention(
    q: Float[Array, "batch queries heads d"],
    k: Float[Array, "batch keys groups d"],
    v: Float[Array, "batch keys groups d"],
    q_marks: Marks,
    k_marks: Marks,
    *,
    window: int | None = None,
    block: int = 256,
) -> Float[Array, "batch queries heads d"]:
    """Softmax of q·k/sqrt(d) over the keys that each query sees, times the values: (batch, queries, heads, d) in fp32.

    Heads share keys and values where there are fewer groups of them. With a `window`, a query sees itself and the
    window - 1 tokens before it. A query that sees no key has 0. Differentiable once, in q, k and v.
    """
    time, groups = q.shape[1], k.shape[2]
    tiling = _Tiling(min(block, time), min(block, k.shape[1]), window)
    scale = q.shape[-1] ** -0.5
    operands = _Operands(
        q=rearrange(_filled(q * scale, tiling.queries), "b t (groups share) d -> b groups share t d", groups=groups),
        k=rearrange(_filled(k, tiling.keys), "b t groups d -> b groups t d"),
        v=rearrange(_filled(v, tiling.keys), "b t groups d -> b groups t d"),
    )
    sight = _Sight(_filled_marks(q_marks, tiling.queries), _filled_marks(k_marks, tiling.keys))
    out = _attention(tiling, operands, sight)
    return rearrange(out, "b groups share t d -> b t (groups share) d")[:, :time]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(tiling: _Tiling, operands: _Operands, sight: _Sight) -> Array:
    return _forward(tiling, operands, sight)[0]


def _forward(tiling: _Tiling, operands: _Operands, sight: _Sight) -> tuple[Array, _Kept]:
    dtype = accumulation_dtype(operands.q, operands.k)
    first, end = _visible_range(tiling, sight)

    def attend(i: Array) -> tuple[Array, Array]:
        q = _block(operands.q, i, tiling.queries, axis=3)

        def add(j: Array, sofar: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            most, total, out = sofar
            tile = _tile(tiling, operands, sight, q, i, j)
            more = jnp.maximum(most, jnp.max(tile.scores, axis=-1))
            weights = jnp.where(tile.seen, jnp.exp(tile.scores - more[..., None]), 0)
            shrink = jnp.exp(most - more)
            out = out * shrink[..., None] + _product("bgrqk,bgkd->bgrqd", weights.astype(tile.v.dtype), tile.v, dtype)
            return more, total * shrink + jnp.sum(weights, axis=-1), out

        start = jnp.full(q.shape[:-1], LEAST, dtype), jnp.zeros(q.shape[:-1], dtype), jnp.zeros(q.shape, dtype)
        most, total, out = jax.lax.fori_loop(first[i], end[i], add, start)
        total = jnp.where(total > 0, total, 1)
        return out / total[..., None], most + jnp.log(total)

    out, log_sums = (_joined(each) for each in jax.lax.map(attend, jnp.arange(len(first))))
    return out, _Kept(operands, sight, out, log_sums)


def _backward(tiling: _Tiling, kept: _Kept, slope: Array) -> tuple[_Operands, None]:
    operands, sight, out, log_sums = kept
    dtype = out.dtype
    first, end = _visible_range(tiling, sight)
    common = jnp.sum(slope * out, axis=-1)

    def attend(totals: tuple[Array, Array], i: Array) -> tuple[tuple[Array, Array], Array]:
        q, dout, log_sum, mean = (
            _block(each, i, tiling.queries, axis=3) for each in (operands.q, slope, log_sums, common)
        )

        def add(j: Array, sofar: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            dq, dk, dv = sofar
            tile = _tile(tiling, operands, sight, q, i, j)
            weights = jnp.where(tile.seen, jnp.exp(tile.scores - log_sum[..., None]), 0)
            dweights = _product("bgrqd,bgkd->bgrqk", dout.astype(tile.v.dtype), tile.v, dtype)
            dscores = (weights * (dweights - mean[..., None])).astype(q.dtype)
            dq = dq + _product("bgrqk,bgkd->bgrqd", dscores, tile.k, dtype)
            dk = _added(dk, _product("bgrqk,bgrqd->bgkd", dscores, q, dtype), j)
            dv = _added(dv, _product("bgrqk,bgrqd->bgkd", weights.astype(q.dtype), dout.astype(q.dtype), dtype), j)
            return dq, dk, dv

        dq, *totals_now = jax.lax.fori_loop(first[i], end[i], add, (jnp.zeros(q.shape, dtype), *totals))
        return (totals_now[0], totals_now[1]), dq

    nothing = jnp.zeros(operands.k.shape, dtype), jnp.zeros(operands.v.shape, dtype)
    (dk, dv), dq = jax.lax.scan(attend, nothing, jnp.arange(len(first)))
    gradients = zip((_joined(dq), dk, dv), operands, strict=True)
    return _Operands(*(gradient.astype(of.dtype) for gradient, of in gradients)), None


_attention.defvjp(_forward, _backward)


def _tile(tiling: _Tiling, operands: _Operands, sight: _Sight, q: Array, i: Array, j: Array) -> _Tile:
    k, v = (_block(each, j, tiling.keys, axis=2) for each in (operands.k, operands.v))
    scores = _product("bgrqd,bgkd->bgrqk", q, k, accumulation_dtype(q, k))
    query_order, query_run = (_block(each, i, tiling.queries, axis=1)[:, :, None] for each in sight.queries)
    key_order, key_run = (_block(each, j, tiling.keys, axis=1)[:, None, :] for each in sight.keys)
    seen = (query_run == key_run) & (key_run != EMPTY) & (key_order <= query_order)
    if tiling.window is not None:
        seen &= query_order - key_order < tiling.window
    seen = seen[:, None, None]
    return _Tile(k, v, jnp.where(seen, scores, LEAST), seen)


def _visible_range(tiling: _Tiling, sight: _Sight) -> tuple[Array, Array]:
    """The first block of keys that each block of queries may see in any row, and the one behind the last."""
    queries = _Extent(*(each[:, :, None] for each in _extent(sight.queries, tiling.queries)))
    keys = _Extent(*(each[:, None, :] for each in _extent(sight.keys, tiling.keys)))
    meets = keys.first <= queries.last
    meets &= (keys.first_run <= queries.last_run) & (queries.first_run <= keys.last_run)
    if tiling.window is not None:
        meets &= queries.first - keys.last < tiling.window
    meets = jnp.any(meets, axis=0)
    blocks = meets.shape[1]
    some = jnp.any(meets, axis=1)
    end = blocks - jnp.argmax(meets[:, ::-1], axis=1)
    return jnp.where(some, jnp.argmax(meets, axis=1), 0), jnp.where(some, end, 0)


def _extent(marks: Marks, size: int) -> _Extent:
    there = marks.run != EMPTY
    low, high = (
        [rearrange(jnp.where(there, each, bound), "batch (n size) -> batch n size", size=size) for each in marks]
        for bound in (FAR, -FAR)
    )
    order, run = low
    last_order, last_run = high
    return _Extent(
        first=jnp.min(order, axis=-1),
        last=jnp.max(last_order, axis=-1),
        first_run=jnp.min(run, axis=-1),
        last_run=jnp.max(last_run, axis=-1),
    )


def _product(axes: str, a: Array, b: Array, dtype: jnp.dtype[jnp.generic]) -> Array:
    return jnp.einsum(axes, a, b, preferred_element_type=dtype, precision=EXACT)


def _block(x: Array, i: Array, size: int, *, axis: int) -> Array:
    return jax.lax.dynamic_slice_in_dim(x, i * size, size, axis=axis)


def _added(total: Array, more: Array, j: Array) -> Array:
    """`total` with `more` added to its j-th block of keys."""
    size = more.shape[2]
    return jax.lax.dynamic_update_slice_in_dim(total, _block(total, j, size, axis=2) + more, j * size, axis=2)


def _joined(blocks: Array) -> Array:
    """(n, batch, groups, share, queries, ...) as (batch, groups, share, n queries, ...)."""
    return rearrange(blocks, "n b groups share t ... -> b groups share (n t) ...")


def _filled(x: Array, size: int) -> Array:
    """`x` with its time filled up to whole blocks."""
    return jnp.pad(x, ((0, 0), (0, -x.shape[1] % size), *((0, 0),) * (x.ndim - 2)))


def _filled_marks(marks: Marks, size: int) -> Marks:
    fill = ((0, 0), (0, -marks.run.shape[1] % size))
    return Marks(order=jnp.pad(marks.order, fill), run=jnp.pad(marks.run, fill, constant_values=EMPTY))
