"""Which checkpoints stay: a pure function of their steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from training.checkpoint.errors import CheckpointError


@final
@dataclass(frozen=True, kw_only=True)
class Retention:
    """A step that neither rule keeps is deleted once a newer one is committed. Raises CheckpointError for no rule."""

    keep_last: int = 3
    """So many of the newest; at least 1."""
    keep_every: int = 0
    """Every step that this divides, for good; 0 is none."""

    def __post_init__(self) -> None:
        if self.keep_last < 1:
            raise CheckpointError(f"keep_last is {self.keep_last}; the newest checkpoint always stays, so at least 1")
        if self.keep_every < 0:
            raise CheckpointError(f"keep_every is {self.keep_every}; it counts steps, and 0 keeps none for good")


def kept(steps: Iterable[int], retention: Retention) -> frozenset[int]:
    """The steps that stay, of the complete ones of a run; the newest is always among them."""
    known = sorted(set(steps))
    every = retention.keep_every
    return frozenset(known[-retention.keep_last :]) | {step for step in known if every and step % every == 0}
