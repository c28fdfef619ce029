"""What a disk is: type, size, throughput, and the boot disks that machines describe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from policies.estimate.disk_sizes import inherited_gib
from policies.estimate.location import last_segment
from policies.hardware.disks import DEFAULT_DISK_TYPE, default_throughput
from policies.resources import Opaque, Resource, ResourceSet, Value, dig
from policies.rules.machines import INSTANCE, boot_source

HYPERDISK_ML: Final = "hyperdisk-ml"
THROUGHPUT_ITEM: Final = "disk.hyperdisk-ml.throughput"
SSD_TYPES: Final = ("pd-ssd", "pd-extreme", "hyperdisk-extreme")


@final
@dataclass(frozen=True, kw_only=True)
class BootDisk:
    """The boot disk that an instance or a template describes."""

    path: str
    """Where it is described: `bootDisk.initializeParams`, `disks[0]`."""
    type: str | Opaque | None
    """Its type; None where it is left to Google."""
    gib: int | Opaque | None
    """Its size; None where it is left to the image."""


def type_of(disk: Resource) -> str | Opaque:
    """The type of a disk; the provider's default where none is set."""
    found = disk.text("type")
    return found if isinstance(found, Opaque) else last_segment(found) if found else DEFAULT_DISK_TYPE


def size_of(disk: Resource, resources: ResourceSet) -> int | Opaque | None:
    """Its size in GiB, as set or as the estimate reads it off its source; None where nothing says it."""
    found = disk.integer("size")
    inherited = None if found is not None else inherited_gib(disk, resources)[0]
    return inherited if isinstance(inherited, int) else found


def throughput_of(volume: Resource, resources: ResourceSet) -> int | Opaque | None:
    """MiB/s of a Hyperdisk ML volume: as set, else what Google provisions; None where the size is not known."""
    found, size = volume.integer("provisionedThroughput"), size_of(volume, resources)
    return default_throughput(size) if found is None and isinstance(size, int) else found


def is_model_volume(disk: Resource) -> bool | Opaque:
    """Whether it is a Hyperdisk ML volume, the one type whose every MiB/s bills."""
    found = type_of(disk)
    return found if isinstance(found, Opaque) else found == HYPERDISK_ML


def boot_disks(machine: Resource) -> Iterator[BootDisk]:
    """The boot disk of an instance or template, unless it is a disk of its own."""
    if machine.type == INSTANCE:
        if boot_source(machine) is None:
            yield _boot_disk(machine, "bootDisk.initializeParams", ("bootDisk", "initializeParams"), "type", "size")
        return
    entries = machine.items("disks")
    if isinstance(entries, Opaque):
        yield BootDisk(path="disks", type=entries, gib=entries)
        return
    for place, entry in enumerate(entries):
        boots = dig(entry, "boot")
        if (boots is True or (boots is None and place == 0)) and dig(entry, "source") is None:
            yield _boot_disk(machine, f"disks[{place}]", ("disks", place), "diskType", "diskSizeGb")


def _boot_disk(machine: Resource, shown: str, path: tuple[str | int, ...], type_key: str, size_key: str) -> BootDisk:
    found: Value = machine.text(*path, type_key)
    return BootDisk(
        path=shown,
        type=last_segment(found) if isinstance(found, str) else found if isinstance(found, Opaque) else None,
        gib=machine.integer(*path, size_key),
    )
