"""One layer: a mixer and a feed-forward, each behind a norm and added to the residual stream."""

from __future__ import annotations

from typing import Any, final

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from training.mixers.mixer import AbstractMixer
from training.mixers.norm import RMSNorm
from training.mixers.registry import build_mixer
from training.model.config import ModelConfig
from training.model.feed_forward import SwiGLU


@final
class Block(eqx.Module):
    """Pre-norm residual block: `x + mixer(norm(x))`, then `x + feed_forward(norm(x))`."""

    mixer_norm: RMSNorm
    mixer: AbstractMixer[Any]
    feed_forward_norm: RMSNorm
    feed_forward: SwiGLU

    @staticmethod
    def init(config: ModelConfig, *, layer: int, key: PRNGKeyArray) -> Block:
        """The block of a layer, counted from 0, with fresh parameters in fp32."""
        of_mixer, of_feed_forward = jax.random.split(key)
        mixer = config.mixers[layer % len(config.mixers)]
        return Block(
            mixer_norm=RMSNorm.init(config.d_model, eps=config.norm_eps),
            mixer=build_mixer(mixer, config.d_model, layer=layer, n_layers=config.n_layers, key=of_mixer),
            feed_forward_norm=RMSNorm.init(config.d_model, eps=config.norm_eps),
            feed_forward=SwiGLU.init(
                config.d_model, config.d_feed_forward, n_layers=config.n_layers, key=of_feed_forward
            ),
        )

    def __call__(
        self,
        x: Float[Array, "batch time model"],
        positions: Int[Array, "batch time"],
        segments: Int[Array, "batch time"],
        state: Any = None,
    ) -> tuple[Float[Array, "batch time model"], Any]:
        """A stretch of tokens, going on from the mixer's state where there is one."""
        mixed, state = self.mixer(self.mixer_norm(x), positions, segments, state)
        return self._feed_forward(x + mixed), state

    def step(
        self,
        x: Float[Array, "batch model"],
        position: Int[Array, " batch"],
        active: Bool[Array, " batch"],
        state: Any,
    ) -> tuple[Float[Array, "batch model"], Any]:
        """One token more a row."""
        mixed, state = self.mixer.step(self.mixer_norm(x), position, active, state)
        return self._feed_forward(x + mixed), state

    def _feed_forward(self, x: Float[Array, "*tokens model"]) -> Float[Array, "*tokens model"]:
        return x + self.feed_forward(self.feed_forward_norm(x))
