"""Muon: optax's, on the matrices of the blocks; what is no such matrix goes by AdamW, as its author has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import jax
import optax
from jaxtyping import PyTree

from training.errors import TrainingError
from training.optim.blocks import KeyPath

EMBEDDING: Final = "embed"
"""Part of the name of a leaf whose rows are tokens, which Muon leaves to AdamW."""


@final
@dataclass(frozen=True, kw_only=True)
class MuonConfig:
    """Momentum, orthogonalised. Source: https://kellerjordan.github.io/posts/muon/.

    Raises TrainingError for a decay or a number of iterations that cannot be.
    """

    type: str = "muon"
    """The name of this optimizer in a configuration."""
    beta: float = 0.95
    """Decay of the momentum, below 1."""
    iterations: int = 5
    """Newton-Schulz iterations a step."""
    update_rms: float = 0.2
    """RMS of the update of a matrix before the learning rate: at 0.2 the learning rates of AdamW hold.
    Source: https://arxiv.org/abs/2502.16982, section 2.2."""

    def __post_init__(self) -> None:
        if not 0 <= self.beta < 1:
            raise TrainingError(f"beta is {self.beta}; it is the decay of an average, from 0 to below 1")
        if self.iterations < 1:
            raise TrainingError(f"iterations is {self.iterations}; it counts Newton-Schulz iterations, from 1")
        if self.update_rms <= 0:
            raise TrainingError(f"update_rms is {self.update_rms}; it is positive")


def scale_by_muon(config: MuonConfig, stacked: Callable[[KeyPath], bool]) -> optax.GradientTransformation:
    """The direction of Muon, before weight decay and learning rate.

    `stacked` says of which leaves the first axis numbers the blocks of a stack, each a matrix of its own.
    """

    def dimensions(params: optax.Params) -> PyTree:
        return jax.tree.map_with_path(lambda path, leaf: _matrix(path, leaf.ndim, stacked(path)), params)

    downhill = optax.contrib.muon(
        1.0,
        ns_steps=config.iterations,
        beta=config.beta,
        adam_b2=0.95,
        consistent_rms=config.update_rms,
        muon_weight_dimension_numbers=dimensions,
    )
    return optax.chain(downhill, optax.scale(-1.0))


def _matrix(path: KeyPath, axes: int, stacked: bool) -> optax.contrib.MuonDimensionNumbers | None:
    """Which axes of a leaf are a matrix; None for what AdamW takes."""
    first = 1 if stacked else 0
    if axes - first != 2 or EMBEDDING in jax.tree_util.keystr(path):
        return None
    return optax.contrib.MuonDimensionNumbers(reduction_axis=first, output_axis=first + 1)
