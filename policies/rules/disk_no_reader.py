"""A model volume that nothing in the stack reads: it bills every MiB/s from its creation to its deletion."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.attachments import DISK, attachments, attachments_of
from policies.rules.bills import a_month, cost_of
from policies.rules.disks import is_model_volume
from policies.rules.model import Context, Rule, Severity, Violation


def _check(disk: Resource, context: Context) -> Iterator[Violation]:
    volume = is_model_volume(disk)
    if isinstance(volume, Opaque):
        yield Violation.hidden("type", volume)
    if volume is not True:
        return
    found = attachments_of(disk, context)
    if any(other.machines != 0 for other in found):
        return
    hidden = _unseen(context)
    if hidden:
        yield Violation(message=f"which disk {hidden} attaches is known after the apply", decided=False)
        return
    cost = cost_of(disk, context)
    why = "the groups that attach it have no machine" if found else "nothing in the stack attaches it"
    yield Violation(message=f"{why}, and it bills all the same: {a_month(cost)}", monthly=cost)


@lru_cache(maxsize=1)
def _unseen(context: Context) -> str:
    """The names of those that attach a disk which nobody can tell. Read once a judgement."""
    found = (other for other in attachments(context) if other.disk is None and isinstance(other.source, Opaque))
    return ", ".join(dict.fromkeys(other.user.name for other in found))


RULE: Final = Rule(
    id="DISK-NO-READER",
    title="Every Hyperdisk ML volume has a reader in the stack",
    severity=Severity.WARNING,
    applies_to=(DISK,),
    remediation=(
        "Set mount_model on a slice or spotrail:serving.hosts, or remove the volume: its snapshot is enough to make it "
        "again. Where another stack reads it, waive this finding."
    ),
    url="https://docs.cloud.google.com/compute/docs/disks/hd-types/hyperdisk-ml",
    check=_check,
    absence=True,
)
