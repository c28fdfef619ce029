"""Throughput above the least that Google takes: it buys shorter cold starts and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Final

from policies.hardware.disks import PER_VM_CAP_MIBPS, floor_throughput
from policies.money import Amount, decimal_of
from policies.resources import Opaque, Resource
from policies.rules.attachments import DISK, attachments_of, readers
from policies.rules.bills import a_month, cost_of
from policies.rules.disks import THROUGHPUT_ITEM, is_model_volume, size_of
from policies.rules.model import Context, Rule, Severity, Violation

MIB_PER_GIB: Final = 1024
SECONDS_PER_MINUTE: Final = 60


def _check(disk: Resource, context: Context) -> Iterator[Violation]:
    volume = is_model_volume(disk)
    if isinstance(volume, Opaque):
        yield Violation.hidden("type", volume)
    if volume is not True or disk.inputs.get("provisionedThroughput") is None:
        return  # what is left to Google is the matter of DISK-DEFAULT-THROUGHPUT
    size, throughput = size_of(disk, context.resources), disk.integer("provisionedThroughput")
    many = readers(attachments_of(disk, context))
    for path, value in (("size", size), ("provisionedThroughput", throughput), ("the number of readers", many)):
        if isinstance(value, Opaque):
            yield Violation.hidden(path, value)
            return
    if isinstance(size, int) and isinstance(throughput, int) and isinstance(many, int):
        yield from _judged(disk, size, throughput, many, context)


def _judged(disk: Resource, size: int, throughput: int, many: int, context: Context) -> Iterator[Violation]:
    floor = floor_throughput(size, many)
    if throughput <= floor or not floor:
        return  # no volume has a size without a floor: that is the matter of DISK-LIMITS
    yield _saving(size, throughput, many, cost_of(disk, context, THROUGHPUT_ITEM))


@lru_cache(maxsize=4096)
def _saving(size: int, throughput: int, many: int, cost: Amount | None) -> Violation:
    """What is told of a volume. The volumes of a large stack are of few kinds."""
    floor = floor_throughput(size, many)
    saved = None if cost is None else cost * Fraction(throughput - floor, throughput)
    return Violation(
        message=(
            f"{throughput:,} MiB/s, the floor of this volume is {floor:,}: {a_month(saved)}. At {floor:,} MiB/s a cold "
            f"start{_shared(many)} reads {size:,} GiB in {_minutes(size, floor, many)} minutes instead of "
            f"{_minutes(size, throughput, many)}"
        ),
        monthly=saved,
    )


def _shared(many: int) -> str:
    return f" of {many} readers at once" if many > 1 else ""


def _minutes(size: int, throughput: int, many: int) -> str:
    """How long every reader takes to read the whole volume, all at once, each up to its own cap."""
    each = min(Fraction(throughput, max(many, 1)), Fraction(PER_VM_CAP_MIBPS))
    return f"{decimal_of(Fraction(size * MIB_PER_GIB) / each / SECONDS_PER_MINUTE):,.1f}"


RULE: Final = Rule(
    id="DISK-THROUGHPUT-ABOVE-FLOOR",
    title="Throughput above the floor of a volume is worth its cold start",
    severity=Severity.WARNING,
    applies_to=(DISK,),
    remediation=(
        "Set spotrail:model.throughput (provisionedThroughput) to the floor where the slower start will do. It can be "
        "changed while attached, once in six hours."
    ),
    url="https://docs.cloud.google.com/compute/docs/disks/hd-types/hyperdisk-ml",
    check=_check,
)
