"""Volumes with many readers that still have the throughput that Google asked for before August 2026.

Source: https://docs.cloud.google.com/compute/docs/disks/hd-types/hyperdisk-ml
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.findings import find
from policies.audit.links import last
from policies.audit.reading import names, said, whole
from policies.audit.record import Part
from policies.audit.subjects import Subject
from policies.audit.telling import Told, readable, subjects
from policies.audit.volumes.facts import ML
from policies.estimate.model import Unpriced
from policies.hardware.disks import floor_throughput

MANY: Final = 20
"""Up to so many readers a volume needs no more for them, then and now."""
OLD_FLOOR: Final = 100
"""MiB/s for each reader, before 2026-08-03."""


def _look(context: Context) -> Iterator[Told]:
    if context.record.seen(Part.DISKS):
        yield from readable(subjects(context, Part.DISKS), lambda disk: _findings(context, disk))


def _findings(context: Context, disk: Subject) -> Iterator[Told]:
    if last(said(disk.item, "type")) != ML:
        return
    readers = len(names(disk.item, "users"))
    gib, throughput = whole(disk.item, "sizeGb"), whole(disk.item, "provisionedThroughput")
    if gib is None or throughput is None or readers <= MANY or throughput < OLD_FLOOR * readers:
        return
    floor = floor_throughput(gib, readers)
    rate = context.pricing.throughput_rate(disk.item)
    saved = None if isinstance(rate, Unpriced) else rate * (throughput - floor)
    message = (
        f"{readers} readers at {throughput:,} MiB/s, {OLD_FLOOR} or more each; the floor of today is {floor:,} MiB/s"
    )
    yield find("DISK-FANOUT", disk, message, monthly=saved)


AUDITOR: Final = Auditor(title="volumes at the old floor of many readers", look=_look)
