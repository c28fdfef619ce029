"""One file as it comes: its ranges in any order, its checksum over what lies on disk from its begin without a hole."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, final

import google_crc32c

from inference.weights.sources.attempts import Halt
from inference.weights.sources.bucket import RemoteObject
from inference.weights.sources.spans import Span, cut, merged, missing, total

_PIECE: Final = 1 << 20


@final
class Arrival:
    """A file that is being downloaded. Any number of threads write to it, each its own ranges.

    The checksum is of what is read back from the file, so that a range which went to the wrong place is found, and what
    a journal says of an earlier process is not believed.
    """

    def __init__(self, remote: RemoteObject, name: str, path: Path, done: Sequence[Span], halt: Halt) -> None:
        """`name`: as the journal has it; `done`: what an earlier process has left in the file."""
        self.remote = remote
        self.name = name
        self.path = path
        self._halt = halt
        self._lock = threading.Lock()
        self._done = merged(done)
        self._checking = False
        self._restart()

    def _restart(self) -> None:
        self._checked = 0
        self._checksum = 0

    @property
    def done(self) -> int:
        """Bytes that lie on disk."""
        with self._lock:
            return total(self._done)

    def parts(self, most: int) -> Iterator[Span]:
        """What is still to be fetched."""
        with self._lock:
            lacking = missing(self._done, self.remote.bytes)
        return cut(lacking, most)

    def arrived(self, span: Span) -> None:
        """A range was written. Raises OSError, StoppedError."""
        with self._lock:
            self._done = merged((*self._done, span))
        self.check()

    def check(self) -> None:
        """Let the checksum catch up, unless another thread is about it. Raises OSError, StoppedError."""
        with self._lock:
            if self._checking:
                return
            self._checking = True
        while (stop := self._unchecked()) is not None:
            self._extend(stop)

    def intact(self) -> bool:
        """Whether all of it has come and is what the bucket says it is; to be asked when no thread is about it."""
        return self._checked == self.remote.bytes and self._checksum == self.remote.crc32c

    def forget(self) -> None:
        """Begin anew; to be called when no thread is about it."""
        self._done = ()
        self._restart()

    def _unchecked(self) -> int | None:
        """Up to where the file can be checked now; None, and no longer checking, where it has been."""
        with self._lock:
            stop = self._done[0].stop if self._done and self._done[0].start == 0 else 0
            if stop > self._checked:
                return stop
            self._checking = False
            return None

    def _extend(self, stop: int) -> None:
        file = os.open(self.path, os.O_RDONLY)
        try:
            while self._checked < stop:
                self._halt.check()
                piece = os.pread(file, min(_PIECE, stop - self._checked), self._checked)
                if not piece:
                    raise OSError(f"{self.path}: ends before byte {stop}, which was written")
                self._checksum = google_crc32c.extend(self._checksum, piece)
                self._checked += len(piece)
        finally:
            os.close(file)
