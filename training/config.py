"""The configuration of a run: read from YAML and `--set`, typed, frozen, and written into the run's folder."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from training.checkpoint.retention import Retention
from training.config_loading import build, override
from training.data.batches import BatchSource
from training.data.config import DataConfig
from training.errors import TrainingError
from training.model.config import ModelConfig
from training.optim.build import OptimConfig
from training.optim.kron_config import KronConfig
from training.optim.learning import LearningConfig
from training.preemption import GRACE_SECONDS
from training.yaml_file import read


@final
class Compute(enum.Enum):
    """The dtype of the forward and backward pass; parameters and the optimizer's state stay in fp32."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    """What a TPU multiplies in. Norms and decays stay in fp32 all the same."""


@final
@dataclass(frozen=True, kw_only=True)
class BatchConfig:
    """The global batch. Its rows are as long as those that the data were prepared in."""

    size: int = 16
    """Rows a step, over all devices."""
    accumulate: int = 1
    """Small batches that the rows are cut into, one after the other: less memory, the same step."""

    def __post_init__(self) -> None:
        for name in ("size", "accumulate"):
            if getattr(self, name) < 1:
                raise TrainingError(f"{name} is {getattr(self, name)}; it counts from 1")
        if self.size % self.accumulate:
            raise TrainingError(f"accumulate is {self.accumulate}, which does not divide size, {self.size}")


@final
@dataclass(frozen=True, kw_only=True)
class MeshConfig:
    """Devices along each axis; their product is the number of devices."""

    data: int | None = None
    """Copies of the model; left out, as many as the devices that remain."""
    fsdp: int = 1
    """Shards of every parameter."""
    tensor: int = 1
    """Shards of every matrix product."""


@final
@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """When the state is saved, where, and what is kept."""

    every: int = 100
    """Steps between two saves; the last step and the one of a preemption are saved too."""
    root: str | None = None
    """A folder or gs://bucket/prefix; left out, `checkpoints` in the run's folder, which goes with its machine."""
    keep: Retention = field(default_factory=Retention)
    """Which of the older ones stay."""
    grace_seconds: float = GRACE_SECONDS
    """From the notice of a preemption to the end of the process."""

    def __post_init__(self) -> None:
        if self.every < 1:
            raise TrainingError(f"every is {self.every}; it counts steps, from 1")
        if self.root is not None and not self.root.strip():
            raise TrainingError(
                "root is empty; name a folder or gs://bucket/prefix, or leave it out for the folder of the run"
            )
        if not 1 <= self.grace_seconds <= 120:
            raise TrainingError(f"grace_seconds is {self.grace_seconds}; a spot VM is off after 30 (120 at the most)")


@final
@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """What is shown and written besides the line of every step. Steps count from 1; 0 is never."""

    every: int = 10
    """Steps between two lines where the output is no terminal."""
    validate_every: int = 100
    """Steps between two looks at the validation text; the last step is always followed by one."""
    validation_batches: int = 4
    """Batches of one look, the same ones each time."""
    sample_every: int = 100
    """Steps between two samples of text."""
    sample_tokens: int = 48
    """Tokens of a sample."""
    prompt: str = "\n"
    """What a sample goes on from."""
    temperature: float = 0.8
    """Of a sample; 0 takes the likeliest token."""
    tensorboard: bool = True
    """Whether event files for TensorBoard are written."""

    def __post_init__(self) -> None:
        for name in ("validate_every", "validation_batches", "sample_every"):
            if getattr(self, name) < 0:
                raise TrainingError(f"{name} is {getattr(self, name)}; it counts from 1, and 0 is never")
        for name in ("every", "sample_tokens"):
            if getattr(self, name) < 1:
                raise TrainingError(f"{name} is {getattr(self, name)}; it counts from 1")
        if not self.prompt:
            raise TrainingError("prompt is empty; a sample goes on from a character at least")
        if not self.temperature >= 0:
            raise TrainingError(f"temperature is {self.temperature}; it is 0 or positive")


@final
@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One training run.

    Raises TrainingError for values that make no run.
    """

    name: str
    """What the run is called; its heartbeat and checkpoints say so."""
    steps: int
    """Updates to make."""
    seed: int = 0
    """Of the parameters, the order of the data, and the samples."""
    model: ModelConfig
    """The model; `vocab_size` is that of the data, and may be left out."""
    data: DataConfig
    """What it learns from."""
    optim: OptimConfig = field(default_factory=KronConfig)
    """How it learns: PSGD-Kron unless said otherwise."""
    learning: LearningConfig = field(default_factory=LearningConfig)
    """How fast."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """How much at once."""
    mesh: MeshConfig = field(default_factory=MeshConfig)
    """On which devices."""
    compute: Compute = Compute.FLOAT32
    """In which dtype."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    """What is saved."""
    log: LogConfig = field(default_factory=LogConfig)
    """What is shown."""
    skips_in_a_row: int = 10
    """Steps with a gradient or loss that is not finite, one after the other, that stop the run (exit 8)."""
    cost_per_hour: float | None = None
    """Price of the slice in an hour, as `spotrail plan` says it, for the cost so far; null: none is shown."""

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 63 or set(self.name) - _NAME or set(self.name) == {"."}:
            raise TrainingError(f"name is {self.name!r}; use 1 to 63 letters, digits, '-', '_' and '.'")
        if not 1 <= self.steps < 1 << 31:
            raise TrainingError(f"steps is {self.steps}; it counts updates, from 1 to 2^31 - 1")
        if not 0 <= self.seed < 1 << 63:
            raise TrainingError(f"seed is {self.seed}; it is from 0 to 2^63 - 1")
        if self.skips_in_a_row < 1:
            raise TrainingError(f"skips_in_a_row is {self.skips_in_a_row}; it counts steps, from 1")
        if self.cost_per_hour is not None and not 0 <= self.cost_per_hour < 1e9:
            raise TrainingError(f"cost_per_hour is {self.cost_per_hour}; it is a price, 0 or positive")


_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def read_data(path: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """The plain data of a configuration file after its overrides. Raises TrainingError."""
    data = read(path)
    for assignment in overrides:
        override(data, assignment)
    return data


def read_run(data: Mapping[str, Any], where: str) -> tuple[RunConfig, BatchSource]:
    """The run that plain data say, and its batches, whose vocabulary is that of the model.

    Raises TrainingError with every mistake, also where the data cannot be read, or the model was given another
    vocabulary than theirs.
    """
    if "data" not in data:
        raise TrainingError(f"{where}: data is missing; it names what `python -m training prepare` has made")
    # The model cannot be judged before the vocabulary is known, so the data come first.
    vocab_size = BatchSource(build(_DataAlone, {"data": data["data"]}, where).data, 0, 1, 1).vocab_size
    model = data.get("model")
    given = model.get("vocab_size") if isinstance(model, Mapping) else None
    if given not in (None, vocab_size):
        raise TrainingError(
            f"{where}: model.vocab_size is {given}, and the data have {vocab_size:,} tokens; leave it out, or prepare "
            f"the data with --vocab-size {given}"
        )
    if isinstance(model, Mapping):
        data = {**data, "model": {**model, "vocab_size": vocab_size}}
    config = build(RunConfig, data, where)
    return config, BatchSource(config.data, config.seed, config.batch.size, config.steps)


@final
@dataclass(frozen=True, kw_only=True)
class _DataAlone:
    data: DataConfig
