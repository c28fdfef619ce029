"""Throughput left to Google on Hyperdisk ML: 24 MiB/s a GiB, every one billed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.attachments import DISK
from policies.rules.bills import a_month, cost_of
from policies.rules.disks import THROUGHPUT_ITEM, is_model_volume, size_of, throughput_of
from policies.rules.model import Context, Rule, Severity, Violation


def _check(disk: Resource, context: Context) -> Iterator[Violation]:
    volume = is_model_volume(disk)
    if isinstance(volume, Opaque):
        yield Violation.hidden("type", volume)
    if volume is not True:
        return
    asked = disk.inputs.get("provisionedThroughput")
    if isinstance(asked, Opaque):
        yield Violation.hidden("provisionedThroughput", asked)
    elif asked is None:
        cost = cost_of(disk, context, THROUGHPUT_ITEM)
        yield Violation(
            message=f"throughput is not set: Google provisions {_default(disk, context)}, {a_month(cost)}", monthly=cost
        )


def _default(disk: Resource, context: Context) -> str:
    size, throughput = size_of(disk, context.resources), throughput_of(disk, context.resources)
    if isinstance(throughput, int):
        return f"{throughput:,} MiB/s" + (f" for {size:,} GiB" if isinstance(size, int) else "")
    return "max(24 x GiB, 400) MiB/s"


RULE: Final = Rule(
    id="DISK-DEFAULT-THROUGHPUT",
    title="The throughput of a Hyperdisk ML volume is set on purpose",
    severity=Severity.ERROR,
    applies_to=(DISK,),
    remediation=(
        "Set spotrail:model.throughput, or provisionedThroughput, to what the readers need; 400 MiB/s is the least."
    ),
    url="https://docs.cloud.google.com/compute/docs/disks/hd-types/hyperdisk-ml",
    check=_check,
)
