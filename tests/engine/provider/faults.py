"""What is to go wrong in the provider, on request: SPOTRAIL_FAULTS, a JSON list of

    {"on": "create", "type": "gcp:compute/*", "name": "trainer*", "kind": "no-capacity", "times": 1}

`on` is create, update, delete, read or check; `type` and `name` (the logical one) are globs, `*` where left out;
`times` counts over the life of the process, without end where left out.
"""

from __future__ import annotations

import enum
import fnmatch
import json
from dataclasses import dataclass, field
from typing import Final, final


class FaultKind(enum.Enum):
    """A way to fail, by its name in the list."""

    NO_CAPACITY = "no-capacity"
    """The zone has none: nothing is made."""
    QUOTA = "quota"
    """The quota of the project is used up: nothing is made."""
    NOT_READY = "not-ready"
    """What it is made from is not ready yet: nothing is made."""
    HALF_CREATED = "half-created"
    """It is made, and what follows fails: the engine is told both."""
    PREEMPTED = "preempted"
    """Google has taken a machine back, which a read finds."""
    FAILED_EXECUTION = "failed-execution"
    """The model that a job copies has another digest: the job exists, its execution fails."""
    ENDLESS_EXECUTION = "endless-execution"
    """The job exists, and its execution does not end, so that its creation can be interrupted."""
    HANGS = "hangs"
    """There is no answer, so that the operation can be interrupted."""


_METHODS: Final = ("create", "update", "delete", "read", "check")
_KEYS: Final = frozenset({"on", "type", "name", "kind", "times"})


@final
@dataclass(kw_only=True)
class Fault:
    """One entry of the list."""

    on: str
    kind: FaultKind
    type: str = "*"
    name: str = "*"
    times: int | None = None
    seen: int = field(default=0, init=False)

    def strikes(self, method: str, token: str, name: str) -> bool:
        """Whether this call is hit; counts it if so."""
        if method != self.on or not fnmatch.fnmatchcase(token, self.type) or not fnmatch.fnmatchcase(name, self.name):
            return False
        self.seen += 1
        return self.times is None or self.seen <= self.times


@final
class Faults:
    """All that are in force."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self._faults = faults

    def struck(self, method: str, token: str, name: str) -> FaultKind | None:
        """The first fault that hits a call."""
        found = [fault for fault in self._faults if fault.strikes(method, token, name)]
        return found[0].kind if found else None


def faults_of(text: str) -> Faults:
    """Read the list. Raises ValueError that names the entry."""
    entries = json.loads(text or "[]")
    return Faults(tuple(_fault(place, entry) for place, entry in enumerate(entries)))


def _fault(place: int, entry: dict[str, object]) -> Fault:
    kinds, where = [kind.value for kind in FaultKind], f"SPOTRAIL_FAULTS[{place}]"
    if unknown := sorted(set(entry) - _KEYS):
        raise ValueError(f"{where} has {', '.join(unknown)}; its keys are {', '.join(sorted(_KEYS))}")
    if entry.get("kind") not in kinds:
        raise ValueError(f"{where}.kind is {entry.get('kind')!r}; known are {', '.join(kinds)}")
    if entry.get("on") not in _METHODS:
        raise ValueError(f"{where}.on is {entry.get('on')!r}; known are {', '.join(_METHODS)}")
    times = entry.get("times")
    return Fault(
        on=str(entry["on"]),
        kind=FaultKind(entry["kind"]),
        type=str(entry.get("type", "*")),
        name=str(entry.get("name", "*")),
        times=times if isinstance(times, int) else None,
    )
