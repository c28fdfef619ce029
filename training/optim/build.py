"""From configuration to the optimizer of a run: method, weight decay, learning rate, and the guard around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import jax
import optax
from jaxtyping import PyTree

from training.optim.adamw import AdamWConfig, scale_by_adamw
from training.optim.blocks import KeyPath
from training.optim.clip import clip_by_global_norm
from training.optim.guard import guarded
from training.optim.kron import scale_by_kron
from training.optim.kron_config import KronConfig
from training.optim.learning import LearningConfig, rate_at
from training.optim.muon import MuonConfig, scale_by_muon
from training.optim.trained import trained_in_fp32

OptimConfig = KronConfig | AdamWConfig | MuonConfig
"""The method; its field `type` is its name in a configuration."""

PEAKS: Final[Mapping[str, float]] = MappingProxyType({"kron": 4e-3, "adamw": 8e-3, "muon": 4e-3})
"""Peak learning rates to begin with: of Kron and AdamW the best of five on a small model (docs/experiments.md)."""


def build_optimizer(
    config: OptimConfig,
    learning: LearningConfig,
    *,
    steps: int,
    stacked: Callable[[KeyPath], bool],
) -> optax.GradientTransformationExtraArgs:
    """The whole update of a run of `steps` updates, under the guard.

    Its `update(grads, state, params, *, loss=None, basis=None)` gives what is to be added to the parameters. `stacked`
    says of which leaves the first axis numbers the blocks of a stack.
    Raises TrainingError for a schedule that never reaches its peak.
    """
    inner = optax.chain(
        optax.identity() if learning.clip_norm is None else clip_by_global_norm(learning.clip_norm),
        _direction(config, stacked),
        _decay(learning.weight_decay, stacked),
        optax.scale_by_learning_rate(learning_rate(config, learning, steps)),
    )
    return guarded(trained_in_fp32(inner))


def learning_rate(config: OptimConfig, learning: LearningConfig, steps: int) -> optax.Schedule:
    """The learning rate of each update, for the metrics too."""
    return rate_at(PEAKS[config.type] if learning.rate is None else learning.rate, learning, steps)


def _direction(config: OptimConfig, stacked: Callable[[KeyPath], bool]) -> optax.GradientTransformation:
    match config:
        case KronConfig():
            return scale_by_kron(config, stacked=stacked)
        case AdamWConfig():
            return scale_by_adamw(config)
        case MuonConfig():
            return scale_by_muon(config, stacked)


def _decay(amount: float, stacked: Callable[[KeyPath], bool]) -> optax.GradientTransformation:
    def matrices(params: optax.Params) -> PyTree:
        return jax.tree.map_with_path(lambda path, leaf: leaf.ndim - stacked(path) >= 2, params)

    return optax.add_decayed_weights(amount, mask=matrices) if amount else optax.identity()
