"""AdamW: optax's, with the defaults of language-model training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import optax

from training.errors import TrainingError


@final
@dataclass(frozen=True, kw_only=True)
class AdamWConfig:
    """AdamW with decoupled weight decay. Source: https://arxiv.org/abs/1711.05101.

    Raises TrainingError for a rate or a decay that cannot be.
    """

    type: str = "adamw"
    """The name of this optimizer in a configuration."""
    b1: float = 0.9
    """Decay of the first moment, below 1."""
    b2: float = 0.95
    """Decay of the second moment, below 1; language models take less than the paper's 0.999."""
    eps: float = 1e-8
    """Added to the root of the second moment."""

    def __post_init__(self) -> None:
        for name in ("b1", "b2"):
            if not 0 <= getattr(self, name) < 1:
                raise TrainingError(
                    f"{name} is {getattr(self, name)}; it is the decay of an average, from 0 to below 1"
                )
        if self.eps <= 0:
            raise TrainingError(f"eps is {self.eps}; it keeps a division by zero off, and is positive")


def scale_by_adamw(config: AdamWConfig) -> optax.GradientTransformation:
    """The direction of AdamW, before weight decay and learning rate."""
    return optax.scale_by_adam(b1=config.b1, b2=config.b2, eps=config.eps)
