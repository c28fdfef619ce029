"""The words of a remedy plan: conditions on the world, steps between them, and measures that steps belong to."""

from __future__ import annotations

import datetime
import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from policies.audit.model import RemedyKind, VerdictKind
from policies.audit.record import Item, Json
from policies.money import Amount


class Action(enum.Enum):
    """One change that a step makes, by one call of an API."""

    SET_THROUGHPUT = "set-throughput"
    """disks.update; Google takes it once in six hours."""
    CREATE_SNAPSHOT = "create-snapshot"
    DELETE_DISK = "delete-disk"
    DETACH_DISK = "detach-disk"
    RELEASE_ADDRESS = "release-address"
    DELETE_SNAPSHOT = "delete-snapshot"
    DELETE_IMAGE = "delete-image"
    DELETE_NODE = "delete-node"
    DELETE_QUEUED_RESOURCE = "delete-queued-resource"
    RESIZE_GROUP = "resize-group"
    STOP_INSTANCE = "stop-instance"
    PATCH_BUCKET = "patch-bucket"
    """Only while the bucket has the metageneration that was seen."""
    DISABLE_CACHE = "disable-cache"


@final
@dataclass(frozen=True, kw_only=True)
class Condition:
    """What one resource must be like."""

    resource: str
    """Self link without host and version."""
    fields: Mapping[str, Json] = field(default_factory=dict)
    """Values by field, nested ones as `softDeletePolicy.retentionDurationSeconds`. Links count without their host, a
    list without its order, and a missing field is an empty one."""
    absent: bool = False
    """That it does not exist; then there are no fields."""
    lacks: Mapping[str, Json] = field(default_factory=dict)
    """Values that the lists of these fields do not hold: `{"users": "projects/.../instances/vm"}`."""

    def __post_init__(self) -> None:
        if self.absent and (self.fields or self.lacks):
            raise ValueError(f"{self.resource}: what is absent has no fields")


@final
@dataclass(frozen=True, kw_only=True)
class Step:
    """One change: what must hold before, what is done, what holds afterwards."""

    action: Action
    resource: str
    """What the call is made on."""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    """Of the call: `{"mibps": 400}`, `{"snapshot": "..."}`."""
    requires: tuple[Condition, ...]
    """The world as it was seen. Where it is no longer so, the step is refused."""
    done: Condition
    """The world afterwards. Where it is so already, the step has nothing to do."""
    text: str
    """The step in words: `set the throughput of llama-old to 400 MiB/s`."""


@final
@dataclass(frozen=True, kw_only=True)
class Measure:
    """The remedy of one verdict, step by step. A step that fails ends its measure; other measures go on."""

    resource: str
    verdict: VerdictKind
    kind: RemedyKind
    saving: Amount | None
    """A month; None where a price is missing."""
    why: str
    """The message of the verdict."""
    steps: tuple[Step, ...]
    setting: str = ""
    """For what a Pulumi stack manages: the stack setting to change, so that the next `up` does not undo it."""


@final
@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A remedy that is not taken, and why."""

    resource: str
    why: str


@final
@dataclass(frozen=True, kw_only=True)
class RemedyPlan:
    """What is to be done about an audit. `spotrail.remedies/1` is its file form."""

    project: str
    recorded_at: datetime.datetime
    """The time of the world that it rests on."""
    measures: tuple[Measure, ...] = ()
    """Those that save most come first."""
    refused: tuple[Refusal, ...] = ()


def unmet(condition: Condition, item: Item | None) -> str:
    """What keeps `condition` from holding of the resource as it is now, in words; empty where it holds."""
    name = condition.resource.rpartition("/")[2]
    if item is None:
        return "" if condition.absent else f"{name} does not exist"
    if condition.absent:
        return f"{name} exists"
    for path, wanted in condition.fields.items():
        found = _canonical(value_at(item, path))
        if found != _canonical(wanted):
            return f"{name}: {path} is {_shown(found)}, where {_shown(_canonical(wanted))} was expected"
    for path, unwanted in condition.lacks.items():
        held = value_at(item, path)
        if isinstance(held, list) and _canonical(unwanted) in map(_canonical, held):
            return f"{name}: {path} still holds {_shown(_canonical(unwanted))}"
    return ""


def _shown(value: Json) -> str:
    """A value in a sentence: text as it is, nothing as `empty`, the rest as JSON."""
    if value is None:
        return "empty"
    return value if isinstance(value, str) else json.dumps(value)


def value_at(item: Item, path: str) -> Json:
    """The value at a dotted path of a resource; None where it ends."""
    value: Json = item
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _canonical(value: Json) -> Json:
    """A form in which equal things are equal: links without host, int64 as text, lists in order, nothing as None."""
    if isinstance(value, list):
        return sorted((_canonical(each) for each in value), key=repr) or None
    if isinstance(value, Mapping):
        return {key: _canonical(each) for key, each in sorted(value.items())} or None
    if isinstance(value, bool) or value is None or value == "":
        return value if isinstance(value, bool) else None
    text = str(value)
    return text[text.index("projects/") :] if text.startswith("https://") and "projects/" in text else text
