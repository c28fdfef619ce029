"""A disk on several machines of which one writes: the second attach fails, after the first machine bills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.attachments import DISKS, READ_ONLY, USERS, Attachment, attachments, attachments_of, readers
from policies.rules.disks import type_of
from policies.rules.machines import NODE
from policies.rules.model import Context, Rule, Severity, Violation

READ_ONLY_MANY: Final = "READ_ONLY_MANY"
READ_WRITE_MANY: Final = "READ_WRITE_MANY"
READ_WRITE_SINGLE: Final = "READ_WRITE_SINGLE"
HYPERDISK: Final = "hyperdisk-"


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    return _of_stack(resource, context) if resource.type in DISKS else _of_elsewhere(resource, context)


def _of_stack(disk: Resource, context: Context) -> Iterator[Violation]:
    found = attachments_of(disk, context)
    kind, mode = type_of(disk), disk.text("accessMode")
    yield from _hidden(found)
    if found and isinstance(mode, Opaque):
        yield Violation.hidden("accessMode", mode)
    elif found and isinstance(kind, Opaque):
        yield Violation.hidden("type", kind)
    elif found and isinstance(kind, str) and not isinstance(mode, Opaque):
        yield from _judged(found, kind, mode)


def _of_elsewhere(user: Resource, context: Context) -> Iterator[Violation]:
    """Disks that this stack attaches and does not declare: only what holds for every type can be said."""
    for source, found in _foreign(context).get(user.urn, {}).items():
        many = readers(found)
        writers = [other for other in found if other.writes]
        if writers and isinstance(many, int) and many > 1:
            yield Violation(message=f'disk "{source}" goes to {many} machines and {_who(writers)} writes to it')


@lru_cache(maxsize=1)
def _foreign(context: Context) -> Mapping[str, Mapping[str, Sequence[Attachment]]]:
    """The attachments of each such disk, under the URN of the first that attaches it: there they are told once."""
    groups: dict[str, list[Attachment]] = {}
    for found in attachments(context):
        if found.disk is None and isinstance(found.source, str):
            groups.setdefault(found.source, []).append(found)
    told: dict[str, dict[str, Sequence[Attachment]]] = {}
    for source, group in groups.items():
        told.setdefault(group[0].user.urn, {})[source] = group
    return told


def _hidden(found: Sequence[Attachment]) -> Iterator[Violation]:
    for attachment in found:
        if isinstance(attachment.machines, Opaque):
            yield Violation.hidden(f"the number of machines of {attachment.user.name}", attachment.machines)
        if isinstance(attachment.mode, Opaque):
            yield Violation.hidden(f"the mode in which {attachment.user.name} attaches it", attachment.mode)


def _judged(found: Sequence[Attachment], kind: str, mode: str | None) -> Iterator[Violation]:
    writers = [other for other in found if other.writes]
    known = [other for other in found if isinstance(other.machines, int)]
    many = readers(known)
    total = many if isinstance(many, int) else 0
    # Hyperdisk starts as READ_WRITE_SINGLE; Persistent Disk has no such setting and takes what is attached.
    single = mode == READ_WRITE_SINGLE or (mode is None and kind.startswith(HYPERDISK))
    said = f"accessMode is {mode}" if mode else f"accessMode is not set, which means {READ_WRITE_SINGLE},"
    if mode == READ_ONLY_MANY and writers:
        yield Violation(message=f"{said} and {_who(writers)} attaches it READ_WRITE, as an omitted mode does")
    elif single and total > 1:
        yield Violation(message=f"{said} and it goes to {total} machines: {_who(known)}")
    elif writers and total > 1 and mode != READ_WRITE_MANY:
        yield Violation(message=f"it goes to {total} machines and {_who(writers)} attaches it READ_WRITE")
    elif single and any(other.user.type == NODE and other.mode == READ_ONLY for other in found):
        yield Violation(message=f"{said} and a TPU attaches it READ_ONLY, which needs {READ_ONLY_MANY}")


def _who(found: Sequence[Attachment]) -> str:
    names = list(dict.fromkeys(other.user.name for other in found))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


RULE: Final = Rule(
    id="DISK-SHARED-WRITE",
    title="A disk on several machines is read-only everywhere",
    severity=Severity.ERROR,
    applies_to=(*DISKS, *USERS),
    remediation=(
        "Set accessMode READ_ONLY_MANY on the disk and mode READ_ONLY in every dataDisks, attachedDisks and disks "
        "entry; fill it before, from a snapshot. An omitted mode means READ_WRITE."
    ),
    url="https://docs.cloud.google.com/compute/docs/disks/sharing-disks-between-vms",
    check=_check,
)
