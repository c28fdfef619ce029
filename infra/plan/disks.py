"""Who may attach what: the one shape in which many TPU hosts read one model volume, and why others are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from policies.hardware.disks import (
    MAX_DISKS_PER_VM,
    check_disk,
    disk_type,
    floor_throughput,
)

MODEL_VOLUME_TYPE: Final = "hyperdisk-ml"
ACCESS_MODE: Final = "READ_ONLY_MANY"
"""Access mode of every model volume."""
READ_ONLY: Final = "READ_ONLY"
"""Attach mode of every reader."""
READ_WRITE: Final = "READ_WRITE"
"""What the provider takes where no mode is said."""


@final
@dataclass(frozen=True, kw_only=True)
class DataDisk:
    """A disk that hosts attach."""

    name: str
    type: str
    gib: int
    throughput: int | None
    """Provisioned MiB/s."""
    access_mode: str | None
    """None: never set, which is READ_WRITE_SINGLE."""
    zone: str


@final
@dataclass(frozen=True, kw_only=True)
class Attachment:
    """A slice that attaches a disk, on each of its hosts."""

    name: str
    """Of the slice."""
    hosts: int
    zone: str
    mode: str | None = None
    """READ_ONLY or READ_WRITE; None: not said, which is READ_WRITE."""
    disks_per_host: int = 2
    """All disks of each host, the boot disk and this one among them."""

    @property
    def writes(self) -> bool:
        """Whether the disk is writable on its hosts."""
        return self.mode != READ_ONLY


def attach_mistakes(disk: DataDisk, attachments: Sequence[Attachment]) -> tuple[str, ...]:
    """Every reason why `attachments` cannot all have `disk`; empty when they can."""
    return (*_disk_mistakes(disk), *_sharing_mistakes(disk, attachments), *_host_mistakes(disk, attachments))


def readers_of(attachments: Sequence[Attachment]) -> int:
    """Hosts that attach the disk."""
    return sum(attachment.hosts for attachment in attachments)


def _disk_mistakes(disk: DataDisk) -> Iterator[str]:
    yield from check_disk(disk.type, disk.gib, disk.throughput, access_mode=disk.access_mode)
    if not disk_type(disk.type).tpu_attachable:
        yield f"{disk.type}: a v6e host takes hyperdisk-balanced and hyperdisk-ml only"


def _sharing_mistakes(disk: DataDisk, attachments: Sequence[Attachment]) -> Iterator[str]:
    readers = readers_of(attachments)
    writers = [attachment for attachment in attachments if attachment.writes]
    if writers and readers > 1:
        names = ", ".join(dict.fromkeys(attachment.name for attachment in writers))
        yield (
            f"{names}: attaches {disk.name} {READ_WRITE} (also what an omitted mode is) and {readers} hosts have it; "
            f"a disk with more than one host is {READ_ONLY} on all of them"
        )
    if readers > 1 and disk.access_mode != ACCESS_MODE:
        shown = disk.access_mode or "READ_WRITE_SINGLE (the default)"
        yield f"{disk.name}: access mode {shown} lets one host attach it, and {readers} do; it must be {ACCESS_MODE}"
    known = disk_type(disk.type)
    if not known.read_only_many and any(not attachment.writes for attachment in attachments):
        yield f"{disk.name}: {disk.type} cannot be attached {READ_ONLY}; a volume for readers is {MODEL_VOLUME_TYPE}"
    if known.max_readers is not None and readers > known.max_readers:
        yield f"{disk.name}: {readers:,} hosts; {disk.type} takes {known.max_readers:,}"
    floor = floor_throughput(disk.gib, readers)
    if disk.type == MODEL_VOLUME_TYPE and disk.throughput is not None and disk.throughput < floor:
        yield (
            f"{disk.name}: {disk.throughput:,} MiB/s is too little for {readers:,} readers of {disk.gib:,} GiB; "
            f"at least {floor:,}: 20 MiB/s each from the 21st reader on"
        )


def _host_mistakes(disk: DataDisk, attachments: Sequence[Attachment]) -> Iterator[str]:
    for attachment in attachments:
        if attachment.hosts > 1 and attachment.writes:
            yield f"{attachment.name}: a slice of {attachment.hosts} hosts takes data disks {READ_ONLY} only"
        if attachment.disks_per_host > MAX_DISKS_PER_VM:
            yield f"{attachment.name}: {attachment.disks_per_host} disks a host; at most {MAX_DISKS_PER_VM} with boot"
        if attachment.zone != disk.zone:
            yield f"{attachment.name}: is in {attachment.zone}, {disk.name} in {disk.zone}; a disk stays in its zone"
