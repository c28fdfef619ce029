"""The notice that capacity is being taken back: SIGTERM, and what must be done before the machine is off.

Compute Engine gives a spot VM 30 seconds; the operating system and Kubernetes want their share of them, so a run has
13 from the notice to a committed checkpoint. A signal handler in Python runs between two bytecodes of the main thread,
which may be inside a compilation for a minute. The notice is therefore taken by a thread of its own: it tells the loop,
and ends the process when the loop has not come round in time. What is committed by then is what the next attempt has.
Source: https://docs.cloud.google.com/compute/docs/instances/spot#preemption-process
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, final

from training.exit_codes import ExitCode

GRACE_SECONDS: Final = 13.0
"""From the notice to a committed checkpoint."""


@final
class Notice:
    """Takes SIGTERM from the moment it is made; the first one counts, the others change nothing."""

    def __init__(self, *, grace_seconds: float = GRACE_SECONDS, leave: Callable[[int], None] | None = None) -> None:
        """`leave` ends the process where the loop does not come round in time; os._exit unless a test says else."""
        self.grace_seconds = grace_seconds
        self._leave = leave or os._exit
        self._noticed_at: float | None = None
        self._settled = threading.Event()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._former = signal.signal(signal.SIGTERM, _only_wake)
        self._former_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._watch, name="preemption notice", daemon=True)
        self._thread.start()

    @property
    def given(self) -> bool:
        """Whether the capacity is being taken back."""
        return self._noticed_at is not None

    @property
    def seconds_left(self) -> float:
        """Until the process is ended; the whole grace where no notice was given."""
        if self._noticed_at is None:
            return self.grace_seconds
        return self.grace_seconds - (time.monotonic() - self._noticed_at)

    @property
    def seconds_since(self) -> float:
        """Since the notice; 0 where none was given."""
        return self.grace_seconds - self.seconds_left

    def settle(self) -> None:
        """Say that the process is about to end by itself, and need not be ended."""
        self._settled.set()

    def close(self) -> None:
        """Give the signal back. For tests: a run keeps it until its end."""
        self.settle()
        signal.set_wakeup_fd(self._former_fd)
        signal.signal(signal.SIGTERM, self._former)
        os.close(self._writer)
        self._thread.join()
        os.close(self._reader)

    def _watch(self) -> None:
        while told := os.read(self._reader, 64):
            if signal.SIGTERM in told and self._noticed_at is None:
                self._noticed_at = time.monotonic()
                threading.Thread(target=self._end_in_time, name="preemption deadline", daemon=True).start()

    def _end_in_time(self) -> None:
        if not self._settled.wait(self.grace_seconds):
            message = f"preempted: nothing was committed within {self.grace_seconds:g} s; the last checkpoint stands\n"
            sys.stderr.write(message)
            sys.stderr.flush()
            self._leave(ExitCode.PREEMPTED)


def _only_wake(_signal: int, _frame: FrameType | None) -> None:
    """The thread has been woken already, by the number that the C handler wrote."""
