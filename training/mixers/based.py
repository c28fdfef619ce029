"""The linear layers of BASED: a Taylor expansion of softmax attention, behind short convolutions.

A BASED model is a pattern of these layers and of softmax attention with a small window, which sees sharply what is
near.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import equinox as eqx
import jax
from einops import rearrange
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from training.mixers.checks import check_at_least, check_divides
from training.mixers.documents import runs_of
from training.mixers.feature_maps import taylor, taylor_features
from training.mixers.mixer import AbstractMixer
from training.mixers.normaliser import normalised_attention
from training.mixers.projection import Projection
from training.mixers.short_convolution import ShortConvolution, convolved
from training.mixers.states import RecurrentState, empty_memory, step_as_stretch


@final
@dataclass(frozen=True, kw_only=True)
class BasedConfig:
    """Taylor linear attention (https://arxiv.org/abs/2402.18668). Raises TrainingError where a number makes none."""

    type: Literal["based"] = "based"
    """Which mixer this is."""
    n_heads: int
    """Heads; they divide the width of the model."""
    d_feature: int = 16
    """Channels of queries and keys before the expansion, which makes 153 of 16. What is recalled grows with them."""
    taps: int = 4
    """Tokens that the short convolutions of queries, keys and values see; 0 for none."""
    chunk: int = 64
    """Tokens that are looked at in one piece; a matter of speed alone."""

    def __post_init__(self) -> None:
        check_at_least(self.type, 1, n_heads=self.n_heads, d_feature=self.d_feature, chunk=self.chunk)
        check_at_least(self.type, 0, taps=self.taps)


@final
class Based(AbstractMixer[RecurrentState]):
    """Attention under the weights 1 + s + s²/2 with s = q·k/sqrt(d), over their sum."""

    q_proj: Projection
    k_proj: Projection
    v_proj: Projection
    o_proj: Projection
    convolutions: tuple[ShortConvolution, ...]
    """Those of queries, keys and values, or none."""
    config: BasedConfig = eqx.field(static=True)

    @staticmethod
    def init(config: BasedConfig, d_model: int, *, layer: int, n_layers: int, key: PRNGKeyArray) -> Based:
        """Fresh parameters in fp32. Raises TrainingError where the heads do not divide the model."""
        check_divides(config.type, "n_heads", config.n_heads, "d_model", d_model)
        features = config.n_heads * config.d_feature
        of_q, of_k, of_v, of_o, of_taps = jax.random.split(key, 5)
        return Based(
            q_proj=Projection.inward(d_model, features, key=of_q),
            k_proj=Projection.inward(d_model, features, key=of_k),
            v_proj=Projection.inward(d_model, d_model, key=of_v),
            o_proj=Projection.outward(d_model, d_model, n_layers=n_layers, key=of_o),
            convolutions=ShortConvolution.several((features, features, d_model), config.taps, key=of_taps),
            config=config,
        )

    def init_state(self, batch: int, *, context: int) -> RecurrentState:
        """See AbstractMixer."""
        d_head = self.v_proj.weight.shape[0] // self.config.n_heads
        return RecurrentState(
            memory=empty_memory(batch, self.config.n_heads, taylor_features(self.config.d_feature), d_head + 1),
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
        projected = (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        inputs, tails = convolved(self.convolutions, projected, runs_of(segments), before)
        q, k, v = (
            rearrange(each, "batch time (heads d) -> batch time heads d", heads=self.config.n_heads) for each in inputs
        )
        out, memory = normalised_attention(
            taylor(q),
            taylor(k),
            v,
            memory=None if state is None else state.memory,
            segments=segments,
            chunk=self.config.chunk,
        )
        mixed = self.o_proj(rearrange(out, "batch time heads d -> batch time (heads d)").astype(x.dtype))
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
