"""Resources in the shape that Google gives them: short names become links, and what every resource has is filled in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from google.cloud import tpu_v2
from google.protobuf import json_format

from policies.audit.record import Part

Item: TypeAlias = dict[str, Any]

HOST: Final = "https://www.googleapis.com/compute/v1/"
_COLLECTIONS: Final[Mapping[Part, tuple[str, str]]] = {
    Part.DISKS: ("disks", "compute#disk"),
    Part.INSTANCES: ("instances", "compute#instance"),
    Part.SNAPSHOTS: ("snapshots", "compute#snapshot"),
    Part.IMAGES: ("images", "compute#image"),
    Part.ADDRESSES: ("addresses", "compute#address"),
    Part.GROUPS: ("instanceGroupManagers", "compute#instanceGroupManager"),
    Part.STORAGE_POOLS: ("storagePools", "compute#storagePool"),
    Part.ROUTERS: ("routers", "compute#router"),
}
"""Name of the collection in paths, and kind of its resources."""
_STATUS: Final = {Part.DISKS: "READY", Part.INSTANCES: "RUNNING", Part.SNAPSHOTS: "READY", Part.IMAGES: "READY"}


def completed(part: Part, fields: Mapping[str, Any], project: str, number: str) -> Item:
    """The resource as its API gives it. Fields that are given win."""
    if part in _COLLECTIONS:
        return _compute(part, dict(fields), f"projects/{project}")
    return _OTHERS[part](dict(fields), project, number)


def key(part: Part, item: Mapping[str, Any]) -> str:
    """What a resource is found by: its path from `projects/` on; of Storage, `bucket` or `bucket/rest`."""
    if part in _COLLECTIONS:
        return relative(item["selfLink"])
    if part in (Part.CACHES, Part.HEARTBEATS):
        return f"{item['bucket']}/{item['anywhereCacheId' if part is Part.CACHES else 'name']}"
    return str(item["name"])


def relative(link: str) -> str:
    """A link without its host and version: `projects/p/zones/z/disks/d`."""
    return link[link.index("projects/") :]


def last(link: str) -> str:
    """The last part of a link, the name."""
    return link.rsplit("/", 1)[-1]


def number_of(text: str) -> str:
    """A stable id of 19 digits for a resource that is given none."""
    return str(10**18 + int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big"))


def scope(item: Mapping[str, Any]) -> str:
    """`zones/us-central1-b`, `regions/us-central1` or `global`."""
    for collection in ("zone", "region"):
        if collection in item:
            return f"{collection}s/{last(item[collection])}"
    return "global"


def _compute(part: Part, item: Item, project: str) -> Item:
    collection, kind = _COLLECTIONS[part]
    place = scope(item)
    for field in ("zone", "region"):
        if field in item:
            item[field] = f"{HOST}{project}/{place}"
    path = f"{project}/{place}/{collection}/{item['name']}"
    item.setdefault("selfLink", HOST + path)
    item.setdefault("id", number_of(relative(item["selfLink"])))
    item.setdefault("kind", kind)
    item.setdefault("creationTimestamp", "2026-01-05T09:00:00.000-08:00")
    if part in _STATUS:
        item.setdefault("status", _STATUS[part])
    if part in _LINKS:
        _LINKS[part](item, HOST + f"{project}/{place}/")
    return item


def _disk(item: Item, base: str) -> None:
    item["type"] = _link(item.get("type", "hyperdisk-ml"), f"{base}diskTypes/")
    item["users"] = [_link(user, f"{base}instances/") for user in item.get("users", ())]
    if not item["users"]:
        del item["users"]  # Google leaves an empty list out
    item.setdefault("labelFingerprint", "42WmSpB8rSM=")


def _instance(item: Item, base: str) -> None:
    item["machineType"] = _link(item.get("machineType", "e2-standard-4"), f"{base}machineTypes/")
    for index, attached in enumerate(item.get("disks", ())):
        attached["source"] = _link(attached["source"], f"{base}disks/")
        attached.setdefault("kind", "compute#attachedDisk")
        attached.setdefault("type", "PERSISTENT")
        attached.setdefault("mode", "READ_WRITE")
        attached.setdefault("index", index)
        attached.setdefault("boot", False)
        attached.setdefault("autoDelete", False)
        attached.setdefault("deviceName", last(attached["source"]))
        attached.setdefault("interface", "NVME")
    item.setdefault("lastStartTimestamp", item["creationTimestamp"])


def _snapshot(item: Item, base: str) -> None:
    if "sourceDisk" in item and "/" not in item["sourceDisk"]:
        raise ValueError(f"sourceDisk of snapshot {item['name']} must be a path from projects/ on")
    item.setdefault("snapshotType", "STANDARD")
    item.setdefault("storageBytes", "0")
    item.setdefault("storageBytesStatus", "UP_TO_DATE")
    item.setdefault("storageLocations", ["us"])


def _group(item: Item, base: str) -> None:
    item.setdefault("baseInstanceName", item["name"])
    item.setdefault("targetSize", 0)
    item.setdefault("status", {"isStable": True})
    item.setdefault("instanceGroup", f"{base}instanceGroups/{item['name']}")


def _link(text: str, base: str) -> str:
    if "/" not in text:
        return base + text
    return text if text.startswith("http") else HOST + relative(text)


_LINKS: Final[Mapping[Part, Callable[[Item, str], None]]] = {
    Part.DISKS: _disk,
    Part.INSTANCES: _instance,
    Part.SNAPSHOTS: _snapshot,
    Part.GROUPS: _group,
}


def _tpu(collection: str) -> Callable[[Item, str, str], Item]:
    def shaped(item: Item, project: str, number: str) -> Item:
        """`name` may be `zone/id`; the node of a queued resource names its parent by the project's number."""
        if not item["name"].startswith("projects/"):
            zone, name = item["name"].split("/")
            item["name"] = f"projects/{project}/locations/{zone}/{collection}/{name}"
        item.setdefault("createTime", "2026-01-05T17:00:00Z")
        if collection == "nodes":
            item.setdefault("id", number_of(item["name"]))
            item.setdefault("apiVersion", "V2")
        kind: Any = {"nodes": tpu_v2.Node, "queuedResources": tpu_v2.QueuedResource}[collection]
        json_format.ParseDict(item, kind.pb(kind()))  # a mistake in a world is told here, not by the server
        for spec in item.get("tpu", {}).get("nodeSpec", ()):
            spec.setdefault("parent", f"projects/{number}/locations/{item['name'].split('/')[3]}")
        return item

    return shaped


