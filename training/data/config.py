"""What a run reads: the `data:` part of its configuration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from training.errors import TrainingError


@final
@dataclass(frozen=True, kw_only=True)
class SourceConfig:
    """One prepared folder. Raises TrainingError for a weight or a cap that can not be."""

    path: str
    """The folder that `python -m training prepare --out` has written."""
    weight: float | None = None
    """Share of the rows, relative to the weights of the other sources; all sources have one or none has. Without, a
    source's share grows with its size: see `temperature`."""
    max_epochs: float | None = None
    """Passes over this source at most; what it would take beyond goes to the others (UniMax). No cap by default."""

    def __post_init__(self) -> None:
        if not self.path:
            raise TrainingError("data.sources: a source needs a path, the folder that prepare has written")
        if self.weight is not None and not (math.isfinite(self.weight) and self.weight >= 0):
            raise TrainingError(f"data.sources: the weight of {self.path} is {self.weight}; it must be 0 or more")
        if self.max_epochs is not None and not (math.isfinite(self.max_epochs) and self.max_epochs > 0):
            raise TrainingError(f"data.sources: max_epochs of {self.path} is {self.max_epochs}; it must be above 0")


@final
@dataclass(frozen=True, kw_only=True)
class StageConfig:
    """Other weights from a step on. Raises TrainingError for a step or a weight that can not be."""

    from_step: int
    """The first step with these weights; 1 or more, for the sources' own weights hold from step 0."""
    weights: tuple[float, ...]
    """One for each source, in the order of `sources`, relative to each other. 0 leaves a source out."""

    def __post_init__(self) -> None:
        if self.from_step < 1:
            raise TrainingError(f"data.stages: from_step is {self.from_step}; a later stage begins at step 1 or later")
        if not all(math.isfinite(weight) and weight >= 0 for weight in self.weights):
            raise TrainingError(f"data.stages: the weights from step {self.from_step} must all be 0 or more")


@final
@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which prepared folders a run reads, and in which proportions.

    Raises TrainingError where the parts contradict each other.
    """

    sources: tuple[SourceConfig, ...]
    """One or more. They must have been prepared with the same tokenizer and sequence length."""
    temperature: float = 1.0
    """Of sources without weights, the share is proportional to rows^(1/temperature): 1 is by size, larger is more even.
    """
    stages: tuple[StageConfig, ...] = ()
    """Later weights, in the order of their steps."""
    shuffle: bool = True
    """Each pass over a source in an order of its own; without, always as prepared."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise TrainingError("data.sources is empty; name a folder that `python -m training prepare` has written")
        given = [source.weight is not None for source in self.sources]
        if any(given) and not all(given):
            without = next(source.path for source in self.sources if source.weight is None)
            raise TrainingError(
                f"data.sources: {without} has no weight, and others have; give all of them one, or none"
            )
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise TrainingError(f"data.temperature is {self.temperature}; it must be above 0")
        if any(given) and self.temperature != 1:
            raise TrainingError("data.temperature has no effect on sources with weights; leave one of both out")
        self._check_stages()

    def _check_stages(self) -> None:
        steps = [stage.from_step for stage in self.stages]
        if sorted(set(steps)) != steps:
            raise TrainingError(f"data.stages: from_step must rise from stage to stage; the steps are {steps}")
        for stage in self.stages:
            if len(stage.weights) != len(self.sources):
                raise TrainingError(
                    f"data.stages: {len(stage.weights)} weights from step {stage.from_step} for {len(self.sources)} "
                    "sources; give one for each, 0 to leave a source out"
                )
