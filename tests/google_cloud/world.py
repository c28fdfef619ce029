"""The world behind the loopback Google Cloud: resources, their traffic, a clock, faults, and what was done to it.

A test builds one in three lines:

    world = World(now=datetime(2026, 11, 29, 12, tzinfo=UTC))
    world.add(Part.DISKS, name="llama", zone="us-central1-b", sizeGb="500", provisionedThroughput="12000")
    with served(world) as endpoint: ...

Fields are those of Google's REST JSON; short names become links, what every resource has is filled in (see `shapes`).
A text such as `now-30d` is a time by the world's clock. Traffic: see `signals`; faults: `world.fail(Fault(...))`.
"""

from __future__ import annotations

import datetime
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any, Final, final

from policies.audit.record import Part
from tests.google_cloud.errors import not_found
from tests.google_cloud.faults import Calls, Fault, fault
from tests.google_cloud.instants import resolved, rfc3339
from tests.google_cloud.object_sessions import Uploads
from tests.google_cloud.object_store import Objects
from tests.google_cloud.operations import Operations
from tests.google_cloud.shapes import Item, completed, key, last
from tests.google_cloud.signals import SECTIONS, Signals

PROJECT: Final = "acme-tpu-dev"
NUMBER: Final = "481516234210"


@final
class World:
    """One project. Every change of its state is made under `lock`."""

    def __init__(
        self, *, project: str = PROJECT, number: str = NUMBER, now: datetime.datetime | None = None, polls: int = 2
    ) -> None:
        """`now` stops the clock there until it is set again; without it the clock runs. `polls`: see `Operations`."""
        self.project = project
        self.number = number
        self.lock = threading.RLock()
        self.calls = Calls()
        self.signals = Signals()
        self.operations = Operations(polls)
        self.inventory: dict[Part, dict[str, Item]] = {part: {} for part in Part}
        self.objects = Objects(self.inventory[Part.HEARTBEATS])
        self.uploads = Uploads()
        self.records: dict[str, Item] = {}
        """What a declaration made that is no Part of an inventory, by its path."""
        self.exhausted: set[str] = set()
        """Zones that have no room for another machine."""
        self.throughput_changed: dict[str, datetime.datetime] = {}
        """When the throughput of a disk was last changed, by its path."""
        self.written: list[dict[str, Any]] = []
        """Time series that were written, as REST JSON."""
        self.published: list[dict[str, Any]] = []
        """Messages to Pub/Sub: `topic`, `data` (text), `attributes`."""
        self.posted: list[dict[str, Any]] = []
        """What webhooks got: `path`, `headers`, `body` (text)."""
        self._now = now
        self._paths: dict[tuple[Part, str], set[str]] = {}

    @property
    def now(self) -> datetime.datetime:
        """The time by the world's clock."""
        return self._now or datetime.datetime.now(datetime.UTC)

    @now.setter
    def now(self, when: datetime.datetime) -> None:
        self._now = when

    def stamp(self) -> str:
        """Now, as Google writes it."""
        return rfc3339(self.now)

    def add(self, part: Part, **fields: Any) -> Item:
        """Put a resource into the world; gives it in Google's shape."""
        with self.lock:
            item = completed(part, resolved(fields, self.now), self.project, self.number)
            path = key(part, item)
            self.inventory[part][path] = item
            for name in (last(path), str(item.get("id", ""))):
                self._paths.setdefault((part, name), set()).add(path)
            return item

    def observe(self, section: str, **spec: Any) -> None:
        """Describe what a metric shows; the sections and their fields are in `signals`."""
        with self.lock:
            SECTIONS[section](self, spec)

    def fail(self, *faults: Fault) -> None:
        """Put faults in force."""
        self.calls.add(*faults)

    def counts(self) -> Counter[str]:
        """How often each method was called."""
        return self.calls.counts()

    def items(self, part: Part) -> list[Item]:
        """The resources of a part, by their paths."""
        with self.lock:
            return [item for _, item in sorted(self.inventory[part].items())]

    def get(self, part: Part, path: str) -> Item:
        """A resource by its path. Raises Refusal (404)."""
        with self.lock:
            if path not in self.inventory[part]:
                raise not_found(path)
            return self.inventory[part][path]

    def named(self, part: Part, name: str) -> Item:
        """The one resource whose name (or id) that is."""
        paths = self._paths.get((part, name), set())
        found = [self.inventory[part][path] for path in paths if path in self.inventory[part]]
        if len(found) != 1:
            raise LookupError(f"{len(found)} of {part.value} are called {name}")
        return found[0]


def load(path: Path, *, now: datetime.datetime | None = None) -> World:
    """A world from a JSON file: `project`, `projectNumber`, `now`, `inventory` by Part, and the sections of `signals`.

    `faults` are in force from the start: `[{"kind": "RATE_LIMITED", "method": "compute.*", "times": 2}]`.
    A file without `now` has a clock that runs, and its `now-30d` are counted from this moment.
    """
    data = json.loads(path.read_text())
    fixed = now or (datetime.datetime.fromisoformat(data["now"]) if "now" in data else None)
    world = World(project=data["project"], number=data.get("projectNumber", NUMBER), now=fixed)
    for part in Part:
        for fields in data.get("inventory", {}).get(part.value, ()):
            world.add(part, **fields)
    for section in SECTIONS:
        for spec in data.get(section, ()):
            world.observe(section, **spec)
    for spec in data.get("faults", ()):
        world.fail(fault(spec))
    unknown = set(data) - {"project", "projectNumber", "now", "inventory", "faults", *SECTIONS}
    if unknown:
        raise ValueError(f"{path}: a world has no {', '.join(sorted(unknown))}")
    return world
