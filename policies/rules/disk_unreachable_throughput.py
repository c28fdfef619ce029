"""More throughput than all readers together can take: the part above their caps is never read."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from policies.hardware.disks import PER_VM_CAP_MIBPS
from policies.resources import Opaque, Resource
from policies.rules.attachments import DISK, attachments_of, readers
from policies.rules.bills import a_month, cost_of
from policies.rules.disks import THROUGHPUT_ITEM, is_model_volume, throughput_of
from policies.rules.model import Context, Rule, Severity, Violation


def _check(disk: Resource, context: Context) -> Iterator[Violation]:
    volume = is_model_volume(disk)
    if isinstance(volume, Opaque):
        yield Violation.hidden("type", volume)
    if volume is not True:
        return
    throughput, many = throughput_of(disk, context.resources), readers(attachments_of(disk, context))
    if isinstance(throughput, Opaque):
        yield Violation.hidden("provisionedThroughput", throughput)
    elif isinstance(many, Opaque):
        yield Violation.hidden("the number of readers", many)
    elif throughput and 0 < many * PER_VM_CAP_MIBPS < throughput:
        reach = many * PER_VM_CAP_MIBPS
        cost = cost_of(disk, context, THROUGHPUT_ITEM)
        lost = None if cost is None else cost * Fraction(throughput - reach, throughput)
        yield Violation(
            message=(
                f"{throughput:,} MiB/s, and {many} {'reader takes' if many == 1 else 'readers take'} at most {reach:,} "
                f"({PER_VM_CAP_MIBPS:,} a machine): {a_month(lost)} that nobody can read"
            ),
            monthly=lost,
        )


RULE: Final = Rule(
    id="DISK-UNREACHABLE-THROUGHPUT",
    title="The readers of a volume can take the throughput that it has",
    severity=Severity.WARNING,
    applies_to=(DISK,),
    remediation="Lower spotrail:model.throughput (provisionedThroughput) to 2,400 a reader, or add readers.",
    url="https://docs.cloud.google.com/compute/docs/disks/hd-types/hyperdisk-ml",
    check=_check,
    absence=True,
)
