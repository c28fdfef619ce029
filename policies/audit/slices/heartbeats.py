"""The heartbeats of training runs: the cheapest sign that a slice works, since the run writes it itself.

A slice belongs to the run that its label `run` names, in the buckets of its own stack where that run writes there; of
a heartbeat too old to be read, the folders that it lies in say the run. Without that label the newest heartbeat in the
buckets of its stack speaks for all slices of the stack that train: when it is stale, none of them trains. A bucket is
of the stack that its label `env` says; one without, of the stack in its name, as in `<project>-<env>-checkpoints`.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass, replace
from typing import Final, final

from policies.audit.reading import at, said
from policies.audit.record import Item, Json, Part, Record
from policies.audit.times import instant
from policies.errors import InputError

RUN: Final = "run"
ENV: Final = "env"
ROLE: Final = "role"
SERVING: Final = "serve"
"""Role of a slice that trains nothing."""


@final
@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """The last sign of life of one run."""

    run: str
    """Empty where the object does not say it."""
    bucket: str
    time: datetime.datetime
    folders: tuple[str, ...] = ()
    """Where it lies, for one that does not say its run."""
    own: bool = True
    """Whether it is of the slice's own run, and not of its stack as a whole."""


@final
class Heartbeats:
    """All heartbeats of a record. One that says no time is none."""

    def __init__(self, record: Record) -> None:
        found = (_heartbeat(item) for item in record.items(Part.HEARTBEATS))
        self._all = sorted((each for each in found if each is not None), key=lambda each: each.time)
        self._project = record.project
        self._stacks = {
            said(item, "name"): env for item in record.items(Part.BUCKETS) if (env := said(item, "labels", ENV))
        }

    def of(self, labels: dict[str, str]) -> Heartbeat | None:
        """The heartbeat of a slice with those labels; None where nothing says which it is."""
        run, env = labels.get(RUN), labels.get(ENV)
        if run:
            found = [each for each in self._all if _is_of(each, run)]
            here = [each for each in found if self._stack(each.bucket) == env]
            return max(here or found, key=lambda each: each.time, default=None)
        if not env or labels.get(ROLE) == SERVING:
            return None
        newest = next((each for each in reversed(self._all) if self._stack(each.bucket) == env), None)
        return None if newest is None else replace(newest, own=False)

    def _stack(self, bucket: str) -> str:
        """The stack that a bucket is of; empty where nothing says it."""
        if bucket in self._stacks:
            return self._stacks[bucket]
        # The stack `dev` has nothing to do with `dev-eu`.
        env, dash, _ = bucket.removeprefix(f"{self._project}-").rpartition("-")
        return env if dash and bucket.startswith(f"{self._project}-") else ""


def _is_of(beat: Heartbeat, run: str) -> bool:
    """Labels are lower case, whatever the run is called."""
    named = (beat.run,) if beat.run else beat.folders
    return run.lower() in (name.lower() for name in named)


def _heartbeat(item: Item) -> Heartbeat | None:
    """The time is that of the object, by Google's clock; else the one that the run wrote."""
    time = _time(item.get("updated")) or _time(at(item, "content", "time"))
    if time is None:
        return None
    folders = tuple(said(item, "name").split("/")[:-1])
    return Heartbeat(run=said(item, "content", "run"), bucket=said(item, "bucket"), time=time, folders=folders)


def _time(found: Json) -> datetime.datetime | None:
    """RFC 3339, or seconds of the epoch."""
    try:
        if isinstance(found, str):
            return instant(found)
        if isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found):
            return datetime.datetime.fromtimestamp(found, datetime.UTC)
    except (InputError, ValueError, OverflowError, OSError):
        return None
    return None
