"""IOPS and throughput of Hyperdisk Balanced above what every disk includes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.hardware.disks import Performance, disk_type
from policies.resources import Opaque, Resource
from policies.rules.attachments import DISK
from policies.rules.bills import a_month, cost_of
from policies.rules.disks import type_of
from policies.rules.labels import label
from policies.rules.model import Context, Rule, Severity, Violation

BALANCED: Final = "hyperdisk-balanced"
ITEMS: Final = (f"disk.{BALANCED}.iops", f"disk.{BALANCED}.throughput")
TOLERANT_ENV: Final = "prod"


def _check(disk: Resource, context: Context) -> Iterator[Violation]:
    kind = type_of(disk)
    if isinstance(kind, Opaque):
        yield Violation.hidden("type", kind)
    if kind != BALANCED:
        return
    found = disk_type(BALANCED)
    extras = []
    for key, limits in (("provisionedIops", found.iops), ("provisionedThroughput", found.throughput)):
        value = disk.integer(key)
        if isinstance(value, Opaque):
            yield Violation.hidden(key, value)
        elif limits and value and value > limits.included:
            extras.append(_said(value, limits))
    if extras:
        cost = cost_of(disk, context, *ITEMS)
        yield Violation(
            message=f"{' and '.join(extras)}: {a_month(cost)}",
            monthly=cost,
            severity=Severity.INFO if label(disk, "env", context.resources) == TOLERANT_ENV else None,
        )


def _said(value: int, limits: Performance) -> str:
    return f"{value:,} {limits.name if not limits.unit else limits.unit.strip()} where {limits.included:,} are included"


RULE: Final = Rule(
    id="DISK-BALANCED-PERFORMANCE",
    title="Hyperdisk Balanced has no more performance than is included",
    severity=Severity.WARNING,
    applies_to=(DISK,),
    remediation="Leave provisionedIops at 3,000 and provisionedThroughput at 140 unless a measurement asks for more.",
    url="https://docs.cloud.google.com/compute/docs/disks/hd-types/hyperdisk-balanced",
    check=_check,
)
