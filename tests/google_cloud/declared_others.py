"""Addresses, routers with their gateways, and buckets for those who declare what they want."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final

from policies.audit.record import Part
from tests.google_cloud.compute_operations import IN_USE
from tests.google_cloud.errors import Refusal
from tests.google_cloud.lifecycle import Fields, Lifecycle, by_path, drop, placed, set_fields
from tests.google_cloud.shapes import Item, last, relative
from tests.google_cloud.world import World


def insert_address(world: World, path: str, fields: Fields) -> Item:
    """An address that is reserved; an external one gets a number. Raises Refusal."""
    taken = {item["address"] for item in world.items(Part.ADDRESSES)}
    wanted = {"addressType": "EXTERNAL", **fields}
    if wanted.setdefault("address", _free(wanted["addressType"], taken)) in taken:
        raise Refusal(400, "invalid", f"Invalid value for field 'resource.address': '{wanted['address']}'. Taken.")
    return world.add(Part.ADDRESSES, **wanted, **placed(path), status="RESERVED", creationTimestamp=world.stamp())


def _free(type_: str, taken: set[str]) -> str:
    network = ipaddress.ip_network("198.51.100.0/24" if type_ == "EXTERNAL" else "10.64.0.0/24")
    return next(str(host) for host in network.hosts() if str(host) not in taken)


def delete_address(world: World, path: str, address: Item, options: Mapping[str, str]) -> None:
    """Raises Refusal while a machine has it."""
    if address.get("users"):
        user = relative(address["users"][0])
        raise Refusal(400, IN_USE, f"The address resource '{path}' is already being used by '{user}'")
    del world.inventory[Part.ADDRESSES][path]


def insert_router(world: World, path: str, fields: Fields) -> Item:
    """A router without a gateway."""
    return world.add(Part.ROUTERS, **fields, **placed(path), creationTimestamp=world.stamp())


def _router_of(world: World, path: str) -> Item:
    return world.get(Part.ROUTERS, path.rpartition("/nats/")[0])


def find_nat(world: World, path: str) -> Item | None:
    """A gateway by its router's path and its name."""
    router = world.inventory[Part.ROUTERS].get(path.rpartition("/nats/")[0], {})
    return next((nat for nat in router.get("nats", ()) if nat["name"] == last(path)), None)


def insert_nat(world: World, path: str, fields: Fields) -> Item:
    """A gateway on a router that is there. Raises Refusal."""
    router, nat = _router_of(world, path), {"type": "PUBLIC", **fields, "name": last(path)}
    router["nats"] = [*router.get("nats", ()), nat]
    return nat


def delete_nat(world: World, path: str, nat: Item, options: Mapping[str, str]) -> None:
    """The router stays."""
    router = _router_of(world, path)
    router["nats"] = [each for each in router["nats"] if each is not nat]


def find_bucket(world: World, path: str) -> Item | None:
    return world.inventory[Part.BUCKETS].get(last(path))


def insert_bucket(world: World, path: str, fields: Fields) -> Item:
    """An empty bucket."""
    stamp = world.stamp()
    return world.add(Part.BUCKETS, **fields, name=last(path), timeCreated=stamp, updated=stamp)


def patch_bucket(world: World, bucket: Item, fields: Fields) -> None:
    """Fields that are given; null takes away."""
    set_fields(world, bucket, fields)
    bucket.update(metageneration=str(int(bucket["metageneration"]) + 1), updated=world.stamp())


def delete_bucket(world: World, path: str, bucket: Item, options: Mapping[str, str]) -> None:
    """Raises Refusal while there is an object in it, unless `force` says that they go too."""
    if world.objects.holds(bucket["name"]) and options.get("force") != "true":
        raise Refusal(409, "conflict", "The bucket you tried to delete is not empty.")
    world.objects.drop(bucket["name"])
    del world.inventory[Part.BUCKETS][bucket["name"]]


ADDRESSES: Final = Lifecycle(
    find=by_path(Part.ADDRESSES), insert=insert_address, patch=set_fields, delete=delete_address
)
ROUTERS: Final = Lifecycle(
    find=by_path(Part.ROUTERS), insert=insert_router, patch=set_fields, delete=drop(Part.ROUTERS)
)
NATS: Final = Lifecycle(find=find_nat, insert=insert_nat, patch=set_fields, delete=delete_nat)
BUCKETS: Final = Lifecycle(find=find_bucket, insert=insert_bucket, patch=patch_bucket, delete=delete_bucket)
