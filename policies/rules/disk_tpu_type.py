"""What a TPU host can attach: Hyperdisk ML or Balanced, of its own zone, 32 disks at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.location import locate
from policies.hardware.disks import MAX_DISKS_PER_VM, disk_types
from policies.hardware.zones import is_zone
from policies.resources import Opaque, Resource
from policies.rules.attachments import READ_ONLY, Attachment, attachments_on
from policies.rules.disks import boot_disks, type_of
from policies.rules.machines import DESCRIBED, INSTANCE, NODE, groups_of, is_tpu
from policies.rules.model import Context, Rule, Severity, Violation

NEVER_READ_ONLY: Final = "hyperdisk-balanced"


def _check(host: Resource, context: Context) -> Iterator[Violation]:
    tpu = is_tpu(host, context.resources)
    if isinstance(tpu, Opaque):
        yield Violation.hidden("machineType", tpu)
    if tpu is not True:
        return
    found = attachments_on(host, context)
    for attachment in found:
        yield from _type(attachment)
        yield from _place(attachment, host, context)
    count = 1 + len([other for other in found if not other.boot]) + _new_disks(host)
    if count > MAX_DISKS_PER_VM:
        yield Violation(message=f"it has {count} disks, the boot disk among them; a TPU host takes {MAX_DISKS_PER_VM}")


def _type(attachment: Attachment) -> Iterator[Violation]:
    disk = attachment.disk
    if disk is None:
        if isinstance(attachment.source, Opaque):
            yield Violation.hidden("the source of an attached disk", attachment.source)
        return
    kind = type_of(disk)
    if isinstance(kind, Opaque):
        yield Violation.hidden(f"the type of {disk.name}", kind)
    elif kind not in _attachable():
        yield Violation(message=f"{disk.name} is {kind}; a v6e host attaches {' or '.join(_attachable())} only")
    elif kind == NEVER_READ_ONLY and attachment.mode == READ_ONLY:
        yield Violation(message=f"{disk.name} is {kind}, which nobody can attach READ_ONLY")


def _attachable() -> tuple[str, ...]:
    return tuple(name for name, found in disk_types().items() if found.tpu_attachable)


def _place(attachment: Attachment, host: Resource, context: Context) -> Iterator[Violation]:
    if attachment.disk is None:
        return
    resources = context.resources
    there = locate(attachment.disk, resources)
    for place in (locate(other, resources) for other in groups_of(host, resources) or (host,)):
        known = isinstance(there, str) and isinstance(place, str)
        if known and is_zone(str(there)) and is_zone(str(place)) and there != place:
            yield Violation(message=f"{attachment.disk.name} is in {there} and the host in {place}; a disk is zonal")


def _new_disks(host: Resource) -> int:
    """Data disks that a template describes without naming a disk of their own; the boot disk is counted elsewhere."""
    if host.type in (NODE, INSTANCE):
        return 0
    entries = host.items("disks")
    described = 0 if isinstance(entries, Opaque) else len(entries)
    return max(0, described - len(tuple(boot_disks(host))))


RULE: Final = Rule(
    id="DISK-TPU-TYPE",
    title="A TPU host attaches Hyperdisk ML or Balanced of its own zone, 32 disks at most",
    severity=Severity.ERROR,
    applies_to=(NODE, *DESCRIBED),
    remediation=(
        "Set the type of the disk to hyperdisk-ml (shared, read-only) or hyperdisk-balanced (one writer), and its zone "
        "to that of the slice: spotrail:slices.<name>.zone, spotrail:serving.zones."
    ),
    url="https://docs.cloud.google.com/tpu/docs/attach-durable-block-storage",
    check=_check,
)
