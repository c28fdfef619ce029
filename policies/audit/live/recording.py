"""A project becomes a record: everything asked for at once, and what could not be seen said by name."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

from policies.audit.live import inventory, metrics
from policies.audit.live.access import Access, Calls, Clients
from policies.audit.live.failures import CloudError, plain
from policies.audit.live.gathering import gather
from policies.audit.live.inventory import Found
from policies.audit.live.metrics import FoundSeries, Pair, affordable, minute_readers, window_before
from policies.audit.live.packing import Packer
from policies.audit.live.storage_inventory import read_buckets, read_caches, read_heartbeats
from policies.audit.record import Item, Metric, Missing, Part, Record, Series, Window
from policies.audit.terms import Terms
from policies.errors import InputError

Candidates: TypeAlias = Callable[[Record, Terms], Sequence[Pair]]
"""Names the volumes on machines whose verdict needs minute points, the most wasteful first."""

_OF_BUCKETS: Final = (Part.CACHES, Part.HEARTBEATS)
"""Parts that are looked for in the buckets, once these are known."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Collected:
    """A record, and what it took."""

    record: Record
    calls: Mapping[str, int]
    """API calls by method, repeated ones and all."""


def collect(
    access: Access,
    project: str,
    terms: Terms,
    say: Callable[[str], None],
    *,
    now: datetime.datetime | None = None,
    candidates: Candidates = lambda _record, _terms: (),
) -> Collected:
    """Read the project. `say` gets lines of progress, from several threads.

    Raises CloudError where nothing of the inventory could be read, CredentialsError where nobody is logged in,
    InputError where Google's clients are not installed.
    """
    if not project or plain(project) != project or "/" in project:
        raise InputError(f'--project is "{plain(project)}"; it is the id of a project, such as acme-tpu-dev')
    calls = Calls()
    clients = Clients(access, calls, say)
    when = now or datetime.datetime.now(datetime.UTC)
    return _Collection(clients, project, terms, window_before(when, terms.window)).collected(when, candidates)


@final
class _Collection:
    """One project that is being read."""

    def __init__(self, clients: Clients, project: str, terms: Terms, window: Window) -> None:
        self._clients = clients
        self._project = project
        self._terms = terms
        self._window = window
        self._packer = Packer()
        self._inventory: dict[Part, tuple[Item, ...]] = {}
        self._metrics: dict[Metric, tuple[Series, ...]] = {}
        self._missing: list[Missing] = []
        self._notes: list[str] = []

    def collected(self, when: datetime.datetime, candidates: Candidates) -> Collected:
        self._read_all()
        self._read_of_buckets()
        record = self._record(when)
        self._read_minutes(candidates(record, self._terms))
        return Collected(record=self._record(when), calls=self._clients.calls.counts())

    def _record(self, when: datetime.datetime) -> Record:
        return Record(
            project=self._project,
            recorded_at=when,
            window=self._window,
            inventory={part: self._inventory[part] for part in Part if part in self._inventory},
            metrics={metric: self._metrics[metric] for metric in Metric if metric in self._metrics},
            missing=tuple(self._missing),
            notes=tuple(self._notes),
        )

    def _read_all(self) -> None:
        """The parts that need no other, and every metric by the hour."""
        parts = {
            **inventory.readers(self._clients, self._project),
            Part.BUCKETS: lambda: read_buckets(self._clients, self._project),
        }
        hours = metrics.readers(self._clients, self._project, self._window, self._packer)
        answers = gather({**parts, **hours}, self._clients.access.part_s)
        for key, answer in answers.items():
            self._take(key, answer)
        if not self._inventory:
            first = next(answers[part] for part in parts)
            raise CloudError(f"nothing of project {self._project} could be read: {first}") from (
                first if isinstance(first, CloudError) else None
            )

    def _read_of_buckets(self) -> None:
        buckets = self._inventory.get(Part.BUCKETS)
        if buckets is None:
            self._missing += [Missing(part=part.value, why="the buckets could not be read") for part in _OF_BUCKETS]
            return
        questions: dict[Part, Callable[[], Found]] = {
            Part.CACHES: lambda: read_caches(self._clients, buckets),
            Part.HEARTBEATS: lambda: read_heartbeats(self._clients, buckets, self._window),
        }
        for part, answer in gather(questions, self._clients.access.part_s).items():
            self._take(part, answer)

    def _read_minutes(self, pairs: Sequence[Pair]) -> None:
        most = affordable(self._window)
        if len(pairs) > most:
            self._notes.append(
                f"minute points are read of {most:,} of {len(pairs):,} volumes on machines that need them; the others "
                "are judged by the hour"
            )
        read = minute_readers(self._clients, self._project, self._window, self._packer, pairs[:most])
        for (metric, _), answer in gather(read, self._clients.access.part_s).items():
            if isinstance(answer, CloudError):
                self._miss(f"{metric.value} minutes", answer)
            else:
                self._metrics[metric] = (*self._metrics.get(metric, ()), *answer.series)
                self._missing += [replace(gap, part=f"{metric.value} minutes") for gap in answer.missing]

    def _take(self, key: Part | Metric, answer: Found | FoundSeries | CloudError) -> None:
        """A part that failed wholly is absent from the record and named as missing; of one that failed partly, both."""
        if isinstance(answer, CloudError):
            self._miss(key.value, answer)
            return
        self._missing += answer.missing
        if isinstance(answer, Found):
            self._inventory[Part(key.value)] = tuple(answer.items)
            self._clients.say(f"{key.value}: {len(answer.items):,}")
        else:
            self._metrics[Metric(key.value)] = answer.series
            self._clients.say(f"{key.value}: {len(answer.series):,} series")

    def _miss(self, part: str, error: CloudError) -> None:
        if all(gap.part != part for gap in self._missing):
            self._missing.append(Missing(part=part, why=plain(f"{error}")))
        self._clients.say(f"{part}: could not be read")
