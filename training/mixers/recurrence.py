"""The one recurrence that every mixer of fixed state is a case of, token by token: what the faster forms are held to.

With a state S of (dk, dv) a head, a log decay g <= 0, an erase gate b and a write gate w, each token does

    S <- diag(exp g) S;    S <- S + k (w*v - S^T (b*k))^T;    o = S^T q

b = 0 and w = 1 is linear attention with decay; b = w is the delta rule. This form is exact in any case, needs one token
at a time, and is what decoding runs.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from einops import repeat
from jaxtyping import Array, Float, Int

from training.mixers.documents import runs_of
from training.mixers.precision import EXACT, accumulation_dtype


def recurrent(
    q: Float[Array, "batch time groups dk"],
    k: Float[Array, "batch time groups dk"],
    v: Float[Array, "batch time heads dv"],
    g: Float[Array, " heads"] | Float[Array, "batch time heads"] | Float[Array, "batch time heads dk"],
    *,
    b: Float[Array, "batch time heads"] | Float[Array, "batch time heads dk"] | None = None,
    w: Float[Array, "batch time heads"] | Float[Array, "batch time heads dv"] | None = None,
    state: Float[Array, "batch heads dk dv"] | None = None,
    segments: Int[Array, "batch time"] | None = None,
) -> tuple[Float[Array, "batch time heads dv"], Float[Array, "batch heads dk dv"]]:
    """Outputs and the state behind the last token, both in fp32 (fp64 for fp64).

    `g` is a constant a head, a number a token, or one a channel of the keys. `b` and `w` are 0 and 1 where they are not
    given. Heads share queries and keys where there are fewer groups of them. `segments` number the documents of a row
    from 1, and 0 is padding at its end, which changes no state and gives 0; the first document goes on from `state`.
    """
    batch, time, heads, dv = v.shape
    q, k = (_over_heads(each, heads) for each in (q, k))
    dtype = accumulation_dtype(q, k, v)
    if state is None:
        state = jnp.zeros((batch, heads, k.shape[-1], dv), dtype)
    runs = runs_of(jnp.ones((batch, time), jnp.int32) if segments is None else segments)
    begins = jnp.pad(runs.index[:, 1:] != runs.index[:, :-1], ((0, 0), (1, 0)))
    none, one = jnp.zeros((batch, time, heads, 1), dtype), jnp.ones((batch, time, heads, 1), dtype)
    gates = (
        _a_channel(jnp.broadcast_to(g, (batch, time, heads)) if g.ndim == 1 else g),
        none if b is None else _a_channel(b),
        one if w is None else _a_channel(w),
    )

    def token(state: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
        q, k, v, g, b, w, begins, real = now
        before = jnp.where(begins[:, None, None, None], 0, state) * jnp.exp(g)[..., None]
        read = jnp.einsum("bhk,bhkv->bhv", b * k, before, precision=EXACT) if erases else 0
        after = before + k[..., None] * (w * v - read)[..., None, :]
        out = jnp.einsum("bhk,bhkv->bhv", q, after, precision=EXACT)
        counts = real[:, None, None]
        return jnp.where(counts[..., None], after, state), jnp.where(counts, out, 0)

    erases = b is not None
    wide = (each.astype(dtype) for each in (q, k, v, *gates))
    tokens = tuple(jnp.moveaxis(each, 1, 0) for each in (*wide, begins, runs.real))
    after, out = jax.lax.scan(token, state.astype(dtype), tokens)
    return jnp.moveaxis(out, 0, 1), after


def _over_heads(x: Array, heads: int) -> Array:
    return repeat(x, "batch time groups d -> batch time (groups share) d", share=heads // x.shape[2])


def _a_channel(gate: Array) -> Array:
    """A gate with an axis of channels, of length 1 where it is one number a head."""
    return gate[..., None] if gate.ndim == 3 else gate
