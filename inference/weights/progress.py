"""How far a load is, and how fast it was."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final


@final
class Phase(enum.Enum):
    """What a load does, in its order."""

    HEADERS = "headers"
    """Config, tokenizer, headers, plan: everything that can be refused before memory is taken."""
    VERIFY = "verify"
    """sha256 of every file, where it is asked for."""
    READ = "read"
    """From files to devices."""
    ASSEMBLE = "assemble"
    """The model out of its arrays."""


@final
@dataclass(frozen=True, kw_only=True)
class Progress:
    """A moment of a load."""

    phase: Phase
    done: int
    """Bytes of the phase that are through."""
    total: int
    """Bytes of the phase; 0 where it has none."""
    seconds: float
    """Since the phase began."""


Listener = Callable[[Progress], None]
"""Hears a few times a second, on the thread that loads. What it raises ends the load, and comes out of it."""


@final
@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What a load took."""

    bytes_read: int
    """Of tensors, by this host."""
    seconds: Mapping[Phase, float]
    """Of each phase."""
    placing_seconds: float
    """Of READ, that went into handing arrays to devices."""
    retries: int
    """Reads that were begun anew, since they failed or stood still."""

    @property
    def total_seconds(self) -> float:
        """From the first file to the model."""
        return sum(self.seconds.values())

    @property
    def gigabytes_per_second(self) -> float:
        """10^9 bytes a second, from files to devices."""
        return self.bytes_read / 1e9 / max(self.seconds.get(Phase.READ, 0.0), 1e-9)

    def to_text(self) -> str:
        """In one line."""
        phases = ", ".join(f"{phase.value} {taken:.2f} s" for phase, taken in self.seconds.items())
        retries = f"; {self.retries} reads begun anew" if self.retries else ""
        return (
            f"{self.bytes_read / 1e9:.3f} GB in {self.total_seconds:.2f} s ({self.gigabytes_per_second:.2f} GB/s of "
            f"reading): {phases}, of it placing {self.placing_seconds:.2f} s{retries}"
        )
