"""Compute: which changes there are, and where."""

from __future__ import annotations

from policies.audit.record import Part
from tests.google_cloud.compute_disks import create_snapshot, delete_disk, deleter, insert_snapshot, update
from tests.google_cloud.compute_instances import delete_instance, detach, resize, stop
from tests.google_cloud.compute_lists import PROJECT
from tests.google_cloud.compute_operations import IN_USE, Begin, Effect, change
from tests.google_cloud.errors import Refusal
from tests.google_cloud.http_server import Request, Route, route
from tests.google_cloud.shapes import Item, relative
from tests.google_cloud.world import World


def routes() -> tuple[Route, ...]:
    """All of them."""
    zonal, regional, world_wide = (f"{PROJECT}/{place}" for place in ("zones/{zone}", "regions/{region}", "global"))
    disk, instance, group = "disks/{name}", f"{zonal}/instances/{{name}}", "instanceGroupManagers/{name}"
    found: list[Route] = []

    def add(method: str, verb: str, path: str, part: Part, begin: Begin) -> None:
        found.append(route(f"compute.{method}", verb, path, change(method.rpartition(".")[2], part, begin)))

    for base in (zonal, regional):
        add("disks.update", "PATCH", f"{base}/{disk}", Part.DISKS, update)
        add("disks.delete", "DELETE", f"{base}/{disk}", Part.DISKS, delete_disk)
        add("disks.createSnapshot", "POST", f"{base}/{disk}/createSnapshot", Part.DISKS, create_snapshot)
        add("instanceGroupManagers.resize", "POST", f"{base}/{group}/resize", Part.GROUPS, resize)
    add("instances.detachDisk", "POST", f"{instance}/detachDisk", Part.INSTANCES, detach)
    add("instances.stop", "POST", f"{instance}/stop", Part.INSTANCES, stop)
    add("instances.delete", "DELETE", instance, Part.INSTANCES, delete_instance)
    for base in (regional, world_wide):
        add("addresses.delete", "DELETE", f"{base}/addresses/{{name}}", Part.ADDRESSES, _delete_address)
    add("images.delete", "DELETE", f"{world_wide}/images/{{name}}", Part.IMAGES, deleter(Part.IMAGES))
    add("snapshots.delete", "DELETE", f"{world_wide}/snapshots/{{name}}", Part.SNAPSHOTS, deleter(Part.SNAPSHOTS))
    found.append(route("compute.snapshots.insert", "POST", f"{world_wide}/snapshots", insert_snapshot))
    return tuple(found)


def _delete_address(world: World, request: Request, address: Item) -> Effect:
    if address.get("users"):
        path, user = relative(address["selfLink"]), relative(address["users"][0])
        raise Refusal(400, IN_USE, f"The address resource '{path}' is already being used by '{user}'")
    return Effect(lambda: _gone(world, address))


def _gone(world: World, address: Item) -> None:
    world.inventory[Part.ADDRESSES].pop(relative(address["selfLink"]), None)
