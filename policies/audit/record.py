"""The record of a project: what the APIs returned, and what could not be read. `spotrail.record/1` is its file form.

Resources are kept in the REST JSON of Compute v1, TPU v2 and Storage v1, cut to an allow-list of fields. Time series
are kept as packed columns: a week of hourly points of ten thousand volumes are five million points.
"""

from __future__ import annotations

import datetime
import enum
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, final

from policies.errors import InputError

SCHEMA: Final = "spotrail.record/1"

Json: TypeAlias = "bool | int | float | str | list[Json] | Mapping[str, Json] | None"
Item: TypeAlias = Mapping[str, Json]
"""One resource as its API returned it."""


class Part(enum.Enum):
    """A collection of the inventory, by its key in the record."""

    DISKS = "compute.disks"
    INSTANCES = "compute.instances"
    SNAPSHOTS = "compute.snapshots"
    IMAGES = "compute.images"
    ADDRESSES = "compute.addresses"
    GROUPS = "compute.instanceGroupManagers"
    STORAGE_POOLS = "compute.storagePools"
    ROUTERS = "compute.routers"
    NODES = "tpu.nodes"
    QUEUED_RESOURCES = "tpu.queuedResources"
    BUCKETS = "storage.buckets"
    CACHES = "storage.anywhereCaches"
    HEARTBEATS = "storage.heartbeats"
    """Objects called `heartbeat.json` that training runs write beside their checkpoints: their metadata and content."""


class Metric(enum.Enum):
    """A time series that verdicts rest on, by its type in Cloud Monitoring."""

    READ_BYTES = "compute.googleapis.com/instance/disk/read_bytes_count"
    WRITE_BYTES = "compute.googleapis.com/instance/disk/write_bytes_count"
    MAX_READ_BYTES = "compute.googleapis.com/instance/disk/max_read_bytes_count"
    UPTIME = "compute.googleapis.com/instance/uptime"
    CPU = "compute.googleapis.com/instance/cpu/utilization"
    DUTY_CYCLE = "tpu.googleapis.com/accelerator/duty_cycle"
    BUCKET_BYTES = "storage.googleapis.com/storage/v2/total_bytes"
    NAT_RECEIVED = "router.googleapis.com/nat/received_bytes_count"
    CACHE_HITS = "storage.googleapis.com/anywhere_cache/request_count"


class Kind(enum.Enum):
    """How a point is to be read."""

    GAUGE = "GAUGE"
    """A value at an instant; of a byte counter, an aligned rate per second."""
    DELTA = "DELTA"
    """An amount over the interval of the point: divided by its own length, be it a minute or an hour."""
    CUMULATIVE = "CUMULATIVE"


class Point(NamedTuple):
    """One value over an interval, in seconds of the epoch. Of a gauge, start and end are the same."""

    start: float
    end: float
    value: float


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One time series, its points in three columns, in the order in which the API gave them."""

    metric_labels: Mapping[str, str]
    """`device_name`, `instance_name`, `type`, as the metric has them."""
    resource_type: str
    """`gce_instance`, `tpu.googleapis.com/GceTpuWorker`, `gcs_bucket`."""
    resource_labels: Mapping[str, str]
    """`instance_id`, `zone`, `bucket_name`, as the monitored resource has them."""
    kind: Kind
    whole: bool = True
    """Whether its values are INT64 (else DOUBLE), for the file form."""
    starts: array[float]
    """Seconds of the epoch, type code `d`, as are the other two."""
    ends: array[float]
    values: array[float]
    """Finite always: what is not a number is not kept, see `unreadable`."""
    unreadable: int = 0
    """Points whose value was no finite number; they count as not seen."""

    def __len__(self) -> int:
        return len(self.values)

    def points(self) -> Iterator[Point]:
        """The points, in the order of the API."""
        return map(Point._make, zip(self.starts, self.ends, self.values, strict=True))


@final
@dataclass(frozen=True, kw_only=True)
class Window:
    """The time that the metrics cover."""

    start: datetime.datetime
    """With a time zone, as `end`."""
    end: datetime.datetime

    def __post_init__(self) -> None:
        for name, value in (("start", self.start), ("end", self.end)):
            if value.tzinfo is None:
                raise InputError(f"window.{name} is {value.isoformat()}; it must say its time zone, as in ...Z")
        if not self.start < self.end:
            span = f"{self.start.isoformat()} to {self.end.isoformat()}"
            raise InputError(f"window is {span}; it must end after it starts")

    @property
    def length(self) -> datetime.timedelta:
        """From start to end."""
        return self.end - self.start


@final
@dataclass(frozen=True, kw_only=True)
class Missing:
    """A part of the world that could not be seen."""

    part: str
    """Key of the inventory or type of the metric, with the zone where only that failed: `compute.disks us-east1-d`."""
    why: str
    """What was asked, what came back."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """What was seen of a project. A part that is absent was not asked for."""

    project: str
    recorded_at: datetime.datetime
    """With a time zone. The day of prices and ages, unless `--as-of` says another."""
    window: Window
    inventory: Mapping[Part, tuple[Item, ...]] = field(default_factory=dict)
    metrics: Mapping[Metric, tuple[Series, ...]] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    """What else is to be known of it: parts of a file that this version does not judge."""

    def items(self, part: Part) -> tuple[Item, ...]:
        """The resources of a part; empty where it was not asked for."""
        return self.inventory.get(part, ())

    def series(self, metric: Metric) -> tuple[Series, ...]:
        """The time series of a metric; empty where it was not asked for."""
        return self.metrics.get(metric, ())

    def failed(self, key: Part | Metric) -> bool:
        """Whether anything of that part or metric could not be read, wholly or in one zone."""
        return any(gap.part.split(" ", 1)[0] == key.value for gap in self.missing)

    def seen(self, key: Part | Metric) -> bool:
        """Whether it was asked for and came back whole: only then does an absence mean that there is none."""
        asked = key in (self.inventory if isinstance(key, Part) else self.metrics)
        return asked and not self.failed(key)
