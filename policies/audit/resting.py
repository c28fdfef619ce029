"""What a remedy rests on: from a half-seen world nothing is proposed."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

from policies.audit.model import RemedyKind, Verdict, VerdictKind
from policies.audit.record import Metric, Part, Record

Key: TypeAlias = Part | Metric

_THROUGHPUT: Final = (Part.DISKS, Part.INSTANCES, Part.NODES)
_MACHINES: Final = (Part.INSTANCES, Part.GROUPS)
_RESTS: Final = MappingProxyType[RemedyKind, tuple[Key, ...]](
    {
        RemedyKind.LOWER_THROUGHPUT: _THROUGHPUT,
        RemedyKind.SCHEDULE_THROUGHPUT: _THROUGHPUT,
        RemedyKind.SNAPSHOT_THEN_DELETE: (*_THROUGHPUT, Part.SNAPSHOTS),
        RemedyKind.DETACH: _THROUGHPUT,
        RemedyKind.RELEASE_ADDRESS: (Part.ADDRESSES, Part.INSTANCES),
        RemedyKind.DELETE_SNAPSHOT: (Part.SNAPSHOTS, Part.DISKS, Part.IMAGES),
        RemedyKind.DELETE_IMAGE: (Part.IMAGES, Part.DISKS, Part.INSTANCES, Part.SNAPSHOTS),
        RemedyKind.DELETE_QUEUED_RESOURCE: (Part.QUEUED_RESOURCES, Part.NODES),
        RemedyKind.DELETE_NODE: (Part.NODES, Part.QUEUED_RESOURCES),
        RemedyKind.RESIZE_GROUP: _MACHINES,
        RemedyKind.STOP_INSTANCE: _MACHINES,
        RemedyKind.SET_LIFECYCLE: (Part.BUCKETS, Metric.BUCKET_BYTES),
        RemedyKind.EXPIRE_VERSIONS: (Part.BUCKETS, Metric.BUCKET_BYTES),
        RemedyKind.SHORTEN_SOFT_DELETE: (Part.BUCKETS, Metric.BUCKET_BYTES),
        RemedyKind.DISABLE_CACHE: (Part.CACHES, Metric.CACHE_HITS),
    }
)
"""The parts without which a remedy could be wrong: what would show that the resource is in use after all."""
_TRAFFIC: Final = (Metric.READ_BYTES, Metric.WRITE_BYTES, Metric.MAX_READ_BYTES, Metric.UPTIME)
_SEEN_BY: Final = MappingProxyType[VerdictKind, tuple[Key, ...]](
    {
        VerdictKind.IDLE_ATTACHED: _TRAFFIC,
        VerdictKind.UNREACHABLE: _TRAFFIC,
        VerdictKind.BURSTY: _TRAFFIC,
        VerdictKind.OVERPROVISIONED: _TRAFFIC,
        VerdictKind.IDLE_SLICE: (Metric.DUTY_CYCLE, Metric.CPU, Part.HEARTBEATS),
    }
)
"""What a verdict is seen by, beside the inventory."""


def rests_on(verdict: Verdict) -> tuple[Key, ...]:
    """The parts and metrics that the remedy of a verdict rests on."""
    if verdict.remedy is None:
        return ()
    return (*_RESTS[verdict.remedy.kind], *_SEEN_BY.get(verdict.kind, ()))


def in_a_whole_world(verdict: Verdict, record: Record) -> Verdict:
    """The verdict, without its remedy where any part of the project could not be read: what is missing may use it."""
    return replace(verdict, remedy=None) if record.missing and verdict.remedy is not None else verdict


def on_what_was_seen(verdict: Verdict, record: Record) -> Verdict:
    """The verdict, without its remedy where a part that it rests on could not be read whole."""
    unseen = [key.value for key in rests_on(verdict) if record.failed(key)]
    if not unseen:
        return verdict
    reason = f"no remedy is proposed, as {', '.join(unseen)} could not be read whole"
    return replace(verdict, remedy=None, message=f"{verdict.message}; {reason}")
