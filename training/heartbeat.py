"""The sign of life of a run, beside its checkpoints: `heartbeat.json`, which the audit of a project reads.

A slice whose heartbeat is older than half an hour trains nothing and still costs its price. The heartbeat therefore
tells of finished steps, not of a living process: it is written by whoever finishes them.
"""

from __future__ import annotations

import datetime
import json
import threading
import time
from collections.abc import Callable
from typing import Final, final

NAME: Final = "heartbeat.json"
EVERY_SECONDS: Final = 15.0
"""At most so often: an object may be written once a second, and nobody looks more often than by the minute."""


@final
class Heartbeat:
    """Writes on a thread of its own, so that a slow bucket never holds a step up. A beat that is late is left out."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        *,
        run: str,
        attempt: int,
        every_seconds: float = EVERY_SECONDS,
        failed: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        """`write` replaces the object; what it raises goes to `failed` and stops nothing."""
        self._write, self._failed = write, failed
        self._run, self._attempt = run, attempt
        self._every = every_seconds
        self._last: float | None = None
        self._writing: threading.Thread | None = None

    def beat(self, step: int, *, at_once: bool = False) -> None:
        """A step is finished. With `at_once`, write whatever the time is, and wait until it is written."""
        now = time.monotonic()
        busy = self._writing is not None and self._writing.is_alive()
        due = self._last is None or now - self._last >= self._every
        if not at_once and (busy or not due):
            return
        if self._writing is not None:
            self._writing.join()
        self._last = now
        time_said = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        said = {"run": self._run, "attempt": self._attempt, "step": step, "time": time_said}
        self._writing = threading.Thread(target=self._put, args=(json.dumps(said).encode(),), name="heartbeat")
        self._writing.daemon = True
        self._writing.start()
        if at_once:
            self._writing.join()

    def _put(self, body: bytes) -> None:
        try:
            self._write(body)
        except Exception as error:  # noqa: BLE001 - a run goes on without its heartbeat, and says so
            self._failed(error)
