"""How fast a run learns: the learning rate of a step, the decay of the weights, and the cap on a gradient.

The learning rate is a function of the number of updates made, and of nothing else: a resume cannot shift it.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import final

import optax

from training.errors import TrainingError


@final
class ScheduleKind(enum.Enum):
    """How the learning rate goes after the warm-up."""

    COSINE = "cosine"
    LINEAR = "linear"
    CONSTANT = "constant"
    WSD = "wsd"
    """Warm-up, stable, decay: constant, then linear down over the last `decay_fraction` of the steps.
    Source: MiniCPM, https://arxiv.org/abs/2404.06395, section 4."""


@final
@dataclass(frozen=True, kw_only=True)
class LearningConfig:
    """What every optimizer is told alike.

    Raises TrainingError for a rate, share or number of steps that cannot be.
    """

    rate: float | None = None
    """Peak of the learning rate; left out, the one that `build.PEAKS` has for the optimizer."""
    schedule: ScheduleKind = ScheduleKind.COSINE
    """How it goes after the warm-up."""
    warmup_steps: int = 20
    """Updates until the peak, linear; the update after the last of them is the first at the peak."""
    final_fraction: float = 0.1
    """Share of the peak that the rate goes down to: an update after the last would have it. CONSTANT ignores it."""
    decay_fraction: float = 0.2
    """Share of all steps that WSD decays over. The others ignore it."""
    weight_decay: float = 0.0
    """Decoupled: each update takes this share of the learning rate off every matrix. Vectors keep theirs."""
    clip_norm: float | None = 1.0
    """Greatest global norm of a gradient; one that is longer is scaled down. null: never."""

    def __post_init__(self) -> None:
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise TrainingError(f"rate is {self.rate}; a learning rate is positive and finite")
        if self.warmup_steps < 0:
            raise TrainingError(f"warmup_steps is {self.warmup_steps}; it counts updates, from 0")
        for name in ("final_fraction", "decay_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                raise TrainingError(f"{name} is {getattr(self, name)}; it is a share, from 0 to 1")
        if not 0 <= self.weight_decay < math.inf:
            raise TrainingError(f"weight_decay is {self.weight_decay}; it is 0 or positive")
        if self.clip_norm is not None and not 0 < self.clip_norm < math.inf:
            raise TrainingError(f"clip_norm is {self.clip_norm}; it is positive and finite, or null for none")


def rate_at(peak: float, config: LearningConfig, steps: int) -> optax.Schedule:
    """The learning rate of the update that follows `count` others, for a run of `steps` updates.

    Raises TrainingError where the warm-up takes the whole run.
    """
    if config.warmup_steps >= steps:
        raise TrainingError(
            f"learning.warmup_steps is {config.warmup_steps} and steps is {steps}: the peak is never reached; "
            "warm up for a tenth of the steps or less"
        )
    rest = _after_warmup(peak, config, steps - config.warmup_steps)
    if config.warmup_steps == 0:
        return rest
    # From the first update on it moves: a rate of 0 would be an update thrown away.
    warmup = optax.schedules.linear_schedule(peak / config.warmup_steps, peak, config.warmup_steps - 1)
    return optax.schedules.join_schedules([warmup, rest], [config.warmup_steps])


def _after_warmup(peak: float, config: LearningConfig, steps: int) -> optax.Schedule:
    match config.schedule:
        case ScheduleKind.CONSTANT:
            return optax.schedules.constant_schedule(peak)
        case ScheduleKind.LINEAR:
            return optax.schedules.linear_schedule(peak, peak * config.final_fraction, steps)
        case ScheduleKind.COSINE:
            return optax.schedules.cosine_decay_schedule(peak, steps, alpha=config.final_fraction)
        case ScheduleKind.WSD:
            decay = max(1, min(steps, round(config.decay_fraction * (steps + config.warmup_steps))))
            falling = optax.schedules.linear_schedule(peak, peak * config.final_fraction, decay)
            stable = optax.schedules.constant_schedule(peak)
            return optax.schedules.join_schedules([stable, falling], [steps - decay])
