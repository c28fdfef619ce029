"""Who attaches which disk, in which mode, on how many machines: one reading for every rule about disks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

from policies.resources import UNKNOWN, Opaque, Resource, ResourceError, ResourceSet, Value, cloud_name, dig
from policies.rules.machines import INSTANCE, NODE, TEMPLATES, boot_source, machines_of
from policies.rules.model import Context

DISK: Final = "gcp:compute/disk:Disk"
DISKS: Final = (DISK, "gcp:compute/regionDisk:RegionDisk")
ATTACHED_DISK: Final = "gcp:compute/attachedDisk:AttachedDisk"
USERS: Final = (NODE, INSTANCE, *TEMPLATES, ATTACHED_DISK)
READ_WRITE: Final = "READ_WRITE"
READ_ONLY: Final = "READ_ONLY"


@final
@dataclass(frozen=True, kw_only=True)
class Attachment:
    """One disk on one resource that may be many machines."""

    user: Resource
    """The TPU node, instance, instance template or `AttachedDisk` that attaches it."""
    disk: Resource | None
    """The disk, where it is of this stack and can be told."""
    source: str | Opaque | None
    """What the user wrote: a name, a link, or a value that is not known yet."""
    mode: str | Opaque
    """`READ_WRITE`, which is also what an omitted mode means, or `READ_ONLY`."""
    machines: int | Opaque
    """Machines that attach it through this user: the hosts of a slice, the size of the groups of a template."""
    boot: bool = False
    """Whether they boot from it."""

    @property
    def writes(self) -> bool:
        """Whether it is known to be attached for writing."""
        return isinstance(self.mode, str) and self.mode != READ_ONLY


@lru_cache(maxsize=1)
def attachments(context: Context) -> tuple[Attachment, ...]:
    """Every attachment of a stack, boot disks that are disks of their own included. Read once a judgement."""
    stack = _Stack(context.resources)
    return tuple(found for user in context.resources.of_type(*USERS) for found in _of(user, stack))


def attachments_of(disk: Resource, context: Context) -> tuple[Attachment, ...]:
    """Those of one disk of the stack."""
    return _by_disk(context).get(disk.urn, ())


def attachments_on(host: Resource, context: Context) -> tuple[Attachment, ...]:
    """Those on one node, instance or template; an `AttachedDisk` counts for the instance that it names."""
    return _by_host(context).get(host.urn, ())


@lru_cache(maxsize=1)
def _by_disk(context: Context) -> Mapping[str, tuple[Attachment, ...]]:
    return _grouped((found.disk, found) for found in attachments(context))


@lru_cache(maxsize=1)
def _by_host(context: Context) -> Mapping[str, tuple[Attachment, ...]]:
    return _grouped((_host_of(found, context), found) for found in attachments(context))


def _host_of(attachment: Attachment, context: Context) -> Resource | None:
    if attachment.user.type != ATTACHED_DISK:
        return attachment.user
    return next(iter(context.resources.references(attachment.user, "instance", INSTANCE)), None)


def _grouped(pairs: Iterable[tuple[Resource | None, Attachment]]) -> Mapping[str, tuple[Attachment, ...]]:
    groups: dict[str, tuple[Attachment, ...]] = {}
    for resource, attachment in pairs:
        if resource is not None:
            groups[resource.urn] = (*groups.get(resource.urn, ()), attachment)
    return groups


def readers(found: Sequence[Attachment]) -> int | Opaque:
    """Machines on the other side of some attachments; Opaque where one of them is not known."""
    total = 0
    for attachment in found:
        if isinstance(attachment.machines, Opaque):
            return attachment.machines
        total += attachment.machines
    return total


@final
class _Stack:
    """The resources with their disks by name."""

    def __init__(self, resources: ResourceSet) -> None:
        self.resources = resources
        self._disks: dict[str, list[Resource]] = {}
        for disk in resources.of_type(*DISKS):
            self._disks.setdefault(cloud_name(disk) or "", []).append(disk)

    def disk(self, source: str) -> Resource | None:
        """The disk that a name or a link means; a link that names a zone means the disk in that zone."""
        for disk in self._disks.get(source.rsplit("/", 1)[-1], ()):
            zone = disk.value("zone")
            elsewhere = isinstance(zone, str) and "/zones/" in source and f"/zones/{zone}/" not in source
            if not elsewhere:
                return disk
        return None


def _of(user: Resource, stack: _Stack) -> Iterator[Attachment]:
    if user.type == NODE:
        yield from _listed(user, stack, "dataDisks", "sourceDisk")
    elif user.type == INSTANCE:
        yield from _listed(user, stack, "attachedDisks", "source")
        source = boot_source(user)
        if source is not None:
            yield from _joined(user, stack, "bootDisk", [(source, READ_WRITE)], boot=True)
    elif user.type == ATTACHED_DISK:
        yield from _joined(user, stack, "disk", [(user.value("disk"), _mode(user.value("mode")))])
    else:
        yield from _listed(user, stack, "disks", "source")


def _listed(user: Resource, stack: _Stack, prop: str, field: str) -> Iterator[Attachment]:
    """The attachments of a list of disks; an entry without a source is a new disk and nobody else's."""
    entries = user.items(prop)
    if isinstance(entries, Opaque):
        yield from _joined(user, stack, prop, [(entries, entries)])
        return
    named = [(dig(entry, field), _mode(dig(entry, "mode"))) for entry in entries if dig(entry, field) is not None]
    yield from _joined(user, stack, prop, named)


def _joined(
    user: Resource, stack: _Stack, prop: str, named: Sequence[tuple[Value, str | Opaque]], *, boot: bool = False
) -> Iterator[Attachment]:
    """Give each source its disk: by name where it is known, else by what Pulumi recorded for the input.

    Where several sources are unknown nobody can tell which is which: a mode that they do not share is unknown too.
    """
    if not named:
        return
    machines = _machines_of(user, stack.resources)
    rest = list(stack.resources.references(user, prop, *DISKS))
    hidden = [mode for source, mode in named if isinstance(source, Opaque)]
    for source, mode in named:
        if not isinstance(source, str):
            continue
        disk = stack.disk(source)
        rest = [other for other in rest if other is not disk]
        yield Attachment(user=user, disk=disk, source=source, mode=mode, machines=machines, boot=boot)
    shared = hidden[0] if len(set(hidden)) == 1 else UNKNOWN
    for place in range(max(len(hidden), len(rest)) if hidden else 0):
        disk = rest[place] if place < len(rest) else None
        yield Attachment(user=user, disk=disk, source=UNKNOWN, mode=shared, machines=machines, boot=boot)


def _machines_of(user: Resource, resources: ResourceSet) -> int | Opaque:
    """How many machines attach; not known where the user itself is malformed, which is no fault of the disk."""
    try:
        return machines_of(user, resources)
    except ResourceError:
        return UNKNOWN


def _mode(value: Value) -> str | Opaque:
    if value is None:
        return READ_WRITE
    return value if isinstance(value, str | Opaque) else str(value)
