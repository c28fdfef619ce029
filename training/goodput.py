"""Where the time of a run went, over all its attempts: how much of it made progress that was kept.

Goodput is the time of the steps that were kept, divided by all the time since the first attempt began. The ledger is
one JSON line an event, appended and flushed, so that a kill loses at most the step in flight. The buckets add up to the
time that has passed, to the microsecond: what nobody measured is OTHER, what lay between two attempts is DOWN.
Source: the buckets of Google's ML Goodput Measurement library, https://github.com/AI-Hypercomputer/ml-goodput-measurement
"""

from __future__ import annotations

import enum
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from training.json_lines import JsonLines


@final
class Bucket(enum.StrEnum):
    """What a second of a run was spent on."""

    STEP = "step"
    """Training steps that were kept: the only time that is goodput."""
    WASTED = "wasted"
    """Training steps that a later attempt did again."""
    STARTUP = "startup"
    """Imports, configuration, data and model, before the first step."""
    COMPILE = "compile"
    RESTORE = "restore"
    DATA = "data"
    """Waiting for the next batch."""
    CHECKPOINT = "checkpoint"
    """What a save kept the loop from doing; not the saving itself, which goes on beside it."""
    VALIDATION = "validation"
    """Validation, and the samples of text."""
    OTHER = "other"
    DOWN = "down"
    """Between two attempts: no capacity, or nobody had started the next one."""


@final
@dataclass(frozen=True, kw_only=True)
class Account:
    """The sum of a ledger."""

    seconds: Mapping[Bucket, float]
    """Of every bucket."""

    @property
    def wall(self) -> float:
        """Seconds since the first attempt began."""
        return sum(self.seconds.values())

    @property
    def billed(self) -> float:
        """Seconds in which there was a machine."""
        return self.wall - self.seconds[Bucket.DOWN]

    @property
    def goodput(self) -> float:
        """Kept step time over all time; 1.0 before any has passed."""
        return self.seconds[Bucket.STEP] / self.wall if self.wall else 1.0


@final
class Ledger:
    """The open ledger of one attempt."""

    def __init__(
        self,
        path: Path,
        attempt: int,
        *,
        resumed_at: int = 0,
        restored: float = 0.0,
        clock: Callable[[], float] = time.time,
        began: float | None = None,
    ) -> None:
        """`began` is the time of `clock` at which the process did; the time since then counts as STARTUP, but for the
        seconds in which a checkpoint was `restored`."""
        earlier = read_ledger(path)
        self._clock = clock
        self._attempt = attempt
        self._began = clock() if began is None else began
        self._spent: dict[Bucket, float] = dict.fromkeys(_MEASURED, 0.0)
        self._spent[Bucket.STARTUP] = clock() - self._began - restored
        self._spent[Bucket.RESTORE] = restored
        self._file = JsonLines(path)
        self._first = self._last = self._write(resumed_at)
        # What earlier attempts add up to does not change any more, and they may have many lines.
        self._before = _sum(account([*earlier, self._first]), account([self._first]), sign=-1)

    @contextmanager
    def measure(self, bucket: Bucket) -> Iterator[None]:
        """Count the time inside, whatever becomes of it."""
        start = self._clock()
        try:
            yield
        finally:
            self._spent[bucket] += self._clock() - start

    def mark(self, step: int) -> None:
        """Write down what has been spent up to the end of a step."""
        self._last = self._write(step)

    def _write(self, step: int) -> Mapping[str, Any]:
        line = {
            "attempt": self._attempt,
            "step": step,
            "began": self._began,
            "time": self._clock(),
            "seconds": {bucket.value: spent for bucket, spent in self._spent.items() if spent},
        }
        self._file.append(line)
        return line

    def account(self) -> Account:
        """The sum up to the last mark."""
        return _sum(self._before, account([self._first, self._last]))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


_MEASURED: Final[tuple[Bucket, ...]] = tuple(
    bucket for bucket in Bucket if bucket not in (Bucket.WASTED, Bucket.OTHER, Bucket.DOWN)
)


_FIELDS: Final = frozenset({"attempt", "step", "began", "time", "seconds"})


def read_ledger(path: Path) -> tuple[Mapping[str, Any], ...]:
    """The lines of a ledger; one that a kill has cut off is none."""
    if not path.exists():
        return ()
    lines = []
    for text in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and line.keys() >= _FIELDS:
            lines.append(line)
    return tuple(lines)


def account(lines: Iterable[Mapping[str, Any]]) -> Account:
    """Add up a ledger.

    An attempt begins at the step that it was resumed at: the steps that the one before had made beyond it are WASTED,
    as much of its step time as lies behind its last line at or before that step.
    """
    seconds = dict.fromkeys(Bucket, 0.0)
    attempts = [list(each) for _, each in itertools.groupby(lines, key=lambda line: (line["attempt"], line["began"]))]
    ended: float | None = None
    for own, following in itertools.zip_longest(attempts, attempts[1:]):
        first, last = own[0], own[-1]
        if ended is not None:
            seconds[Bucket.DOWN] += first["began"] - ended
        for name, spent in last["seconds"].items():
            seconds[Bucket(name)] += spent
        seconds[Bucket.OTHER] += last["time"] - first["began"] - sum(last["seconds"].values())
        if following is not None:
            wasted = _steps(last) - _kept(own, following[0]["step"])
            seconds[Bucket.WASTED] += wasted
            seconds[Bucket.STEP] -= wasted
        ended = last["time"]
    return Account(seconds=seconds)


def _sum(one: Account, other: Account, *, sign: int = 1) -> Account:
    return Account(seconds={bucket: one.seconds[bucket] + sign * other.seconds[bucket] for bucket in Bucket})


def _steps(line: Mapping[str, Any]) -> float:
    return float(line["seconds"].get(Bucket.STEP.value, 0.0))


def _kept(lines: list[Mapping[str, Any]], resumed_at: int) -> float:
    """Step time of an attempt up to the step that the next one went on from; none where it went further back."""
    return max((_steps(line) for line in lines if line["step"] <= resumed_at), default=0.0)
