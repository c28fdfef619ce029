"""How far a download is, and how that is said in lines."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from inference.weights.sources.attempts import Trouble

EVERY: Final = 5.0
"""Seconds between two lines of a stage."""
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
    trouble: Trouble | None = None
    """What fails just now and is tried again; None where all goes well."""

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return self.fetched / self.seconds if self.seconds > 0 else 0.0

    def __str__(self) -> str:
        said = f"{self.stage.value} {self.subject}"
        if self.total:
            share = f"{self.done / _GIB:.2f} of {self.total / _GIB:.2f} GiB"
            said += f": {share}, {self.rate / _GIB:.2f} GiB/s"
        return said if self.trouble is None else f"{said}; no answer: {self.trouble}"


@final
class Told:
    """Says progress in lines: every stage and every trouble as it begins, and how it goes every few seconds."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say: Final = say
        self._clock: Final = clock
        self._stage: Stage | None = None
        self._line = self._trouble = -EVERY
        """When the last line came, and the last that told of trouble."""

    def __call__(self, progress: DownloadProgress) -> None:
        now = self._clock()
        last = self._line if progress.trouble is None else self._trouble
        if progress.stage is self._stage and now - last < EVERY:
            return
        self._stage, self._line = progress.stage, now
        if progress.trouble is not None:
            self._trouble = now
        self._say(str(progress))
