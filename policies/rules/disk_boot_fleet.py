"""Boot disks times hosts: what is small change on one machine is a bill on sixty-four."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from policies.estimate.model import total
from policies.money import Amount
from policies.resources import Opaque, Resource
from policies.rules.bills import a_month, lines_of
from policies.rules.disks import SSD_TYPES, BootDisk, boot_disks
from policies.rules.machines import GROUPS, description_of, machines_of
from policies.rules.model import Context, Rule, Severity, Violation

ENOUGH_GIB: Final = 100
"""What the TPU API gives a host, and the container images of a training run fit in it."""
BOOT_LINE: Final = "boot disk"


def _check(group: Resource, context: Context) -> Iterator[Violation]:
    template = description_of(group, context.resources)
    machines = machines_of(group, context.resources)
    for disk in boot_disks(template) if template else ():
        parts = {"targetSize": machines, f"{disk.path} size": disk.gib, f"{disk.path} type": disk.type}
        hidden = [Violation.hidden(path, value) for path, value in parts.items() if isinstance(value, Opaque)]
        yield from hidden
        if not hidden and isinstance(machines, int):
            yield from _judged(group, disk, machines, context)


def _judged(group: Resource, disk: BootDisk, machines: int, context: Context) -> Iterator[Violation]:
    gib = disk.gib if isinstance(disk.gib, int) else 0
    if machines < 2 or not (gib > ENOUGH_GIB or disk.type in SSD_TYPES):
        return
    cost = _cost(group, context)
    extra, why = cost, f"Hyperdisk Balanced of {ENOUGH_GIB} GiB is enough"
    if cost and gib > ENOUGH_GIB and disk.type not in SSD_TYPES:
        extra = cost * Fraction(gib - ENOUGH_GIB, gib)
        why = f"{a_month(extra)} of it is above {ENOUGH_GIB} GiB, which is enough"
    size = f"{gib:,} GiB" if gib else "the size of its image"
    kind = disk.type or "the default type"
    message = f"{machines} hosts boot from {kind} of {size} each: {a_month(cost)}; {why}"
    yield Violation(message=message, monthly=extra)


def _cost(group: Resource, context: Context) -> Amount | None:
    """Of the capacity alone: what the disks can do is another rule's business."""
    boot = (line for line in lines_of(group, context) if line.name.startswith(BOOT_LINE))
    lines = [line for line in boot if line.item.endswith(".capacity")]
    return total(line.amount for line in lines) if lines else None


RULE: Final = Rule(
    id="DISK-BOOT-FLEET",
    title="The boot disks of many hosts are neither large nor SSD",
    severity=Severity.WARNING,
    applies_to=GROUPS,
    remediation=(
        "Set spotrail:slices.<name>.boot_disk_gib to 100 or less and boot_disk_type to hyperdisk-balanced; data "
        "belongs on the model volume or in a bucket."
    ),
    url="https://cloud.google.com/compute/disks-image-pricing",
    check=_check,
)
