"""Access modes: the provider's documentation names one that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.hardware.disks import check_disk
from policies.resources import Opaque, Resource
from policies.rules.attachments import DISKS
from policies.rules.disks import type_of
from policies.rules.model import Context, Rule, Severity, Violation

HYPERDISK: Final = "hyperdisk-"


def _check(disk: Resource, context: Context) -> Iterator[Violation]:
    kind, mode, shared = type_of(disk), disk.text("accessMode"), disk.flag("multiWriter")
    for path, value in (("type", kind), ("accessMode", mode), ("multiWriter", shared)):
        if isinstance(value, Opaque):
            yield Violation.hidden(path, value)
    if isinstance(kind, Opaque):
        return
    if isinstance(mode, str):
        yield from (Violation(message=fault) for fault in check_disk(kind, access_mode=mode))
    if shared is True and kind.startswith(HYPERDISK):
        yield Violation(message=f"multiWriter is true; {kind} takes an accessMode instead")


RULE: Final = Rule(
    id="DISK-ACCESS-MODE",
    title="The access mode of a disk exists and its type takes it",
    severity=Severity.ERROR,
    applies_to=DISKS,
    remediation="Set accessMode to READ_ONLY_MANY for a shared model volume, else to READ_WRITE_SINGLE.",
    url="https://docs.cloud.google.com/compute/docs/disks/sharing-disks-between-vms",
    check=_check,
)
