"""Lightning attention, the linear layers of MiniMax-01: a fixed decay a head, which weakens with the depth."""

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
from training.mixers.norm import RMSNorm
from training.mixers.projection import Projection
from training.mixers.states import RecurrentState, empty_memory, step_as_stretch


@final
@dataclass(frozen=True, kw_only=True)
class LightningConfig:
    """Lightning attention (https://arxiv.org/abs/2501.08313). Raises TrainingError where a number makes none."""

    type: Literal["lightning"] = "lightning"
    """Which mixer this is."""
    n_heads: int
    """Heads, each with a decay of its own."""
    d_head: int | None = None
    """Channels of a head. null: the width of the model over the heads."""
    norm_eps: float = 1e-6
    """Added to the mean square in the norm of the outputs."""
    chunk: int = 64
    """Tokens that are looked at in one piece; a matter of speed alone."""

    def __post_init__(self) -> None:
        check_at_least(self.type, 1, n_heads=self.n_heads, d_head=self.d_head, chunk=self.chunk)
        check_at_least(self.type, 0, norm_eps=self.norm_eps)


@final
class Lightning(AbstractMixer[RecurrentState]):
    """SiLU of one fused projection, decayed linear attention, a norm over all heads, and a sigmoid gate."""

    qkv_proj: Projection
    """Head by head: its queries, its keys, its values."""
    gate_proj: Projection
    out_proj: Projection
    norm: RMSNorm
    slopes: Float[Array, " heads"]
    """How much a head forgets a token, fp32. An array, since layers of one stack differ in it, and not trained."""
    config: LightningConfig = eqx.field(static=True)

    @staticmethod
    def init(config: LightningConfig, d_model: int, *, layer: int, n_layers: int, key: PRNGKeyArray) -> Lightning:
        """Fresh parameters in fp32. Raises TrainingError where the heads do not divide the model."""
        d_head = config.d_head
        if d_head is None:
            check_divides(config.type, "n_heads", config.n_heads, "d_model", d_model)
            d_head = d_model // config.n_heads
        inner = config.n_heads * d_head
        of_qkv, of_gate, of_out = jax.random.split(key, 3)
        return Lightning(
            qkv_proj=Projection.inward(d_model, 3 * inner, key=of_qkv),
            gate_proj=Projection.inward(d_model, inner, key=of_gate),
            out_proj=Projection.outward(inner, d_model, n_layers=n_layers, key=of_out),
            norm=RMSNorm.init(inner, eps=config.norm_eps),
            slopes=slopes(config.n_heads, layer=layer, n_layers=n_layers),
            config=config,
        )

    def init_state(self, batch: int, *, context: int) -> RecurrentState:
        """See AbstractMixer."""
        d_head = self.norm.weight.shape[0] // self.config.n_heads
        return RecurrentState(memory=empty_memory(batch, self.config.n_heads, d_head, d_head), tails=())

    def __call__(
        self,
        x: Float[Array, "batch time model"],
        positions: Int[Array, "batch time"],
        segments: Int[Array, "batch time"],
        state: RecurrentState | None = None,
    ) -> tuple[Float[Array, "batch time model"], RecurrentState | None]:
        """See AbstractMixer."""
        qkv = jax.nn.silu(self.qkv_proj(x))
        q, k, v = rearrange(
            qkv, "batch time (heads part d) -> part batch time heads d", part=3, heads=self.config.n_heads
        )
        out, memory = linear_attention(
            q,
            k,
            v,
            -jax.lax.stop_gradient(self.slopes),
            state=None if state is None else state.memory,
            segments=segments,
            chunk=self.config.chunk,
        )
        normed = self.norm(rearrange(out, "batch time heads d -> batch time (heads d)")).astype(x.dtype)
        mixed = self.out_proj(normed * jax.nn.sigmoid(self.gate_proj(x)))
        return mixed, None if state is None else RecurrentState(memory=memory, tails=())

    def step(
        self,
        x: Float[Array, "batch model"],
        position: Int[Array, " batch"],
        active: Bool[Array, " batch"],
        state: RecurrentState,
    ) -> tuple[Float[Array, "batch model"], RecurrentState]:
        """See AbstractMixer."""
        return step_as_stretch(self, x, position, active, state)


def slopes(n_heads: int, *, layer: int, n_layers: int) -> Float[Array, " heads"]:
    """The log decays of the heads of a layer, counted from 0, with their sign turned: those of ALiBi for a power of two
    of heads, weaker with the depth. As in MiniMax-01, its small numbers included, which keep the last layer from 0."""
    heads = jnp.arange(1, n_heads + 1, dtype=jnp.float32)
    depth = 1 - layer / (n_layers - 1 + 1e-5) + 1e-5
    return 2 ** (-8 * heads / n_heads) * depth
