"""The table of the optimizers, which the tests of what all of them do go through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import pytest

from training.optim.adamw import AdamWConfig
from training.optim.build import OptimConfig
from training.optim.kron_config import KronConfig, Whiten
from training.optim.muon import MuonConfig

TOY_STEPS: Final = 2000


class Toy(NamedTuple):
    """How fast an optimizer solves a toy problem."""

    rate: float
    """Peak learning rate, which goes down to 0 on a cosine."""
    steps: int
    """Steps in which the loss is down to `tolerance` of what it was."""
    tolerance: float = 1e-4


@dataclass(frozen=True, kw_only=True)
class Row:
    """One optimizer."""

    config: OptimConfig
    """Its settings for the checks of what holds at any step."""
    bytes_per_number: float
    """Its state for a matrix and an embedding of 64 times as many rows, at most."""
    toys: Mapping[str, Toy]
    """How it does on the toy problems."""
    toy_config: OptimConfig | None = None
    """Its settings there, where they are others."""


# Steps are a third above what was measured; where there is a row for a tolerance of 1e-6, that is a property of the
# method. No Kronecker product and no diagonal reaches 1e-6 on the rotated quadratic.
ROWS: Final[Mapping[str, Row]] = {
    "adamw": Row(
        config=AdamWConfig(),
        bytes_per_number=8.1,
        toys={
            "kronecker": Toy(0.0316, 530),
            "rotated": Toy(0.0316, 420),
            "chained": Toy(0.1, 920),
            "rosenbrock": Toy(0.1, 245),
        },
    ),
    "muon": Row(
        config=MuonConfig(),
        bytes_per_number=8.1,
        toys={
            "kronecker": Toy(0.0316, 1780, 1e-6),
            "rotated": Toy(0.0316, 1110),
            "chained": Toy(0.316, 1850),
            "rosenbrock": Toy(0.1, 360),
        },
    ),
    "kron": Row(
        config=KronConfig(dense_steps=4, refresh_period=2, lanes=2, block_size=8),
        toy_config=KronConfig(),
        bytes_per_number=4.4,
        toys={
            "kronecker": Toy(0.01, 930, 1e-6),
            "rotated": Toy(0.01, 830),
            "chained": Toy(0.0316, 1900, 1e-6),
            "rosenbrock": Toy(0.01, 460),
        },
    ),
}

VARIANTS: Final[Mapping[str, Row]] = {
    "kron of the gradient": Row(
        config=KronConfig(
            whiten=Whiten.GRADIENT, b1=0.9, precondition_rate=0.1, final_precondition_rate=0.1, dense_steps=TOY_STEPS
        ),
        bytes_per_number=4.4,
        toys={
            "kronecker": Toy(0.0316, 255, 1e-6),
            "rotated": Toy(0.1, 400),
            "chained": Toy(0.0316, 990, 1e-6),
            "rosenbrock": Toy(0.1, 220),
        },
    ),
}
"""Other settings of the same optimizers, for the toy problems alone."""

every_row: Final = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
every_variant: Final = pytest.mark.parametrize("row", [*ROWS.values(), *VARIANTS.values()], ids=[*ROWS, *VARIANTS])
