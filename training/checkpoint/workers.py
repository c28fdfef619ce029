"""Threads for what goes on beside the training step.

They are daemons: a store that never answers keeps no process alive. Those that write in the background are of low
priority, so that the step comes first on a machine whose cores are all busy.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final, TypeVar, final

ResultT = TypeVar("ResultT")
ItemT = TypeVar("ItemT")
_NICE: Final = 5


@final
class Workers:
    """So many threads over one queue; they begin with the first task."""

    def __init__(self, name: str, threads: int, *, low_priority: bool) -> None:
        self._name = name
        self._most = threads
        self._low_priority = low_priority
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._begun: list[threading.Thread] = []

    def submit(self, task: Callable[[], ResultT]) -> Future[ResultT]:
        """Have a task done; its result or error is in the future."""
        future: Future[ResultT] = Future()
        future.set_running_or_notify_cancel()

        def settle() -> None:
            try:
                future.set_result(task())
            except BaseException as error:  # noqa: BLE001  whoever waits gets it
                future.set_exception(error)

        self._tasks.put(settle)
        self._grow()
        return future

    def each(self, task: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> list[ResultT]:
        """A task for every item, in any order. All are over when this returns, or raises the first error."""
        futures = [self.submit(lambda item=item: task(item)) for item in items]  # type: ignore[misc]
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            raise errors[0]
        return [future.result() for future in futures]

    def stop(self) -> None:
        """Let the threads end when the tasks so far are done."""
        with self._lock:
            for _ in range(self._threads):
                self._tasks.put(None)
            self._threads = 0

    def join(self, seconds: float) -> None:
        """Wait until the threads have ended, so long at the most; `stop` comes before.

        One that still frees an array of JAX while the interpreter ends would abort the process.
        """
        end = time.monotonic() + seconds
        for thread in self._begun:
            thread.join(max(0.0, end - time.monotonic()))

    def _grow(self) -> None:
        with self._lock:
            if self._threads < self._most:
                self._threads += 1
                thread = threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True)
                self._begun.append(thread)
                thread.start()

    def _work(self) -> None:
        if self._low_priority:
            with contextlib.suppress(OSError, AttributeError):  # not on every system, and never a reason to fail
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while (task := self._tasks.get()) is not None:
            task()
