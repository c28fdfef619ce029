"""The mixer of Mamba-2: a decay a head that the token itself decides, by state space duality."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Literal, final

import equinox as eqx
import jax
import jax.numpy as jnp
from einops import rearrange
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from training.errors import TrainingError
from training.mixers.checks import check_at_least, check_divides
from training.mixers.dispatch import linear_attention
from training.mixers.documents import runs_of
from training.mixers.mixer import AbstractMixer
from training.mixers.norm import RMSNorm, rms_normalised
from training.mixers.projection import Projection
from training.mixers.short_convolution import ShortConvolution, convolved
from training.mixers.states import RecurrentState, empty_memory, step_as_stretch


@final
@dataclass(frozen=True, kw_only=True)
class SsdConfig:
    """Mamba-2 (https://arxiv.org/abs/2405.21060). Raises TrainingError where a number makes none."""

    type: Literal["ssd"] = "ssd"
    """Which mixer this is."""
    expand: int = 2
    """How many times as wide as the model it is inside."""
    d_head: int = 64
    """Channels of a head."""
    d_state: int = 128
    """Numbers that a head keeps for each of its channels; the keys have so many."""
    n_groups: int = 1
    """Groups of heads that share queries (C) and keys (B)."""
    taps: int = 4
    """Tokens that the short convolutions see; 0 for none."""
    dt_min: float = 1e-3
    """The least step that a head starts with; steps are drawn evenly in their logarithm."""
    dt_max: float = 0.1
    """The greatest one."""
    norm_eps: float = 1e-5
    """Added to the mean square in the norm of the outputs."""
    chunk: int = 64
    """Tokens that are looked at in one piece; a matter of speed alone."""

    def __post_init__(self) -> None:
        check_at_least(
            self.type,
            1,
            expand=self.expand,
            d_head=self.d_head,
            d_state=self.d_state,
            n_groups=self.n_groups,
            chunk=self.chunk,
        )
        check_at_least(self.type, 0, taps=self.taps, norm_eps=self.norm_eps)
        if not 0 < self.dt_min <= self.dt_max:
            raise TrainingError(
                f"mixer ssd: dt_min is {self.dt_min} and dt_max {self.dt_max}; steps are positive, and the least is no "
                "greater than the greatest"
            )


@final
class Ssd(AbstractMixer[RecurrentState]):
    """Convolved inputs, keys and queries, a step and a decay from the token, a skip, and a gated norm.

    With the step dt = softplus(dt_proj(x) + dt_bias) of a head, its log decay is -exp(a_log) dt, and it writes dt x.
    """

    z_proj: Projection
    """The gate."""
    x_proj: Projection
    b_proj: Projection
    c_proj: Projection
    dt_proj: Projection
    out_proj: Projection
    convolutions: tuple[ShortConvolution, ...]
    """Those of x, B and C, or none."""
    a_log: Float[Array, " heads"]
    dt_bias: Float[Array, " heads"]
    d_skip: Float[Array, " heads"]
    norm: RMSNorm
    config: SsdConfig = eqx.field(static=True)

    @staticmethod
    def init(config: SsdConfig, d_model: int, *, layer: int, n_layers: int, key: PRNGKeyArray) -> Ssd:
        """Fresh parameters in fp32. Raises TrainingError where the heads do not divide the inside of the mixer."""
        inner = config.expand * d_model
        check_divides(config.type, "d_head", config.d_head, "expand × d_model", inner)
        heads = inner // config.d_head
        check_divides(config.type, "n_groups", config.n_groups, "the number of heads", heads)
        shared = config.n_groups * config.d_state
        of_z, of_x, of_b, of_c, of_dt, of_out, of_taps, of_bias, of_a = jax.random.split(key, 9)
        return Ssd(
            z_proj=Projection.inward(d_model, inner, key=of_z),
            x_proj=Projection.inward(d_model, inner, key=of_x),
            b_proj=Projection.inward(d_model, shared, key=of_b),
            c_proj=Projection.inward(d_model, shared, key=of_c),
            dt_proj=Projection.inward(d_model, heads, key=of_dt),
            out_proj=Projection.outward(inner, d_model, n_layers=n_layers, key=of_out),
            convolutions=ShortConvolution.several((inner, shared, shared), config.taps, key=of_taps),
            a_log=jnp.log(jax.random.uniform(of_a, (heads,), jnp.float32, 1, 16)),
            dt_bias=_fresh_dt_bias(config, heads, key=of_bias),
            d_skip=jnp.ones(heads, jnp.float32),
            norm=RMSNorm.init(inner, eps=config.norm_eps),
            config=config,
        )

    def init_state(self, batch: int, *, context: int) -> RecurrentState:
        """See AbstractMixer."""
        return RecurrentState(
            memory=empty_memory(batch, self.a_log.shape[0], self.config.d_state, self.config.d_head),
            tails=tuple(convolution.init_tail(batch) for convolution in self.convolutions),
        )

    def __call__(
        self,
        x: Float[Array, "batch time model"],
        positions: Int[Array, "batch time"],
        segments: Int[Array, "batch time"],
        state: RecurrentState | None = None,
    ) -> tuple[Float[Array, "batch time model"], RecurrentState | None]:
        """See AbstractMixer."""
        before = None if state is None else state.tails
        projected = (self.x_proj(x), self.b_proj(x), self.c_proj(x))
        inputs, tails = convolved(self.convolutions, projected, runs_of(segments), before)
        values, keys, queries = (
            rearrange(jax.nn.silu(each), "batch time (heads d) -> batch time heads d", d=d)
            for each, d in zip(inputs, (self.config.d_head, *(self.config.d_state,) * 2), strict=True)
        )
        dt = jax.nn.softplus(self.dt_proj(x).astype(self.dt_bias.dtype) + self.dt_bias)
        out, memory = linear_attention(
            queries,
            keys,
            (dt[..., None] * values).astype(x.dtype),
            -jnp.exp(self.a_log) * dt,
            state=None if state is None else state.memory,
            segments=segments,
            chunk=self.config.chunk,
        )
        out = rearrange(out + self.d_skip[:, None] * values, "batch time heads d -> batch time (heads d)")
        mixed = self.out_proj(self._gated_norm(out, self.z_proj(x)).astype(x.dtype))
        return mixed, None if state is None else RecurrentState(memory=memory, tails=tails)

    def step(
        self,
        x: Float[Array, "batch model"],
        position: Int[Array, " batch"],
        active: Bool[Array, " batch"],
        state: RecurrentState,
    ) -> tuple[Float[Array, "batch model"], RecurrentState]:
        """See AbstractMixer."""
        return step_as_stretch(self, x, position, active, state)

    def _gated_norm(self, out: Array, z: Array) -> Array:
        """The outputs under their gate, normalised in each group of heads by itself."""
        gated = rearrange(
            out * jax.nn.silu(z.astype(out.dtype)), "... (groups d) -> ... groups d", groups=self.config.n_groups
        )
        normed = rms_normalised(gated, self.config.norm_eps)
        return rearrange(normed, "... groups d -> ... (groups d)") * self.norm.weight


def _fresh_dt_bias(config: SsdConfig, heads: int, *, key: PRNGKeyArray) -> Array:
    """The inverse softplus of steps drawn between the least and the greatest, evenly in their logarithm."""
    dt = jnp.exp(jax.random.uniform(key, (heads,), jnp.float32, log(config.dt_min), log(config.dt_max)))
    return dt + jnp.log(-jnp.expm1(-dt))
