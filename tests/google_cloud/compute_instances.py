"""Compute: changes of instances and of the groups that make them."""

from __future__ import annotations

from policies.audit.record import Part
from tests.google_cloud.compute_operations import Effect
from tests.google_cloud.errors import Refusal
from tests.google_cloud.http_server import Request
from tests.google_cloud.operations import nothing
from tests.google_cloud.shapes import Item, last, relative, scope
from tests.google_cloud.world import World


def detach(world: World, request: Request, instance: Item) -> Effect:
    """By the device name; the boot disk only of one that is off."""
    device = request.query.get("deviceName", "")
    attached = [disk for disk in instance.get("disks", ()) if disk["deviceName"] == device]
    if not attached:
        raise Refusal(400, "invalid", f"Invalid value for field 'disk': '{device}'. No such attached disk.")
    if attached[0]["boot"] and instance["status"] == "RUNNING":
        raise Refusal(400, "invalidUsage", "Invalid resource usage: 'The boot disk of a running instance stays'.")
    return Effect(lambda: release(world, instance, attached))


def release(world: World, instance: Item, disks: list[Item]) -> None:
    """End the attachment of some disks to an instance."""
    instance["disks"] = [disk for disk in instance["disks"] if disk not in disks]
    for attached in disks:
        disk = world.inventory[Part.DISKS].get(relative(attached["source"]))
        if disk is not None:
            users = [user for user in disk.get("users", ()) if user != instance["selfLink"]]
            disk.update(users=users, lastDetachTimestamp=world.stamp())
            if not users:
                del disk["users"]


def stop(world: World, request: Request, instance: Item) -> Effect:
    """Nothing happens to one that is off."""
    if instance["status"] != "RUNNING":
        return Effect(nothing)
    instance["status"] = "STOPPING"
    return Effect(
        lambda: instance.update(status="TERMINATED", lastStopTimestamp=world.stamp()),
        lambda: instance.update(status="RUNNING"),
    )


def delete_instance(world: World, request: Request, instance: Item) -> Effect:
    """Refused where it is protected."""
    if instance.get("deletionProtection"):
        message = (
            f"Invalid resource usage: 'The resource '{relative(instance['selfLink'])}' is protected from deletion.'"
        )
        raise Refusal(400, "invalidUsage", message)
    before = instance["status"]
    instance["status"] = "STOPPING"
    return Effect(lambda: remove(world, instance), lambda: instance.update(status=before))


def remove(world: World, instance: Item) -> None:
    """An instance goes, and with it the disks that it takes along."""
    attached = list(instance.get("disks", ()))
    if attached:
        release(world, instance, attached)
    for disk in attached:
        if disk["autoDelete"]:
            world.inventory[Part.DISKS].pop(relative(disk["source"]), None)
    world.inventory[Part.INSTANCES].pop(relative(instance["selfLink"]), None)


def resize(world: World, request: Request, group: Item) -> Effect:
    """The target at once; instances that are too many go at the end. New ones are not made here."""
    size = int(request.query["size"])
    before = group["targetSize"]
    if size > before:
        raise Refusal(501, "notImplemented", "the loopback makes no instances")
    group["targetSize"] = size
    return Effect(lambda: _shrink(world, group, size), lambda: group.update(targetSize=before))


def _shrink(world: World, group: Item, size: int) -> None:
    for instance in members(world, group)[size:]:
        remove(world, instance)


def members(world: World, group: Item) -> list[Item]:
    """The instances whose metadata say that the group has made them, by its path with the project's number."""
    ending = f"/{scope(group)}/instanceGroupManagers/{last(group['selfLink'])}"
    return [item for item in world.items(Part.INSTANCES) if _creator(item).endswith(ending)]


def _creator(instance: Item) -> str:
    entries = instance.get("metadata", {}).get("items", ())
    return next((str(entry["value"]) for entry in entries if entry["key"] == "created-by"), "")
