"""The settings of PSGD-Kron, with defaults that hold for language models."""

from __future__ import annotations

import difflib
import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

from training.errors import TrainingError
from training.optim.geometries import geometries


@final
class Whiten(enum.Enum):
    """Which quantity the preconditioner makes white."""

    MOMENTUM = "momentum"
    """The averaged gradient: for noisy gradients, as those of a language model."""
    GRADIENT = "gradient"
    """The gradient of the step: fewer steps on deterministic, full-batch problems, and a second product a refresh."""


@final
class Memory(enum.Enum):
    """Which axes of a parameter get a dense factor."""

    BOTH_DENSE = "both_dense"
    """Every axis up to `max_dense`."""
    ONE_SIDED = "one_sided"
    """The smallest axis only (of equal ones the first); the others are diagonal."""
    DIAGONAL = "diagonal"
    """None: one number for each index of an axis."""


@final
class FactorDtype(enum.Enum):
    """How factors are stored. They are computed with in fp32 in either case."""

    FLOAT32 = "float32"
    """The default, for bf16 parameters too."""
    BFLOAT16 = "bfloat16"
    """Half the memory. The factors' step size must stay >= 0.1, or steps are rounded away."""


@final
class Precision(enum.Enum):
    """Of matrix products of fp32 numbers on an accelerator; a CPU knows one only."""

    DEFAULT = "default"
    """One pass in bf16 on a TPU."""
    HIGH = "high"
    """Three passes."""
    HIGHEST = "highest"
    """Six passes: fp32."""


BF16_FLOOR = 0.1
"""The smallest step size of the factors that survives the rounding of bf16."""

_FRACTIONS = ("b1", "lipschitz_decay")
_POSITIVE = ("rms_cap", "element_cap", "precondition_rate", "final_precondition_rate")
_COUNTS = ("block_size", "max_dense", "chunk_rows", "lanes", "refresh_period", "anneal_steps", "balance_every")


@final
@dataclass(frozen=True, kw_only=True)
class KronConfig:
    """How PSGD-Kron whitens. Raises TrainingError for a value that cannot be meant."""

    type: Literal["kron"] = "kron"
    """Which optimizer these settings are of."""
    b1: float = 0.95
    """Decay of the momentum; 0 keeps none."""
    geometry: str = "quad"
    """How factors descend: the name of a module of `training.optim.geometries`."""
    whiten: Whiten = Whiten.MOMENTUM
    """Which quantity the preconditioner makes white."""
    precondition_rate: float = 0.5
    """The step size of the factors at first. 0.5 finds the scale of every layer in tens of steps; what remains in
    steady state is a relative error of about 0.4 times its square root."""
    final_precondition_rate: float = 0.05
    """The step size of the factors after `anneal_steps`; at least 0.1 with bf16 factors."""
    anneal_steps: int = 2000
    """Steps over which the step size of the factors goes down, on a cosine."""
    lipschitz_decay: float = 0.95
    """Decay of the running bound that the step size is divided by; 0.999 for very sparse gradients."""
    damping: float = 1e-9
    """Size of the noise that keeps directions without gradient from being amplified for ever."""
    relative_damping: float = 2.0**-23
    """Size of that noise relative to the mean magnitude of a block."""
    initial_scale: float | None = 1.0
    """What Q is at first, as a multiple of the identity. None takes it from the first gradient of each leaf that is
    not zero."""
    dense_steps: int = 500
    """Steps at first in which every block is refreshed: amortising from the start would throw the gain away."""
    refresh_period: int = 10
    """After that every block is refreshed once in so many steps, an equal share of the blocks at each."""
    balance_every: int = 100
    """After so many refreshes the factors of a block are scaled to equal largest entries."""
    block_size: int = 128
    """Dense axes are split evenly into parts of at most this size. The cost of a block a number grows with it, and so
    does what is whitened together: 128 suits a CPU, up to 1024 an accelerator."""
    max_dense: int = 4096
    """A longer axis, as that of a vocabulary, gets a diagonal factor."""
    memory: Memory = Memory.BOTH_DENSE
    """Which axes get a dense factor."""
    memory_budget_bytes: int | None = None
    """The greatest state that `init` makes; a larger one is refused, and the layer that takes most is named."""
    factor_dtype: FactorDtype = FactorDtype.FLOAT32
    """How factors are stored."""
    precision: Precision = Precision.HIGHEST
    """Of the matrix products."""
    chunk_rows: int = 8
    """Blocks computed at once: few on a CPU, whose cache then holds their temporaries; hundreds on an accelerator."""
    lanes: int = 8
    """Over how many devices a stack of blocks may be sharded. It settles the order of the rotation, which so does not
    depend on the mesh."""
    rms_cap: float = 1.1
    """The greatest root mean square of the update of a layer's leaf."""
    element_cap: float = 10.0
    """The greatest magnitude of any number of an update."""
    update_scale: float = 1.0
    """Multiplied with every update; 0.2 gives updates of the size of AdamW's late in training."""
    seed: int = 0
    """Of the random vectors from which norms are estimated."""

    def __post_init__(self) -> None:
        for name in (*_FRACTIONS, "update_scale", "damping", "relative_damping"):
            self._check(name, lambda value: value >= 0, "is at least 0")
        for name in _FRACTIONS:
            self._check(name, lambda value: value < 1, "is below 1")
        for name in _POSITIVE:
            self._check(name, lambda value: value > 0, "is above 0")
        for name in _COUNTS:
            self._check(name, lambda value: value >= 1, "is at least 1")
        self._check("dense_steps", lambda value: value >= 0, "is at least 0")
        self._check("precondition_rate", lambda value: value <= 1, "is at most 1: a greater step overshoots")
        self._check("final_precondition_rate", lambda value: value <= 1, "is at most 1: a greater step overshoots")
        if self.initial_scale is not None:
            self._check("initial_scale", lambda value: value > 0, "is above 0, or null for one taken from the gradient")
        if self.factor_dtype is FactorDtype.BFLOAT16:
            rule = f"is at least {BF16_FLOOR} with bfloat16 factors: a smaller step is rounded away"
            self._check("precondition_rate", lambda value: value >= BF16_FLOOR, rule)
        if self.memory_budget_bytes is not None:
            self._check("memory_budget_bytes", lambda value: value >= 0, "is at least 0, or null for no budget")
        self._check_geometry()

    @property
    def final_rate(self) -> float:
        """The step size of the factors in the end: not below what the dtype of the factors can hold."""
        floor = BF16_FLOOR if self.factor_dtype is FactorDtype.BFLOAT16 else 0.0
        return max(self.final_precondition_rate, floor)

    def _check(self, name: str, holds: Callable[[float], bool], rule: str) -> None:
        """Refuse a number that breaks its rule, or is none."""
        value = getattr(self, name)
        if not math.isfinite(value) or not holds(value):
            raise TrainingError(f"kron: {name} is {value}, but it {rule}. Leave it out for the default.")

    def _check_geometry(self) -> None:
        """Refuse a geometry that there is no module for."""
        names = geometries()
        if self.geometry not in names:
            close = difflib.get_close_matches(self.geometry, names, n=1)
            meant = f" Did you mean {close[0]}?" if close else ""
            raise TrainingError(f"kron: geometry is {self.geometry!r}, but it is one of {', '.join(names)}.{meant}")
