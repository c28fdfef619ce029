"""How large a disk is that does not say so: as large as what it is made from, else the default of its type."""

from __future__ import annotations

from typing import Final

from policies.estimate.location import last_segment, segment_after
from policies.estimate.market import unknown
from policies.estimate.model import UnknownInput
from policies.hardware.disks import DEFAULT_DISK_TYPE, disk_types
from policies.resources import Opaque, Resource, ResourceSet

DISK_TYPES: Final = ("gcp:compute/disk:Disk", "gcp:compute/regionDisk:RegionDisk")
SNAPSHOT: Final = "gcp:compute/snapshot:Snapshot"
SIZE_LABEL: Final = "spotrail-size-gib"
"""Label of a snapshot whose source disk is not in the stack: how large that disk was."""
_SOURCES: Final = ("snapshot", "sourceDisk", "image", "sourceInstantSnapshot", "sourceStorageObject")


def inherited_gib(disk: Resource, resources: ResourceSet) -> tuple[int | UnknownInput, str]:
    """The GiB of a disk that sets no size, and a note about where they come from."""
    source = _source(disk)
    if source == "snapshot":
        found = resources.references(disk, "snapshot", SNAPSHOT)
        size = snapshot_gib(found[0], resources) if found else None
        if isinstance(size, int):
            return size, "size not set: that of the snapshot"
    if source == "sourceDisk":
        size = source_disk_gib(disk, resources)
        if isinstance(size, int):
            return size, "size not set: that of the source disk"
    if source is not None:
        return UnknownInput(path="size", reason=f"not set: the size of its {source} decides, which is not known"), ""
    default = _default_gib(disk)
    if default is None:
        return UnknownInput(path="size", reason="not set, and the default of its type is not known"), ""
    return default, f"size not set: Google makes {default:,} GiB"


def source_disk_gib(resource: Resource, resources: ResourceSet) -> int | UnknownInput | None:
    """The size of the disk that the input `sourceDisk` names; None where that disk is not in the stack."""
    found = _in_zone(resource, resources.references(resource, "sourceDisk", *DISK_TYPES))
    if not found:
        return None
    size = found[0].integer("size")
    if isinstance(size, Opaque):
        return unknown(size, "sourceDisk", "size", decides="how much is held")
    return blank_gib(found[0]) if size is None else size


def blank_gib(disk: Resource) -> int | None:
    """The size that Google gives a blank disk of that type; None where it is made from something, or not known."""
    default = _default_gib(disk)
    return None if _source(disk) else default


def _default_gib(disk: Resource) -> int | None:
    name = disk.text("type")
    known = disk_types().get(last_segment(name) if isinstance(name, str) and name else DEFAULT_DISK_TYPE)
    return None if known is None else known.default_gib


def snapshot_gib(snapshot: Resource, resources: ResourceSet) -> int | UnknownInput | None:
    """The size of the disk that a snapshot was taken of: from the stack, from its label, from the provider's answer."""
    size = source_disk_gib(snapshot, resources)
    if size is None:
        size = _number(snapshot, "labels", SIZE_LABEL)
    return _number(snapshot, "diskSizeGb") if size is None else size


def _in_zone(resource: Resource, disks: tuple[Resource, ...]) -> tuple[Resource, ...]:
    """Of disks with one name in several zones, the one that is meant; all of them where no zone is named."""
    source, zone = resource.text("sourceDisk"), resource.text("zone")
    named = segment_after(source, "zones") if isinstance(source, str) else None
    meant = named or zone
    if len(disks) < 2 or not isinstance(meant, str):
        return disks
    return tuple(disk for disk in disks if isinstance(at := disk.text("zone"), str) and last_segment(at) == meant)


def _source(disk: Resource) -> str | None:
    return next((key for key in _SOURCES if disk.value(key)), None)


def _number(resource: Resource, *path: str) -> int | UnknownInput | None:
    found = resource.integer(*path)
    return unknown(found, *path, decides="how much is held") if isinstance(found, Opaque) else found
