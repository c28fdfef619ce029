"""Snapshot schedules without an end: one more full lineage of bytes, for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.model import Context, Rule, Severity, Violation


def _check(policy: Resource, context: Context) -> Iterator[Violation]:
    schedule = policy.value("snapshotSchedulePolicy")
    days = policy.value("snapshotSchedulePolicy", "retentionPolicy", "maxRetentionDays")
    if isinstance(days, Opaque):
        yield Violation.hidden("snapshotSchedulePolicy.retentionPolicy.maxRetentionDays", days)
    elif schedule is not None and days is None:
        yield Violation(message="it takes snapshots and never deletes one: retentionPolicy.maxRetentionDays is not set")


RULE: Final = Rule(
    id="DISK-SNAPSHOT-RETENTION",
    title="A snapshot schedule deletes what it has taken",
    severity=Severity.WARNING,
    applies_to=("gcp:compute/resourcePolicy:ResourcePolicy",),
    remediation="Set snapshotSchedulePolicy.retentionPolicy.maxRetentionDays.",
    url="https://docs.cloud.google.com/compute/docs/disks/scheduled-snapshots",
    check=_check,
)
