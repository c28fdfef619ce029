"""Disks and addresses of machines: which may be attached to which, and what is noted of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from policies.audit.record import Part
from tests.google_cloud.compute_operations import IN_USE
from tests.google_cloud.errors import Refusal, not_found
from tests.google_cloud.shapes import Item, relative
from tests.google_cloud.world import World


def attach(world: World, user: str, path: str, mode: str) -> Item:
    """Note `user`, a link, as a user of the disk at `path`. Raises Refusal."""
    disk = world.inventory[Part.DISKS].get(path)
    if disk is None:
        raise not_found(path)
    users = list(disk.get("users", ()))
    if mode == "READ_WRITE" and disk.get("accessMode") == "READ_ONLY_MANY":
        raise Refusal(400, "invalidUsage", f"The disk resource '{path}' is READ_ONLY_MANY and cannot be written to.")
    if users and not _shared(world, path, mode):
        raise Refusal(400, IN_USE, f"The disk resource '{path}' is already being used by '{relative(users[0])}'")
    if user not in users:
        disk["users"] = [*users, user]
        disk["lastAttachTimestamp"] = world.stamp()
    return disk


def _shared(world: World, path: str, mode: str) -> bool:
    """Whether one more may attach a disk that has users: all of them only read."""
    if world.inventory[Part.DISKS][path].get("accessMode") == "READ_WRITE_MANY":
        return True
    attached = [
        *(each for machine in world.items(Part.INSTANCES) for each in machine.get("disks", ())),
        *(
            {**each, "source": each["sourceDisk"]}
            for node in world.items(Part.NODES)
            for each in node.get("dataDisks", ())
        ),
    ]
    modes = [each["mode"] for each in attached if relative(each["source"]) == path]
    return mode == "READ_ONLY" and "READ_WRITE" not in modes


def let_go(world: World, user: str) -> None:
    """`user` uses no disk and no address any more."""
    for part in (Part.DISKS, Part.ADDRESSES):
        for item in world.items(part):
            if user in item.get("users", ()):
                _without(item, user)
                item.update({"lastDetachTimestamp": world.stamp()} if part is Part.DISKS else {"status": "RESERVED"})


def _without(item: Item, user: str) -> None:
    item["users"] = [each for each in item["users"] if each != user]
    if not item["users"]:
        del item["users"]


def use_addresses(world: World, user: str, interfaces: Iterable[dict[str, Any]]) -> None:
    """Reserved addresses that the interfaces name are in use; an interface without an address gets one."""
    reserved = {item["address"]: item for item in world.items(Part.ADDRESSES)}
    taken = set(reserved) | {each.get("networkIP", "") for vm in world.items(Part.INSTANCES) for each in _of(vm)}
    for interface in interfaces:
        named = [
            interface.get("networkIP", ""),
            *(each.get("natIP", "") for each in interface.get("accessConfigs", ())),
        ]
        for address in filter(None, (reserved.get(text) for text in named)):
            if address.get("users", [user]) != [user]:
                raise Refusal(400, IN_USE, f"IP address '{address['address']}' is already being used.")
            address.update(users=[user], status="IN_USE")
        interface.setdefault("networkIP", next(text for text in _free() if text not in taken))
        taken.add(interface["networkIP"])


def _of(machine: Item) -> list[dict[str, Any]]:
    return list(machine.get("networkInterfaces", ()))


def _free() -> Iterable[str]:
    return (f"10.64.{high}.{low}" for high in range(1, 256) for low in range(2, 255))
