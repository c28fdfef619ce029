"""Labels of what outlives its machine: without an owner nobody dares to delete it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Resource
from policies.rules.labels import REMEDIATION, URL, judge_labels
from policies.rules.model import Context, Rule, Severity, Violation

STORED: Final = (
    "gcp:compute/disk:Disk",
    "gcp:compute/regionDisk:RegionDisk",
    "gcp:compute/snapshot:Snapshot",
    "gcp:compute/image:Image",
    "gcp:compute/storagePool:StoragePool",
)


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    return judge_labels(resource, context.resources)


RULE: Final = Rule(
    id="DISK-LABELS",
    title="Disks, snapshots and images carry owner, env, ttl and managed-by",
    severity=Severity.ERROR,
    applies_to=STORED,
    remediation=REMEDIATION,
    url=URL,
    check=_check,
)
