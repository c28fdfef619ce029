"""Sizes and performance that no disk of the type can have: refused by Google, never rounded by us."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from policies.hardware.disks import DiskType, check_disk, disk_types, floor_throughput
from policies.resources import Opaque, Resource
from policies.rules.attachments import DISK, DISKS, attachments_of, readers
from policies.rules.disks import HYPERDISK_ML, type_of
from policies.rules.model import Context, Rule, Severity, Violation


def _check(disk: Resource, context: Context) -> Iterator[Violation]:
    kind = type_of(disk)
    if isinstance(kind, Opaque):
        yield Violation.hidden("type", kind)
        return
    values: dict[str, int | None] = {}
    for key in ("size", "provisionedThroughput", "provisionedIops"):
        # Of performance only what was asked for is judged: what Google answers may name what nobody can set.
        asked = key == "size" or disk.inputs.get(key) is not None
        value = disk.integer(key) if asked else None
        if isinstance(value, Opaque):
            yield Violation.hidden(key, value)
        values[key] = None if isinstance(value, Opaque) else value
    size = values["size"]
    # The limits of performance hang on the size: while nobody can see it they are not judged.
    judged = not isinstance(disk.value("size"), Opaque)
    throughput, iops = (values[key] if judged else None for key in ("provisionedThroughput", "provisionedIops"))
    yield from (Violation(message=fault) for fault in _faults(kind, size, throughput, iops))
    known = disk_types().get(kind)
    if known and known.max_readers is not None:
        yield from _fan_out(disk, known, context)
    if known and disk.type != DISK and not known.regional:
        yield Violation(message=f"{kind} cannot be replicated in two zones; make it a zonal disk")


@lru_cache(maxsize=4096)
def _faults(kind: str, size: int | None, throughput: int | None, iops: int | None) -> tuple[str, ...]:
    return check_disk(kind, size, throughput, iops)


def _fan_out(volume: Resource, kind: DiskType, context: Context) -> Iterator[Violation]:
    """How many machines read it: a type has a most, and Hyperdisk ML wants throughput for each past the twentieth."""
    many, throughput = readers(attachments_of(volume, context)), volume.inputs.get("provisionedThroughput")
    if isinstance(many, Opaque):
        yield Violation.hidden("the number of readers", many)
        return
    if kind.max_readers is not None and many > kind.max_readers:
        yield Violation(message=f"{many:,} machines attach it; {kind.name} takes {kind.max_readers:,} at most")
    size = volume.integer("size")
    gib = size if isinstance(size, int) else 0
    least = floor_throughput(gib, many)
    # A volume that is too slow for its size alone is refused already.
    if kind.name == HYPERDISK_ML and isinstance(throughput, int) and floor_throughput(gib) <= throughput < least:
        yield Violation(message=f"{throughput:,} MiB/s for {many:,} readers, who take at least {least:,}: 20 each")


RULE: Final = Rule(
    id="DISK-LIMITS",
    title="Size, throughput and IOPS of a disk are within the limits of its type",
    severity=Severity.ERROR,
    applies_to=DISKS,
    remediation=(
        "Set spotrail:model.size_gib and spotrail:model.throughput (size, provisionedThroughput, provisionedIops) "
        "within the limits; for Hyperdisk ML 4 to 65,536 GiB, 400 MiB/s to 1,600 a GiB, and past 20 readers 20 each."
    ),
    url="https://docs.cloud.google.com/compute/docs/disks/hyperdisks",
    check=_check,
)
