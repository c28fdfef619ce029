"""Softmax attention: every earlier token, or those of a window, looked at exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import equinox as eqx
import jax
import jax.numpy as jnp
from einops import rearrange
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from training.errors import TrainingError
from training.mixers.blockwise import EMPTY, Marks, blockwise_attention
from training.mixers.checks import check_at_least, check_divides
from training.mixers.documents import Runs, runs_of
from training.mixers.mixer import AbstractMixer
from training.mixers.precision import EXACT, accumulation_dtype
from training.mixers.projection import Projection
from training.mixers.rope import rotate, turned_channels


@final
@dataclass(frozen=True, kw_only=True)
class SoftmaxConfig:
    """Softmax attention with rotary positions. Raises TrainingError where a number makes none."""

    type: Literal["softmax"] = "softmax"
    """Which mixer this is."""
    n_heads: int
    """Heads of queries."""
    n_kv_heads: int | None = None
    """Heads of keys and values, which heads of queries share in equal groups; 1 is multi-query attention. null: all."""
    d_head: int | None = None
    """Channels of a head. null: the width of the model over the heads."""
    window: int | None = None
    """How many tokens a token sees, itself included. null: all before it."""
    rope_base: float = 10_000.0
    """The slowest rotation takes about so many tokens over 2π."""
    rope_fraction: float = 1.0
    """Share of the channels that turn with the position; 0 for attention that knows no order."""
    block: int = 256
    """Queries and keys that are looked at in one piece; a matter of speed and memory alone."""

    def __post_init__(self) -> None:
        check_at_least(
            self.type,
            1,
            n_heads=self.n_heads,
            n_kv_heads=self.n_kv_heads,
            d_head=self.d_head,
            window=self.window,
            rope_base=self.rope_base,
            block=self.block,
        )
        if self.n_kv_heads is not None:
            check_divides(self.type, "n_kv_heads", self.n_kv_heads, "n_heads", self.n_heads)
        if not 0 <= self.rope_fraction <= 1:
            raise TrainingError(f"mixer softmax: rope_fraction is {self.rope_fraction}; it is a share, from 0 to 1")


@final
class CacheState(eqx.Module):
    """Keys and values of the tokens before, in the dtype of the parameters.

    The token at position p stands in slot p modulo the number of slots: a window is a ring. Which slots are filled
    follows from the position of the next token; the others are 0.
    """

    keys: Float[Array, "batch slots groups d"]
    values: Float[Array, "batch slots groups d"]


@final
class Softmax(AbstractMixer[CacheState]):
    """Multi-head, grouped-query and multi-query attention, over all tokens or a window of them.

    Its cache has as many slots as the context that `init_state` is given, or as the window where that is less. Where a
    position lies beyond such a context, the output is NaN, and never attention to what is left of the text.
    """

    q_proj: Projection
    k_proj: Projection
    v_proj: Projection
    o_proj: Projection
    config: SoftmaxConfig = eqx.field(static=True)
    d_head: int = eqx.field(static=True)

    @staticmethod
    def init(config: SoftmaxConfig, d_model: int, *, layer: int, n_layers: int, key: PRNGKeyArray) -> Softmax:
        """Fresh parameters in fp32. Raises TrainingError where the heads do not divide the model."""
        d_head = config.d_head
        if d_head is None:
            check_divides(config.type, "n_heads", config.n_heads, "d_model", d_model)
            d_head = d_model // config.n_heads
        inner, shared = config.n_heads * d_head, (config.n_kv_heads or config.n_heads) * d_head
        of_q, of_k, of_v, of_o = jax.random.split(key, 4)
        return Softmax(
            q_proj=Projection.inward(d_model, inner, key=of_q),
            k_proj=Projection.inward(d_model, shared, key=of_k),
            v_proj=Projection.inward(d_model, shared, key=of_v),
            o_proj=Projection.outward(inner, d_model, n_layers=n_layers, key=of_o),
            config=config,
            d_head=d_head,
        )

    def init_state(self, batch: int, *, context: int) -> CacheState:
        """An empty cache."""
        slots = context if self.config.window is None else min(context, self.config.window)
        shape = (batch, slots, self.config.n_kv_heads or self.config.n_heads, self.d_head)
        empty = jnp.zeros(shape, self.k_proj.weight.dtype)
        return CacheState(keys=empty, values=empty)

    def __call__(
        self,
        x: Float[Array, "batch time model"],
        positions: Int[Array, "batch time"],
        segments: Int[Array, "batch time"],
        state: CacheState | None = None,
    ) -> tuple[Float[Array, "batch time model"], CacheState | None]:
        """See AbstractMixer."""
        q, k, v = self._project(x, positions)
        runs = runs_of(segments)
        own = Marks(order=jnp.broadcast_to(jnp.arange(x.shape[1], dtype=jnp.int32), segments.shape), run=runs.index)
        if state is None:
            out = blockwise_attention(q, k, v, own, own, window=self.config.window, block=self.config.block)
            return self._finish(out, x), None
        before = _cached_marks(positions[:, 0], state.keys.shape[1])
        keys, values = (
            jnp.concatenate([cached.astype(new.dtype), new], axis=1)
            for cached, new in ((state.keys, k), (state.values, v))
        )
        every = Marks(*(jnp.concatenate(pair, axis=1) for pair in zip(before, own, strict=True)))
        out = blockwise_attention(q, keys, values, own, every, window=self.config.window, block=self.config.block)
        # Not in padding, whose numbers go on to the next layer: there they are multiplied by 0, and NaN stays NaN.
        out = self._refuse_beyond(out, jnp.where(runs.real, positions, 0), state)
        return self._finish(out, x), _stored(state, k, v, positions, runs)

    def step(
        self,
        x: Float[Array, "batch model"],
        position: Int[Array, " batch"],
        active: Bool[Array, " batch"],
        state: CacheState,
    ) -> tuple[Float[Array, "batch model"], CacheState]:
        """See AbstractMixer."""
        q, k, v = self._project(x[:, None], position[:, None])
        one = Runs(index=jnp.zeros_like(position)[:, None], real=active[:, None])
        state = _stored(state, k, v, position[:, None], one)
        # With this token in its slot: order 0 is the token itself, and the others lie before it.
        marks = _cached_marks(position + 1, state.keys.shape[1])
        seen = marks.run != EMPTY
        if self.config.window is not None:
            seen &= -marks.order <= self.config.window
        out = _look_up(q[:, 0], state, seen)
        return self._finish(self._refuse_beyond(out[:, None], position[:, None], state), x[:, None])[:, 0], state

    def _project(self, x: Array, positions: Array) -> tuple[Array, Array, Array]:
        q, k, v = (
            rearrange(project(x), "batch time (heads d) -> batch time heads d", d=self.d_head)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        if turned_channels(self.d_head, self.config.rope_fraction):
            q, k = (
                rotate(each, positions, base=self.config.rope_base, fraction=self.config.rope_fraction)
                for each in (q, k)
            )
        return q, k, v

    def _finish(self, out: Array, x: Array) -> Array:
        return self.o_proj(rearrange(out, "batch time heads d -> batch time (heads d)").astype(x.dtype))

    def _refuse_beyond(self, out: Array, positions: Array, state: CacheState) -> Array:
        slots = state.keys.shape[1]
        if slots == self.config.window:
            return out
        return jnp.where((positions < slots)[..., None, None], out, jnp.nan)


def _cached_marks(first: Int[Array, " batch"], slots: int) -> Marks:
    """The marks of a cache before the token at position `first`: order -1 is the token before it; run 0 is its own."""
    slot = jnp.arange(slots, dtype=jnp.int32)
    back = (first[:, None] - 1 - slot) % slots
    filled = back < first[:, None]
    return Marks(order=-1 - back, run=jnp.where(filled, 0, EMPTY))


def _stored(state: CacheState, k: Array, v: Array, positions: Array, runs: Runs) -> CacheState:
    """The cache with the tokens of the last document of each row; emptied first where that began in the row."""
    slots = state.keys.shape[1]
    last = jnp.take_along_axis(positions, jnp.maximum(runs.count - 1, 0)[:, None], axis=1)
    kept = runs.real & (runs.index == runs.last[:, None]) & (positions > last - slots)
    places = jnp.where(kept, positions % slots, slots)
    rows = jnp.arange(positions.shape[0])[:, None]

    def write(cache: Array, new: Array) -> Array:
        if positions.shape[1] > 1:
            cache = jnp.where((runs.last > 0)[:, None, None, None], 0, cache)
        return cache.at[rows, places].set(new.astype(cache.dtype), mode="drop")

    return CacheState(keys=write(state.keys, k), values=write(state.values, v))


def _look_up(
    q: Float[Array, "batch heads d"], cache: CacheState, seen: Bool[Array, "batch slots"]
) -> Float[Array, "batch heads d"]:
    """Attention of one query a row to the slots that it sees, in fp32."""
    dtype = accumulation_dtype(q, cache.keys)
    groups = cache.keys.shape[2]
    grouped = rearrange(q * q.shape[-1] ** -0.5, "batch (groups share) d -> batch groups share d", groups=groups)
    scores = jnp.einsum("bgrd,bsgd->bgrs", grouped, cache.keys, preferred_element_type=dtype, precision=EXACT)
    weights = jax.nn.softmax(scores, axis=-1, where=seen[:, None, None])
    out = jnp.einsum(
        "bgrs,bsgd->bgrd",
        weights.astype(cache.values.dtype),
        cache.values,
        preferred_element_type=dtype,
        precision=EXACT,
    )
    return rearrange(out, "batch groups share d -> batch (groups share) d")
