"""Boot disks that the machine series does not take: the VM is refused after its network and disks were made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.hardware.machines import BootDiskStatus, boot_disk_verdict
from policies.resources import Opaque, Resource
from policies.rules.attachments import attachments_on
from policies.rules.disks import boot_disks, type_of
from policies.rules.machines import DESCRIBED, machine_type
from policies.rules.model import Context, Rule, Severity, Violation


def _check(machine: Resource, context: Context) -> Iterator[Violation]:
    name = machine_type(machine)
    for path, kind in _types(machine, context):
        if isinstance(name, Opaque):
            yield Violation.hidden("machineType", name)
        elif isinstance(kind, Opaque):
            yield Violation.hidden(f"{path} type", kind)
        elif name and kind:
            yield from _judged(name, kind)


def _types(machine: Resource, context: Context) -> Iterator[tuple[str, str | Opaque | None]]:
    for disk in boot_disks(machine):
        yield disk.path, disk.type
    for found in attachments_on(machine, context):
        if found.boot and found.disk:
            yield "bootDisk.source", type_of(found.disk)


def _judged(machine: str, kind: str) -> Iterator[Violation]:
    verdict = boot_disk_verdict(machine, kind)
    if verdict.status is BootDiskStatus.REFUSED:
        yield Violation(message=verdict.reason)
    elif verdict.status is BootDiskStatus.UNKNOWN:
        yield Violation(message=f'boot disk "{kind}" on {machine}: {verdict.reason}', severity=Severity.WARNING)


RULE: Final = Rule(
    id="DISK-BOOT-TYPE",
    title="A machine boots from a disk type that its series takes",
    severity=Severity.ERROR,
    applies_to=DESCRIBED,
    remediation=(
        "Set spotrail:head.boot_disk_type, spotrail:hydration.boot_disk_type or boot_disk_type of the slice: "
        "pd-balanced for E2 and N2, hyperdisk-balanced for C4, N4 and TPU hosts."
    ),
    url="https://docs.cloud.google.com/compute/docs/disks/hyperdisks#machine-type-support",
    check=_check,
)
