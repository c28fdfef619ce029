"""The parallel reader: from ranges of files into the memory of targets.

Workers take stretches in the order of the files, each with a descriptor of its own, and read forward through them.
What was read and is not placed yet is bounded: a stretch is begun when all of it fits, or nothing is in flight, or it
goes on with a target that was begun. Stretches are taken in order, so that a begun target can always be ended, and
nothing waits for ever. The calling thread places what is complete, reports, and watches: a read that stands still is
left to its fate, and another worker goes on from the last byte that came. Should the first come back after all, it
writes the bytes of the file where the same bytes are, and ends.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, final

from numpy.typing import NDArray

from inference.errors import ServingError
from inference.weights.buffers import Buffers
from inference.weights.file_access import OwnDescriptor, ReadAt, batches, behind, check_unchanged
from inference.weights.plan import SHORTEST_GAP, Stretch, Target, make_stretches
from inference.weights.reading_style import ReadingStyle
from inference.weights.watchdog import Patience, Verdict, judge_error, judge_silence

TICK: Final = 0.1
"""Seconds between two looks at what the workers do."""
PAUSE: Final = 0.05
"""Seconds before a read that failed is tried again; twice as long each time."""

Place = Callable[[Target, list[NDArray[Any]]], None]
"""Takes the boxes of a target, in their order; when it returns, their memory no longer counts as in flight."""


@final
@dataclass(kw_only=True, eq=False)
class _Attempt:
    """At a stretch, by one worker."""

    stretch: Stretch
    position: int
    """Of the file: all before it has come."""
    number: int = 1
    """From 1, at this position."""
    moved: float = 0.0
    """When the last byte came."""
    admitted: bool = False
    """Whether its bytes count as in flight."""
    worker: threading.Thread | None = None
    """Whose it is."""
    abandoned: bool = False
    """Whether another worker has it now."""


@final
class Reader:
    """Reads targets, once."""

    def __init__(
        self,
        targets: Sequence[Target],
        style: ReadingStyle,
        *,
        finite: bool = False,
        patience: Patience | None = None,
        read_at: ReadAt = os.preadv,
    ) -> None:
        self._targets = targets
        self._style = style
        self._finite = finite
        self._patience = patience or Patience()
        self._read_at = read_at
        self._changed = threading.Condition()
        self._waiting = deque(
            _Attempt(stretch=stretch, position=stretch.pieces[0].begin) for stretch in make_stretches(targets, style)
        )
        self._running: set[_Attempt] = set()
        self._buffers: dict[int, Buffers] = {}
        self._left = {number: target.size for number, target in enumerate(targets)}
        self._in_flight = 0
        self._stopped = False
        self._outcomes: SimpleQueue[tuple[int, list[NDArray[Any]]] | BaseException] = SimpleQueue()
        self._workers: list[threading.Thread] = []
        self.bytes_read = 0
        """That have come so far, those of short gaps included."""
        self.retries = 0
        """Reads that were begun anew so far."""

    def run(self, place: Place, heard: Callable[[int], None]) -> None:
        """Read everything, and return when all of it is placed; `heard` is told of the bytes so far, on this thread.

        Raises ServingError where a file is shorter than its header says, has changed, or cannot be read; whatever
        `place` and `heard` raise. The workers are at their end then, but for those whose read does not come back.
        """
        try:
            missing = len(self._targets) - self._place_empty(place)
            for _ in range(min(self._style.workers, len(self._waiting))):
                self._add_worker()
            told = 0.0
            while missing:
                missing -= self._next(place)
                if time.monotonic() - told >= TICK:
                    told = time.monotonic()
                    heard(self.bytes_read)
                    self._watch(told)
            for file in {target.placed.file.path: target.placed.file for target in self._targets}.values():
                check_unchanged(file)
        finally:
            self._stop()

    def _place_empty(self, place: Place) -> int:
        empty = [number for number, left in self._left.items() if not left]
        for number in empty:
            place(self._targets[number], Buffers(self._targets[number]).finished(finite=False))
        return len(empty)

    def _next(self, place: Place) -> int:
        """Place what a worker has completed, if anything comes within a tick."""
        try:
            outcome = self._outcomes.get(timeout=TICK)
        except Empty:
            return 0
        if isinstance(outcome, BaseException):
            raise outcome
        number, arrays = outcome
        place(self._targets[number], arrays)
        with self._changed:
            self._in_flight -= self._targets[number].size
            self._changed.notify_all()
        return 1

    def _watch(self, now: float) -> None:
        with self._changed:
            for attempt in tuple(self._running):
                match judge_silence(self._patience, now - attempt.moved, attempt.number):
                    case Verdict.RETRY:
                        self._abandon(attempt)
                        self._again(attempt)
                        self._add_worker()
                    case Verdict.GIVE_UP:
                        self._abandon(attempt)
                        raise ServingError(
                            f"{attempt.stretch.file.path}: nothing has come from byte {attempt.position} on for "
                            f"{self._patience.seconds:g} s, in {attempt.number} attempts. Is its disk still there?"
                        )
                    case Verdict.WAIT:
                        pass

    def _abandon(self, attempt: _Attempt) -> None:
        attempt.abandoned = True
        if attempt.worker is not None:
            self._workers.remove(attempt.worker)  # nobody waits for it

    def _again(self, attempt: _Attempt) -> None:
        self._running.discard(attempt)
        self.retries += 1
        self._waiting.appendleft(
            _Attempt(stretch=attempt.stretch, position=attempt.position, number=attempt.number + 1, admitted=True)
        )
        self._changed.notify_all()

    def _add_worker(self) -> None:
        worker = threading.Thread(target=self._work, name="weights-reader", daemon=True)  # one may never come back
        self._workers.append(worker)
        worker.start()

    def _stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.join(timeout=self._patience.seconds)

    def _work(self) -> None:
        own = OwnDescriptor()
        scratch = memoryview(bytearray(SHORTEST_GAP))
        try:
            while (attempt := self._take()) is not None:
                try:
                    self._read(attempt, own, scratch)
                except OSError as error:
                    own.close()
                    self._failed(attempt, error)
        except BaseException as error:  # noqa: BLE001 (the thread that placed the order raises it)
            self._outcomes.put(error)
        finally:
            own.close()

    def _take(self) -> _Attempt | None:
        with self._changed:
            while not self._stopped and self._waiting:
                if self._fits(self._waiting[0]):
                    attempt = self._waiting.popleft()
                    self._admit(attempt)
                    return attempt
                self._changed.wait()
            return None

    def _fits(self, attempt: _Attempt) -> bool:
        goes_on = attempt.admitted or attempt.stretch.pieces[0].target in self._buffers
        return goes_on or not self._in_flight or self._in_flight + attempt.stretch.size <= self._style.in_flight_bytes

    def _admit(self, attempt: _Attempt) -> None:
        if not attempt.admitted:
            attempt.admitted = True
            self._in_flight += attempt.stretch.size
            for piece in attempt.stretch.pieces:
                if piece.target not in self._buffers:
                    self._buffers[piece.target] = Buffers(self._targets[piece.target])
        attempt.moved, attempt.worker = time.monotonic(), threading.current_thread()
        self._running.add(attempt)

    def _read(self, attempt: _Attempt, own: OwnDescriptor, scratch: memoryview) -> None:
        file = attempt.stretch.file
        for begin, views in batches(self._destinations(attempt), self._style.read_bytes, scratch):
            at = begin
            while views:
                count = self._read_at(own.of(file), views, at)
                if not count:
                    raise ServingError(
                        f"{file.path}: ends at byte {at} while it is read, and had {file.stamp.size} bytes when its "
                        "header was read: somebody writes to it. A model is complete before it is served"
                    )
                at, views = at + count, behind(views, count)
                if not self._moved(attempt, at, count):
                    return
        self._complete(attempt)

    def _destinations(self, attempt: _Attempt) -> list[tuple[int, memoryview]]:
        found = []
        with self._changed:
            for piece in attempt.stretch.pieces:
                if piece.end > attempt.position:
                    skip = max(0, attempt.position - piece.begin)
                    offset, size = piece.offset + skip, piece.end - piece.begin - skip
                    view = self._buffers[piece.target].view(piece.part)[offset : offset + size]
                    found.append((piece.begin + skip, view))
        return found

    def _moved(self, attempt: _Attempt, position: int, count: int) -> bool:
        """Note that bytes have come; whether the attempt goes on."""
        with self._changed:
            if attempt.abandoned or self._stopped:
                return False
            attempt.position, attempt.number, attempt.moved = position, 1, time.monotonic()
            self.bytes_read += count
            return True

    def _complete(self, attempt: _Attempt) -> None:
        with self._changed:
            if attempt.abandoned:
                return
            self._running.discard(attempt)
            ended = []
            for piece in attempt.stretch.pieces:
                self._left[piece.target] -= piece.end - piece.begin
                if not self._left[piece.target]:
                    ended.append((piece.target, self._buffers.pop(piece.target)))
        for number, buffers in ended:
            self._outcomes.put((number, buffers.finished(finite=self._finite)))

    def _failed(self, attempt: _Attempt, error: OSError) -> None:
        with self._changed:
            if attempt.abandoned or self._stopped:
                return
            if judge_error(self._patience, error, attempt.number) is Verdict.GIVE_UP:
                raise ServingError(
                    f"{attempt.stretch.file.path}: cannot be read at byte {attempt.position}: "
                    f"{error.strerror or error}, in {attempt.number} attempts"
                ) from None
            self._again(attempt)
        time.sleep(PAUSE * 2**attempt.number)
