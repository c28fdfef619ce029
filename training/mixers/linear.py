"""Linear attention as it was first: positive features, divided by their sum, nothing forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import equinox as eqx
import jax
from einops import rearrange
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from training.mixers.checks import check_at_least, check_divides
from training.mixers.feature_maps import elu_plus_one
from training.mixers.mixer import AbstractMixer
from training.mixers.normaliser import normalised_attention
from training.mixers.projection import Projection
from training.mixers.states import RecurrentState, empty_memory, step_as_stretch


@final
@dataclass(frozen=True, kw_only=True)
class LinearConfig:
    """Vanilla linear attention (https://arxiv.org/abs/2006.16236). Raises TrainingError where a number makes none."""

    type: Literal["linear"] = "linear"
    """Which mixer this is."""
    n_heads: int
    """Heads; they divide the width of the model."""
    chunk: int = 64
    """Tokens that are looked at in one piece; a matter of speed alone."""

    def __post_init__(self) -> None:
        check_at_least(self.type, 1, n_heads=self.n_heads, chunk=self.chunk)


@final
class Linear(AbstractMixer[RecurrentState]):
    """Attention under the weights phi(q)·phi(k) with phi = elu + 1, over their sum."""

    q_proj: Projection
    k_proj: Projection
    v_proj: Projection
    o_proj: Projection
    config: LinearConfig = eqx.field(static=True)

    @staticmethod
    def init(config: LinearConfig, d_model: int, *, layer: int, n_layers: int, key: PRNGKeyArray) -> Linear:
        """Fresh parameters in fp32. Raises TrainingError where the heads do not divide the model."""
        check_divides(config.type, "n_heads", config.n_heads, "d_model", d_model)
        of_q, of_k, of_v, of_o = jax.random.split(key, 4)
        return Linear(
            q_proj=Projection.inward(d_model, d_model, key=of_q),
            k_proj=Projection.inward(d_model, d_model, key=of_k),
            v_proj=Projection.inward(d_model, d_model, key=of_v),
            o_proj=Projection.outward(d_model, d_model, n_layers=n_layers, key=of_o),
            config=config,
        )

    def init_state(self, batch: int, *, context: int) -> RecurrentState:
        """See AbstractMixer."""
        d_head = self.v_proj.weight.shape[0] // self.config.n_heads
        return RecurrentState(memory=empty_memory(batch, self.config.n_heads, d_head, d_head + 1), tails=())

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
        out, memory = normalised_attention(
            elu_plus_one(q),
            elu_plus_one(k),
            v,
            memory=None if state is None else state.memory,
            segments=segments,
            chunk=self.config.chunk,
        )
        mixed = self.o_proj(rearrange(out, "batch time heads d -> batch time (heads d)").astype(x.dtype))
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
