"""How far a download is."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import final

_GIB = 1 << 30


@final
class Stage(enum.Enum):
    """What is being done."""

    LISTING = "listing"
    WAITING = "waiting"
    DOWNLOADING = "downloading"
    VERIFYING = "verifying"


@final
@dataclass(frozen=True, kw_only=True)
class DownloadProgress:
    """A moment of a download. It is told from the thread that asked for the model, never from another."""

    stage: Stage
    subject: str
    """The model, or the process that is waited for."""
    done: int = 0
    """Bytes that lie here, those of an earlier try among them."""
    total: int = 0
    """Bytes of the model; 0 before they are known."""
    fetched: int = 0
    """Bytes that came over the network, this time."""
    seconds: float = 0.0
    """Since the stage began."""

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return self.fetched / self.seconds if self.seconds > 0 else 0.0

    def __str__(self) -> str:
        if not self.total:
            return f"{self.stage.value} {self.subject}"
        share = f"{self.done / _GIB:.2f} of {self.total / _GIB:.2f} GiB"
        return f"{self.stage.value} {self.subject}: {share}, {self.rate / _GIB:.2f} GiB/s"
