"""Trying again: what fails in passing is asked for again, later and later, for as long as patience lasts."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar, final

from inference.weights.sources.errors import CloudError, PassingError, StalledError, StoppedError

ResultT = TypeVar("ResultT")
_FIRST_SECONDS: Final = 0.2
_MOST_SECONDS: Final = 16.0
_SLICE_SECONDS: Final = 0.1


@final
@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a bucket is waited for. Raises ValueError where a number is not above 0."""

    retry_seconds: float = 120.0
    """After so long without progress 429, 503 and broken connections are an error."""
    connect_seconds: float = 10.0
    stall_seconds: float = 15.0
    """A connection that brings fewer than `stall_bytes` in this time is given up for a new one."""
    stall_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if min(self.retry_seconds, self.connect_seconds, self.stall_seconds, self.stall_bytes) <= 0:
            raise ValueError(f"{self}: every number is above 0")


@final
@dataclass(frozen=True, kw_only=True)
class Trouble:
    """What fails, and how long it will be tried again."""

    what: str
    """The error of the last try."""
    tries: int
    """That failed, one after another."""
    ends: float
    """When patience is over, by time.monotonic()."""

    def __str__(self) -> str:
        left = max(0.0, self.ends - time.monotonic())
        until = time.strftime("%H:%M:%S", time.localtime(time.time() + left))
        times = "once" if self.tries == 1 else f"{self.tries} times"
        return f"{self.what}; tried {times}, and again until {until} ({left:.0f} s)"


@final
class Halt:
    """Whether all threads of a download are to end: the program was told to stop, or one of them has failed."""

    def __init__(self, stop: threading.Event) -> None:
        """`stop`: of the program; it is never set here."""
        self._stop = stop
        self._failed = False

    def fail(self) -> None:
        """One has failed."""
        self._failed = True

    def is_set(self) -> bool:
        """Whether to end."""
        return self._failed or self._stop.is_set()

    def wait(self, seconds: float) -> None:
        """Wait so long. Raises StoppedError as soon as it is time to end."""
        end = time.monotonic() + seconds
        while not self.is_set() and (rest := end - time.monotonic()) > 0:
            self._stop.wait(min(rest, _SLICE_SECONDS))
        self.check()

    def check(self) -> None:
        """Raises StoppedError where it is time to end."""
        if self.is_set():
            raise StoppedError("told to stop before the model was whole; the next download goes on from here")


@final
class Attempts:
    """The tries at one thing. Waits double, each cut by up to a half at random, so that hosts do not come at once."""

    def __init__(self, patience: Patience, halt: Halt, heard: Callable[[Trouble], None]) -> None:
        """`halt`: when it is set, nothing is waited for; `heard` is told before each wait, on the thread that waits."""
        self._patience = patience
        self._halt = halt
        self._heard = heard
        self._again()

    def _again(self) -> None:
        self._tries = 0
        self._end = time.monotonic() + self._patience.retry_seconds
        self._pause = _FIRST_SECONDS

    def failed(self, error: PassingError, *, gained: bool = False) -> None:
        """Wait for the next try; `gained`: this one has brought something, so that patience begins anew.

        Raises CloudError where patience is over, StoppedError.
        """
        if gained and not isinstance(error, StalledError):
            self._again()
        wait = min(self._pause, _MOST_SECONDS) * random.uniform(0.5, 1.0)
        self._pause *= 2
        if time.monotonic() + wait > self._end:
            raise CloudError(f"{error}; nothing came in {self._patience.retry_seconds:g} s of trying") from error
        self._tries += 1
        self._heard(Trouble(what=str(error), tries=self._tries, ends=self._end))
        self._halt.wait(wait)


def tried(call: Callable[[], ResultT], patience: Patience, halt: Halt, heard: Callable[[Trouble], None]) -> ResultT:
    """What `call` gives once it raises no PassingError; `heard` as in Attempts. Raises CloudError, StoppedError."""
    attempts = Attempts(patience, halt, heard)
    while True:
        try:
            return call()
        except PassingError as error:
            attempts.failed(error)
