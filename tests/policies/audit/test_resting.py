"""From a half-seen world no remedy is proposed; what was seen whole still is."""

from __future__ import annotations

import pytest

from policies.audit.model import Remedy, RemedyKind, Verdict, VerdictKind
from policies.audit.record import Metric, Missing, Part, Record
from policies.audit.resting import on_what_was_seen, rests_on
from tests.policies.audit.worlds import context


def verdict(remedy: RemedyKind | None, kind: VerdictKind = VerdictKind.IDLE_UNATTACHED) -> Verdict:
    return Verdict(
        resource="projects/p/zones/z/disks/d",
        type="compute.disk",
        location="z",
        kind=kind,
        remedy=None if remedy is None else Remedy(kind=remedy, text="do it"),
        message="why",
    )


def without(part: str) -> Record:
    return context({}, missing=(Missing(part=part, why="HTTP 503"),)).record


@pytest.mark.parametrize("remedy", RemedyKind)
def test_every_remedy_rests_on_something(remedy: RemedyKind) -> None:
    keys = rests_on(verdict(remedy))
    assert keys
    for key in keys:
        found = on_what_was_seen(verdict(remedy), without(key.value))
        assert found.remedy is None
        assert found.message == f"why; no remedy is proposed, as {key.value} could not be read whole"


@pytest.mark.parametrize(
    ("kind", "remedy", "part", "kept"),
    [
        (VerdictKind.IDLE_UNATTACHED, RemedyKind.SNAPSHOT_THEN_DELETE, Part.DISKS.value, False),
        (VerdictKind.IDLE_UNATTACHED, RemedyKind.SNAPSHOT_THEN_DELETE, "compute.disks us-east1-d", False),
        (VerdictKind.IDLE_UNATTACHED, RemedyKind.SNAPSHOT_THEN_DELETE, Part.NODES.value, False),
        (VerdictKind.IDLE_UNATTACHED, RemedyKind.SNAPSHOT_THEN_DELETE, Metric.READ_BYTES.value, True),
        (VerdictKind.IDLE_UNATTACHED, RemedyKind.SNAPSHOT_THEN_DELETE, Part.BUCKETS.value, True),
        (VerdictKind.IDLE_ATTACHED, RemedyKind.LOWER_THROUGHPUT, Metric.READ_BYTES.value, False),
        (VerdictKind.OVERPROVISIONED, RemedyKind.LOWER_THROUGHPUT, Metric.WRITE_BYTES.value, False),
        (VerdictKind.IDLE_STOPPED_HOST, RemedyKind.LOWER_THROUGHPUT, Metric.READ_BYTES.value, True),
        (VerdictKind.IDLE_SLICE, RemedyKind.DELETE_NODE, Metric.DUTY_CYCLE.value, False),
        (VerdictKind.EXPIRED, RemedyKind.DELETE_NODE, Metric.DUTY_CYCLE.value, True),
    ],
)
def test_only_what_a_remedy_rests_on_counts(kind: VerdictKind, remedy: RemedyKind, part: str, kept: bool) -> None:
    assert (on_what_was_seen(verdict(remedy, kind), without(part)).remedy is not None) is kept


def test_without_a_remedy_nothing_is_taken_away() -> None:
    plain = verdict(None)
    assert on_what_was_seen(plain, without(Part.DISKS.value)) is plain
