"""Instances, the groups that make them, and TPU nodes for those who declare what they want."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from policies.audit.record import Part
from tests.google_cloud import declared_disks
from tests.google_cloud.attachments import attach, let_go, use_addresses
from tests.google_cloud.compute_instances import members, remove
from tests.google_cloud.errors import Refusal, not_found
from tests.google_cloud.lifecycle import Fields, Lifecycle, by_path, placed, set_fields
from tests.google_cloud.shapes import HOST, Item, last, relative
from tests.google_cloud.world import World


def insert(world: World, path: str, fields: Fields) -> Item:
    """A machine that runs, with its boot disk. Where a disk is refused, nothing stays. Raises Refusal."""
    wanted = copy.deepcopy(dict(fields))
    base, name, link = path.rpartition("/instances/")[0], last(path), HOST + path
    made: list[str] = []
    _room(world, path)
    _schedulable(wanted.get("scheduling", {}))
    try:
        for attached in wanted.get("disks", ()):
            attached["source"] = HOST + _disk_of(world, attached, base, name, made)
            attach(world, link, relative(attached["source"]), attached.get("mode", "READ_WRITE"))
        use_addresses(world, link, wanted.get("networkInterfaces", ()))
    except Refusal:
        let_go(world, link)
        for disk in made:
            del world.inventory[Part.DISKS][disk]
        raise
    return world.add(Part.INSTANCES, **wanted, **placed(path), creationTimestamp=world.stamp())


def _room(world: World, path: str) -> None:
    zone = path.split("/")[3]
    if zone in world.exhausted:
        message = (
            f"The zone 'projects/{world.project}/zones/{zone}' does not have enough resources available to fulfill"
        )
        raise Refusal(503, "ZONE_RESOURCE_POOL_EXHAUSTED", f"{message} the request. Try a different zone, or later.")


def _schedulable(scheduling: Mapping[str, Any]) -> None:
    """Google neither restarts a spot machine nor moves it."""
    if scheduling.get("provisioningModel") != "SPOT" and not scheduling.get("preemptible"):
        return
    for field, refused in (("automaticRestart", True), ("onHostMaintenance", "MIGRATE")):
        if scheduling.get(field) == refused:
            raise Refusal(
                400,
                "invalid",
                f"Invalid value for field 'resource.scheduling.{field}': '{refused}'. A spot machine cannot have it.",
            )


def _disk_of(world: World, attached: dict[str, Any], base: str, name: str, made: list[str]) -> str:
    """Path of an attached disk, which is made where the machine brings it along."""
    params = attached.pop("initializeParams", None)
    if params is None:
        source: str = attached["source"]
        return relative(source) if "projects/" in source else f"{base}/disks/{source}"
    path = f"{base}/disks/{params.pop('diskName', name)}"
    if path in world.inventory[Part.DISKS]:
        raise Refusal(409, "alreadyExists", f"The resource '{path}' already exists")
    image = params.pop("sourceImage", None)
    named = {"type": params.pop("diskType", "pd-standard"), "sizeGb": params.pop("diskSizeGb", "10"), **params}
    declared_disks.insert(world, path, {**named, **({"sourceImage": image} if image else {})})
    made.append(path)
    return path


def patch(world: World, machine: Item, fields: Fields) -> None:
    """Fields that are given; `disks` are the ones besides the boot disk. Raises Refusal."""
    wanted = dict(fields)
    if "disks" in wanted:
        _reattach(world, machine, wanted.pop("disks"))
    if "machineType" in wanted:
        wanted["machineType"] = f"{HOST}{_zone_of(machine)}/machineTypes/{last(wanted['machineType'])}"
    set_fields(world, machine, wanted)


def _reattach(world: World, machine: Item, wanted: list[dict[str, Any]]) -> None:
    boot = [each for each in machine.get("disks", ()) if each["boot"]]
    let_go(world, machine["selfLink"])
    use_addresses(world, machine["selfLink"], machine.get("networkInterfaces", ()))
    for attached in (*boot, *wanted):
        attach(world, machine["selfLink"], relative(attached["source"]), attached.get("mode", "READ_WRITE"))
    shaped = [
        {"type": "PERSISTENT", "boot": False, "autoDelete": False, "deviceName": last(each["source"]), **each}
        for each in wanted
    ]
    machine["disks"] = [*boot, *shaped]


def _zone_of(machine: Item) -> str:
    return relative(machine["zone"])


def delete(world: World, path: str, machine: Item, options: Mapping[str, str]) -> None:
    """Raises Refusal where it is protected."""
    if machine.get("deletionProtection"):
        message = f"Invalid resource usage: 'The resource '{path}' is protected from deletion.'"
        raise Refusal(400, "invalidUsage", message)
    remove(world, machine)
    let_go(world, machine["selfLink"])


def insert_group(world: World, path: str, fields: Fields) -> Item:
    """A group and its machines, of which there are none where the zone has no room. Raises Refusal."""
    group = world.add(Part.GROUPS, **fields, **placed(path), creationTimestamp=world.stamp())
    try:
        _grow(world, group, int(group["targetSize"]))
    except Refusal:
        delete_group(world, path, group, {})
        raise
    return group


def _grow(world: World, group: Item, size: int) -> None:
    template = _template(world, group)
    zone = relative(group["zone"])
    place = relative(group["selfLink"]).partition("/")[2].partition("/")[2]
    creator = f"projects/{world.number}/{place}"
    for number in range(len(members(world, group)), 0 if last(zone) in world.exhausted else size):
        properties = copy.deepcopy(template)
        entries = [*properties.get("metadata", {}).get("items", ()), {"key": "created-by", "value": creator}]
        properties["metadata"] = {"items": entries}
        suffix = hashlib.sha256(f"{group['id']} {number}".encode()).hexdigest()[:4]
        insert(world, f"{zone}/instances/{group['baseInstanceName']}-{suffix}", properties)


def _template(world: World, group: Item) -> dict[str, Any]:
    path = relative(group["versions"][0]["instanceTemplate"])
    if path not in world.records:
        raise not_found(path)
    properties: dict[str, Any] = world.records[path]["properties"]
    return properties


def patch_group(world: World, group: Item, fields: Fields) -> None:
    """Fields that are given; a target makes machines or removes the last ones. Raises Refusal."""
    set_fields(world, group, fields)
    size = int(group["targetSize"])
    for machine in members(world, group)[size:]:
        delete(world, relative(machine["selfLink"]), machine, {})
    _grow(world, group, size)


def delete_group(world: World, path: str, group: Item, options: Mapping[str, str]) -> None:
    """Its machines go with it."""
    for machine in members(world, group):
        delete(world, relative(machine["selfLink"]), machine, {})
    del world.inventory[Part.GROUPS][path]


def insert_node(world: World, path: str, fields: Fields) -> Item:
    """A node that is ready, its data disks attached to its hosts. Raises Refusal."""
    _room(world, path)
    try:
        _attach_data(world, path, fields)
    except Refusal:
        let_go(world, _host(path))
        raise
    return world.add(
        Part.NODES, **{"state": "READY", "health": "HEALTHY", **fields}, name=path, createTime=world.stamp()
    )


def _attach_data(world: World, path: str, fields: Fields) -> None:
    for disk in fields.get("dataDisks", ()):
        attach(world, _host(path), relative(disk["sourceDisk"]), disk.get("mode", "READ_WRITE"))


def _host(path: str) -> str:
    """The machine behind a node, in a project of Google's."""
    zone, name = path.split("/")[3], last(path)
    return f"{HOST}projects/tenant-of-tpus/zones/{zone}/instances/{name}-w-0"