def _bucket(item: Item, project: str, number: str) -> Item:
    name = item["name"]
    item.setdefault("kind", "storage#bucket")
    item.setdefault("id", name)
    item.setdefault("selfLink", f"https://www.googleapis.com/storage/v1/b/{name}")
    item.setdefault("projectNumber", number)
    item.setdefault("location", "US-CENTRAL1")
    item.setdefault("locationType", "region")
    item.setdefault("storageClass", "STANDARD")
    item.setdefault("metageneration", "1")
    item.setdefault("timeCreated", "2026-01-05T17:00:00.000Z")
    item.setdefault("updated", item["timeCreated"])
    item.setdefault("softDeletePolicy", {"retentionDurationSeconds": "604800", "effectiveTime": item["timeCreated"]})
    return item


def _cache(item: Item, project: str, number: str) -> Item:
    item.setdefault("kind", "storage#anywhereCache")
    item.setdefault("anywhereCacheId", item["zone"])
    item.setdefault("id", f"{item['bucket']}/{item['anywhereCacheId']}")
    item.setdefault(
        "selfLink", f"https://www.googleapis.com/storage/v1/b/{item['bucket']}/anywhereCaches/{item['zone']}"
    )
    item.setdefault("state", "running")
    item.setdefault("ttl", "86400s")
    item.setdefault("admissionPolicy", "admit-on-first-miss")
    item.setdefault("createTime", "2026-01-05T17:00:00.000Z")
    item.setdefault("updateTime", item["createTime"])
    return item


def _object(item: Item, project: str, number: str) -> Item:
    """An object with its bytes in `content`, which may be JSON."""
    item.setdefault("kind", "storage#object")
    item.setdefault("id", f"{item['bucket']}/{item['name']}/1")
    item.setdefault("generation", "1767632400000000")
    item.setdefault("metageneration", "1")
    item.setdefault("storageClass", "STANDARD")
    item.setdefault("timeCreated", item.get("updated", "2026-01-05T17:00:00.000Z"))
    item.setdefault("updated", item["timeCreated"])
    return item


_OTHERS: Final[Mapping[Part, Callable[[Item, str, str], Item]]] = {
    Part.NODES: _tpu("nodes"),
    Part.QUEUED_RESOURCES: _tpu("queuedResources"),
    Part.BUCKETS: _bucket,
    Part.CACHES: _cache,
    Part.HEARTBEATS: _object,
}
