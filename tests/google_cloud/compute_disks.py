"""Compute: changes of disks and their snapshots."""

from __future__ import annotations

from policies.audit.record import Part
from tests.google_cloud.compute_lists import of_project
from tests.google_cloud.compute_operations import IN_USE, Begin, Effect, asked_before, begun, not_ready, ready, told
from tests.google_cloud.disk_limits import check_throughput
from tests.google_cloud.errors import Refusal
from tests.google_cloud.http_server import Answer, Request
from tests.google_cloud.shapes import Item, relative
from tests.google_cloud.world import World


def update(world: World, request: Request, disk: Item) -> Effect:
    """Only the fields that the mask names, and only throughput and IOPS."""
    ready(disk)
    names = {name for key in ("paths", "updateMask") for text in request.lists.get(key, ()) for name in text.split(",")}
    unknown = names - {"provisionedThroughput", "provisionedIops"}
    if unknown or not names:
        raise Refusal(400, "invalid", f"Invalid value for field 'updateMask': '{','.join(sorted(unknown))}'.")
    wanted = {name: str(request.body[name]) for name in sorted(names) if name in request.body}
    path = relative(disk["selfLink"])
    if "provisionedThroughput" in wanted:
        check_throughput(disk, int(wanted["provisionedThroughput"]), world.now, world.throughput_changed.get(path))

    def finish() -> None:
        disk.update(wanted)
        if "provisionedThroughput" in wanted:
            world.throughput_changed[path] = world.now

    return Effect(finish)


def delete_disk(world: World, request: Request, disk: Item) -> Effect:
    """Refused while it is attached, and while a snapshot of it is being taken."""
    path = relative(disk["selfLink"])
    if disk.get("users"):
        user = relative(disk["users"][0])
        raise Refusal(400, IN_USE, f"The disk resource '{path}' is already being used by '{user}'")
    for snapshot in world.items(Part.SNAPSHOTS):
        if snapshot["status"] == "CREATING" and relative(snapshot["sourceDisk"]) == path:
            raise not_ready(disk)
    return deleter(Part.DISKS)(world, request, disk)


def deleter(part: Part) -> Begin:
    """DELETING at once where the resource has a status, gone at the end."""

    def begin(world: World, request: Request, item: Item) -> Effect:
        ready(item)
        before = item.get("status")
        if before is not None:
            item["status"] = "DELETING"

        def finish() -> None:
            world.inventory[part].pop(relative(item["selfLink"]), None)

        def undo() -> None:
            if before is not None:
                item["status"] = before

        return Effect(finish, undo)

    return begin


def create_snapshot(world: World, request: Request, disk: Item) -> Effect:
    """CREATING at once, READY at the end; as large as its disk, which is the most that it can be."""
    ready(disk)
    name = request.body.get("name", "")
    path = f"projects/{world.project}/global/snapshots/{name}"
    if path in world.inventory[Part.SNAPSHOTS]:
        raise Refusal(409, "alreadyExists", f"The resource '{path}' already exists")
    kept = {
        key: request.body[key] for key in ("name", "labels", "description", "storageLocations") if key in request.body
    }
    snapshot = world.add(
        Part.SNAPSHOTS,
        **kept,
        status="CREATING",
        sourceDisk=disk["selfLink"],
        sourceDiskId=disk["id"],
        diskSizeGb=disk["sizeGb"],
        creationTimestamp=world.stamp(),
    )

    def finish() -> None:
        snapshot.update(status="READY", storageBytes=str(int(disk["sizeGb"]) * 2**30))

    def undo() -> None:
        world.inventory[Part.SNAPSHOTS].pop(path, None)

    return Effect(finish, undo)


def insert_snapshot(world: World, request: Request) -> Answer:
    """The other way to a snapshot, which names its disk."""
    of_project(world, request)
    path = f"projects/{world.project}/global/snapshots/{request.body.get('name', '')}"
    if (earlier := asked_before(world, request, "createSnapshot", path)) is not None:
        return told(world, earlier)
    source = request.body.get("sourceDisk", "")
    if "projects/" not in source:
        raise Refusal(400, "invalid", f"Invalid value for field 'resource.sourceDisk': '{source}'.")
    effect = create_snapshot(world, request, world.get(Part.DISKS, relative(source)))
    return begun(world, request, "createSnapshot", world.get(Part.SNAPSHOTS, path), effect)
