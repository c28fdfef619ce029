"""How files are best read where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

MIB: Final = 1 << 20


@final
@dataclass(frozen=True, kw_only=True)
class ReadingStyle:
    """What the reader does with many ranges of many files. Raises ValueError where a number makes no reading."""

    workers: int
    """Threads; each opens every file that it reads by itself, so that no two share a position or a read-ahead."""
    read_bytes: int
    """Of one read at most."""
    stretch_bytes: int
    """Each worker reads forward through so much of a file before it is given another place: a FUSE mount takes short
    jumps for random reads and stops reading ahead."""
    in_flight_bytes: int
    """Read and not yet on the device, at most."""

    def __post_init__(self) -> None:
        if min(self.workers, self.read_bytes, self.in_flight_bytes) < 1 or self.stretch_bytes < self.read_bytes:
            raise ValueError(f"{self}: every number is at least 1, and a stretch at least one read")
