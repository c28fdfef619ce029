"""Read-only volumes that a plan makes writable: a Hyperdisk ML volume never goes that way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.changes import Op
from policies.resources import Opaque, Resource
from policies.rules.attachments import DISKS, READ_ONLY, READ_WRITE
from policies.rules.model import Context, Rule, Severity, Violation

FIELD: Final = "accessMode"


def _check(disk: Resource, context: Context) -> Iterator[Violation]:
    step = context.step_of[disk.urn]
    if step.before is None or step.after is None or step.op not in (Op.UPDATE, Op.REPLACE):
        return
    old, new = step.before.text(FIELD), step.after.text(FIELD)
    if isinstance(old, Opaque) or not (old and old.startswith(READ_ONLY)):
        return
    if isinstance(new, Opaque):
        yield Violation.hidden(FIELD, new)
    elif new and new.startswith(READ_WRITE):
        message = f"{FIELD} goes from {old} to {new}: Google refuses it, and no reader's data would be safe"
        yield Violation(message=message)


RULE: Final = Rule(
    id="DISK-ACCESS-MODE-CHANGED",
    title="A plan makes no read-only disk writable",
    severity=Severity.ERROR,
    applies_to=DISKS,
    remediation="Leave the volume READ_ONLY_MANY; write the next version to a disk of its own and switch the readers.",
    url="https://docs.cloud.google.com/compute/docs/disks/sharing-disks-between-vms",
    check=_check,
    gate=True,
)
