"""The files of a model, fetched in many ranges at once until each is whole and has the bucket's checksum."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Final, final

from inference.weights.sources.arrival import Arrival
from inference.weights.sources.attempts import Attempts, Halt, Patience, Trouble
from inference.weights.sources.bucket import Bucket
from inference.weights.sources.errors import CloudError, PassingError
from inference.weights.sources.journal import Journal
from inference.weights.sources.spans import Span

_TOLD_SECONDS: Final = 0.25
"""Between two words of progress."""
_DOUBTS: Final = 3
"""Times that a file may come with another checksum than its object has: a line flips bits now and then."""


@final
@dataclass(frozen=True, kw_only=True)
class Limits:
    """How hard a bucket is asked. Raises ValueError where a number is not above 0."""

    part_bytes: int = 32 << 20
    """Of one request; so much is fetched again, by each worker, of a download that was killed."""
    workers: int = 32
    """Requests at once, each on its own connection."""
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        if min(self.part_bytes, self.workers) < 1:
            raise ValueError(f"{self}: every number is above 0")


@final
class Transfer:
    """A download of some files from one bucket."""

    def __init__(self, bucket: Bucket, journal: Journal, limits: Limits, halt: Halt) -> None:
        """`halt` is set by `run` where it fails, so that no thread goes on."""
        self._bucket = bucket
        self._journal = journal
        self._limits = limits
        self._halt = halt
        self._lock = threading.Lock()
        self._troubles: dict[tuple[str, Span], Trouble] = {}
        self.fetched = 0
        """Bytes that came over the network."""
        self.damaged: list[str] = []
        """Names of files that came with a wrong checksum and were fetched again, once for each time."""

    def run(self, arrivals: Sequence[Arrival], told: Callable[[], None]) -> None:
        """Make every file whole; `told` is called several times a second, from this thread.

        Raises CloudError, StoppedError, OSError of the disk.
        """
        for _ in range(_DOUBTS):
            self._round([each for each in arrivals if not each.intact()], told)
            wrong = [each for each in arrivals if not each.intact()]
            if not wrong:
                return
            for each in wrong:
                self._journal.forget(each.name)
                each.forget()
                self.damaged.append(each.name)
        raise CloudError(
            f"gs://{self._bucket.name}/{wrong[0].remote.name}: came {_DOUBTS} times with other bytes than its checksum "
            "(crc32c) is of: the object or the way to it is damaged; upload it again"
        )

    @property
    def trouble(self) -> Trouble | None:
        """What has failed most often without anything coming since; None where everything comes."""
        with self._lock:
            return max(self._troubles.values(), key=lambda each: each.tries, default=None)

    def _round(self, arrivals: Iterable[Arrival], told: Callable[[], None]) -> None:
        with ThreadPoolExecutor(self._limits.workers, thread_name_prefix="download") as pool, self._halting(pool):
            jobs: set[Future[None]] = set()
            for each in arrivals:
                jobs.add(pool.submit(each.check))  # of what an earlier process has left
                jobs |= {pool.submit(self._fetch, each, span) for span in each.parts(self._limits.part_bytes)}
            while jobs:
                ended, jobs = wait(jobs, timeout=_TOLD_SECONDS, return_when=FIRST_EXCEPTION)
                for job in ended:
                    job.result()
                told()

    @contextlib.contextmanager
    def _halting(self, pool: ThreadPoolExecutor) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._halt.fail()
            pool.shutdown(wait=False, cancel_futures=True)
            raise

    def _fetch(self, arrival: Arrival, span: Span) -> None:
        """One range: written, flushed, put down in the journal, and checked if its turn has come."""
        file = os.open(arrival.path, os.O_WRONLY)
        try:
            self._write(file, arrival, span)
            os.fdatasync(file)
        finally:
            os.close(file)
        self._journal.add(arrival.name, span)
        arrival.arrived(span)

    def _write(self, file: int, arrival: Arrival, span: Span) -> None:
        """A connection that breaks is followed by one for the rest alone."""
        part = (arrival.name, span)
        attempts = Attempts(self._limits.patience, self._halt, functools.partial(self._hear, part))
        place = span.start

        def sink(piece: bytes) -> None:
            nonlocal place
            self._halt.check()
            _write_all(file, piece, place)
            place += len(piece)
            with self._lock:
                self.fetched += len(piece)
                self._troubles.pop(part, None)

        while place < span.stop:
            begun = place
            try:
                self._bucket.fetch(arrival.remote, Span(place, span.stop), sink)
            except PassingError as error:
                attempts.failed(error, gained=place > begun)

    def _hear(self, part: tuple[str, Span], trouble: Trouble) -> None:
        with self._lock:
            self._troubles[part] = trouble


@final
class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """As of now."""
        return time.monotonic() - self._began


def _write_all(file: int, piece: bytes, place: int) -> None:
    rest = memoryview(piece)
    while rest:
        count = os.pwrite(file, rest, place)
        rest, place = rest[count:], place + count