def patch_node(world: World, node: Item, fields: Fields) -> None:
    """Data disks, labels, metadata, tags, description. Raises Refusal."""
    if "dataDisks" in fields:
        let_go(world, _host(node["name"]))
        _attach_data(world, node["name"], fields)
    set_fields(world, node, fields)


def delete_node(world: World, path: str, node: Item, options: Mapping[str, str]) -> None:
    """In whatever state it is."""
    let_go(world, _host(path))
    del world.inventory[Part.NODES][path]


def insert_queued(world: World, path: str, fields: Fields) -> Item:
    """A queued resource that has got its nodes at once. Raises Refusal."""
    base = path.rpartition("/queuedResources/")[0]
    for spec in fields.get("tpu", {}).get("nodeSpec", ()):
        node = f"{base}/nodes/{spec['nodeId']}"
        if node in world.inventory[Part.NODES]:
            raise Refusal(409, "alreadyExists", f"The resource '{node}' already exists")
        insert_node(world, node, {**spec["node"], "queuedResource": path})
    return world.add(Part.QUEUED_RESOURCES, **fields, name=path, state={"state": "ACTIVE"}, createTime=world.stamp())


def delete_queued(world: World, path: str, queued: Item, options: Mapping[str, str]) -> None:
    """Its nodes go with it, as with `force`."""
    for node in [item for item in world.items(Part.NODES) if item.get("queuedResource") == path]:
        delete_node(world, node["name"], node, options)
    del world.inventory[Part.QUEUED_RESOURCES][path]


INSTANCES: Final = Lifecycle(find=by_path(Part.INSTANCES), insert=insert, patch=patch, delete=delete)
GROUPS: Final = Lifecycle(find=by_path(Part.GROUPS), insert=insert_group, patch=patch_group, delete=delete_group)
NODES: Final = Lifecycle(find=by_path(Part.NODES), insert=insert_node, patch=patch_node, delete=delete_node)
QUEUED_RESOURCES: Final = Lifecycle(
    find=by_path(Part.QUEUED_RESOURCES), insert=insert_queued, patch=set_fields, delete=delete_queued
)
