"""Disks that a plan makes smaller: Google cannot, so the provider deletes the disk and makes an empty one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.changes import Op
from policies.resources import Opaque, Resource
from policies.rules.attachments import DISKS
from policies.rules.model import Context, Rule, Severity, Violation


def _check(disk: Resource, context: Context) -> Iterator[Violation]:
    step = context.step_of[disk.urn]
    if step.before is None or step.after is None or step.op not in (Op.UPDATE, Op.REPLACE):
        return
    old, new = step.before.integer("size"), step.after.integer("size")
    if isinstance(new, Opaque) or isinstance(old, Opaque):
        # A size that is read off a snapshot is unknown in every preview: only one that differs is in doubt.
        if "size" in step.changed or "size" in step.replace_reasons:
            yield Violation.hidden("size", new if isinstance(new, Opaque) else Opaque.SECRET)
    elif old is not None and new is not None and new < old:
        message = f"size falls from {old:,} to {new:,} GiB: the disk is deleted and made anew, without its data"
        yield Violation(message=message)


RULE: Final = Rule(
    id="DISK-SHRUNK",
    title="A plan makes no disk smaller",
    severity=Severity.ERROR,
    applies_to=DISKS,
    remediation="Keep the size; a smaller disk is a new one under a new name, to which the data is copied.",
    url="https://docs.cloud.google.com/compute/docs/disks/resize-persistent-disk",
    check=_check,
    gate=True,
)
