"""Disks and snapshots for those who declare what they want: made at once, with the refusals of Compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policies.audit.record import Part
from policies.hardware.disks import check_disk, default_throughput
from tests.google_cloud.compute_operations import IN_USE
from tests.google_cloud.disk_limits import check_throughput
from tests.google_cloud.errors import Refusal, not_found
from tests.google_cloud.lifecycle import Fields, Lifecycle, by_path, drop, placed, set_fields
from tests.google_cloud.shapes import HOST, Item, last, relative
from tests.google_cloud.world import World

_DEFAULT_TYPE: Final = "pd-standard"
_ML: Final = "hyperdisk-ml"


def insert(world: World, path: str, fields: Fields) -> Item:
    """A disk, empty or from a snapshot that is READY. Raises Refusal."""
    wanted = {"type": _DEFAULT_TYPE, **fields}
    if "sourceSnapshot" in wanted:
        _from_snapshot(world, wanted)
    wanted["type"] = last(wanted["type"])
    wanted.setdefault("sizeGb", "500")
    if wanted["type"] == _ML:
        wanted.setdefault("provisionedThroughput", str(default_throughput(int(wanted["sizeGb"]))))
    if wanted["type"].startswith("hyperdisk-"):
        wanted.setdefault("accessMode", "READ_WRITE_SINGLE")
    _fits(wanted)
    return world.add(Part.DISKS, **wanted, **placed(path), creationTimestamp=world.stamp())


def _from_snapshot(world: World, wanted: dict[str, str]) -> None:
    path = relative(wanted["sourceSnapshot"])
    snapshot = world.get(Part.SNAPSHOTS, path)
    if snapshot["status"] != "READY":
        raise Refusal(400, "resourceNotReady", f"The resource '{path}' is not ready")
    wanted.update(sourceSnapshot=HOST + path, sourceSnapshotId=snapshot["id"])
    least = int(snapshot["diskSizeGb"])
    if int(wanted.setdefault("sizeGb", str(least))) < least:
        message = f"Requested disk size cannot be smaller than the snapshot size ({least} GB)"
        raise Refusal(400, "invalid", f"Invalid value for field 'resource.sizeGb': '{wanted['sizeGb']}'. {message}")


def _fits(wanted: Mapping[str, str]) -> None:
    whole = {key: int(wanted[key]) for key in ("provisionedThroughput", "provisionedIops") if key in wanted}
    mistakes = check_disk(
        wanted["type"],
        int(wanted["sizeGb"]),
        whole.get("provisionedThroughput"),
        whole.get("provisionedIops"),
        wanted.get("accessMode"),
    )
    if mistakes:
        raise Refusal(400, "invalid", f"Invalid value for field 'resource': {mistakes[0]}")


def patch(world: World, disk: Item, fields: Fields) -> None:
    """Size, throughput, IOPS, access mode, labels. Raises Refusal, and then nothing is changed."""
    path = relative(disk["selfLink"])
    if unknown := set(fields) - {"sizeGb", "provisionedThroughput", "provisionedIops", "accessMode", "labels"}:
        raise Refusal(400, "invalid", f"Invalid value for field 'updateMask': '{','.join(sorted(unknown))}'.")
    if "sizeGb" in fields and int(fields["sizeGb"]) < int(disk["sizeGb"]):
        raise Refusal(400, "invalid", f"Invalid value for field 'sizeGb': '{fields['sizeGb']}'. A disk cannot shrink.")
    if "accessMode" in fields:
        _check_mode(disk, fields["accessMode"])
    grown = {**disk, **{key: fields[key] for key in ("sizeGb",) if key in fields}}
    if "provisionedThroughput" in fields:
        check_throughput(grown, int(fields["provisionedThroughput"]), world.now, world.throughput_changed.get(path))
        world.throughput_changed[path] = world.now
    set_fields(world, disk, fields)


def _check_mode(disk: Item, mode: str) -> None:
    if disk.get("users"):
        path = relative(disk["selfLink"])
        raise Refusal(
            400, IN_USE, f"The disk resource '{path}' is already being used by '{relative(disk['users'][0])}'"
        )
    if last(disk["type"]) == _ML and disk.get("accessMode") == "READ_ONLY_MANY" and mode != "READ_ONLY_MANY":
        raise Refusal(400, "invalid", f"Invalid value for field 'accessMode': '{mode}'. READ_ONLY_MANY is final.")


def delete(world: World, path: str, disk: Item, options: Mapping[str, str]) -> None:
    """Raises Refusal while it is attached."""
    if disk.get("users"):
        user = relative(disk["users"][0])
        raise Refusal(400, IN_USE, f"The disk resource '{path}' is already being used by '{user}'")
    world.throughput_changed.pop(path, None)
    del world.inventory[Part.DISKS][path]


def insert_snapshot(world: World, path: str, fields: Fields) -> Item:
    """A snapshot of a disk that is there; READY at once. Raises Refusal."""
    source = relative(fields["sourceDisk"])
    disk = world.inventory[Part.DISKS].get(source)
    if disk is None:
        raise not_found(source)
    taken = {
        **fields,
        "sourceDisk": disk["selfLink"],
        "sourceDiskId": disk["id"],
        "diskSizeGb": disk["sizeGb"],
        "storageBytes": str(int(disk["sizeGb"]) * 2**30),
    }
    return world.add(Part.SNAPSHOTS, **taken, **placed(path), creationTimestamp=world.stamp())


DISKS: Final = Lifecycle(find=by_path(Part.DISKS), insert=insert, patch=patch, delete=delete)
SNAPSHOTS: Final = Lifecycle(
    find=by_path(Part.SNAPSHOTS), insert=insert_snapshot, patch=set_fields, delete=drop(Part.SNAPSHOTS)
)
