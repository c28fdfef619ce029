"""Retention, the mixer of RetNet: a fixed decay a head, the same in every layer, and rotary positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import equinox as eqx
import jax
import jax.numpy as jnp
from einops import rearrange
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from training.mixers.checks import check_at_least, check_divides
from training.mixers.dispatch import linear_attention
from training.mixers.mixer import AbstractMixer
from training.mixers.norm import rms_normalised
from training.mixers.projection import Projection
from training.mixers.rope import rotate
from training.mixers.states import RecurrentState, empty_memory, step_as_stretch


@final
@dataclass(frozen=True, kw_only=True)
class RetentionConfig:
    """Retention (https://arxiv.org/abs/2307.08621). Raises TrainingError where a number makes none."""

    type: Literal["retention"] = "retention"
    """Which mixer this is."""
    n_heads: int
    """Heads; they divide the width of the model. Head h keeps 1 - 2^(-5-h) of its memory a token, h from 0."""
    value_factor: int = 2
    """How many times as wide values are as queries and keys."""
    rope_base: float = 10_000.0
    """The slowest rotation takes about so many tokens over 2π."""
    norm_eps: float = 1e-6
    """Added to the mean square in the norm of each head's outputs."""
    chunk: int = 64
    """Tokens that are looked at in one piece; a matter of speed alone."""

    def __post_init__(self) -> None:
        check_at_least(
            self.type,
            1,
            n_heads=self.n_heads,
            value_factor=self.value_factor,
            rope_base=self.rope_base,
            chunk=self.chunk,
        )
        check_at_least(self.type, 0, norm_eps=self.norm_eps)


@final
class Retention(AbstractMixer[RecurrentState]):
    """Rotated queries and keys, decayed linear attention, a norm a head, and a swish gate."""

    q_proj: Projection
    k_proj: Projection
    v_proj: Projection
    gate_proj: Projection
    out_proj: Projection
    config: RetentionConfig = eqx.field(static=True)

    @staticmethod
    def init(config: RetentionConfig, d_model: int, *, layer: int, n_layers: int, key: PRNGKeyArray) -> Retention:
        """Fresh parameters in fp32. Raises TrainingError where the heads do not divide the model."""
        check_divides(config.type, "n_heads", config.n_heads, "d_model", d_model)
        inner = config.value_factor * d_model
        of_q, of_k, of_v, of_gate, of_out = jax.random.split(key, 5)
        return Retention(
            q_proj=Projection.inward(d_model, d_model, key=of_q),
            k_proj=Projection.inward(d_model, d_model, key=of_k),
            v_proj=Projection.inward(d_model, inner, key=of_v),
            gate_proj=Projection.inward(d_model, inner, key=of_gate),
            out_proj=Projection.outward(inner, d_model, n_layers=n_layers, key=of_out),
            config=config,
        )

    def init_state(self, batch: int, *, context: int) -> RecurrentState:
        """See AbstractMixer."""
        heads = self.config.n_heads
        dk, dv = (each.weight.shape[0] // heads for each in (self.k_proj, self.v_proj))
        return RecurrentState(memory=empty_memory(batch, heads, dk, dv), tails=())

    def __call__(
        self,
        x: Float[Array, "batch time model"],
        positions: Int[Array, "batch time"],
        segments: Int[Array, "batch time"],
        state: RecurrentState | None = None,
    ) -> tuple[Float[Array, "batch time model"], RecurrentState | None]:
        """See AbstractMixer."""
        q, k, v = (
            rearrange(project(x), "batch time (heads d) -> batch time heads d", heads=self.config.n_heads)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = (rotate(each, positions, base=self.config.rope_base) for each in (q, k * k.shape[-1] ** -0.5))
        out, memory = linear_attention(
            q,
            k,
            v,
            log_decays(self.config.n_heads),
            state=None if state is None else state.memory,
            segments=segments,
            chunk=self.config.chunk,
        )
        normed = rms_normalised(out, self.config.norm_eps).astype(x.dtype)
        gated = rearrange(normed, "batch time heads d -> batch time (heads d)") * jax.nn.silu(self.gate_proj(x))
        return self.out_proj(gated), None if state is None else RecurrentState(memory=memory, tails=())

    def step(
        self,
        x: Float[Array, "batch model"],
        position: Int[Array, " batch"],
        active: Bool[Array, " batch"],
        state: RecurrentState,
    ) -> tuple[Float[Array, "batch model"], RecurrentState]:
        """See AbstractMixer."""
        return step_as_stretch(self, x, position, active, state)


def log_decays(n_heads: int) -> Float[Array, " heads"]:
    """log(1 - 2^(-5-h)) of each head, counted from 0."""
    return jnp.log1p(-(2.0 ** -(5 + jnp.arange(n_heads, dtype=jnp.float32))))
