"""The way of Pulumi's stand-in provider into a world: resources by their paths, under `/loopback/resources/`.

`POST` makes one from fields in the shape of Google's REST JSON, `PATCH` sets some of them, `DELETE` removes it, `GET`
reads it. What the inventory has (see `Part`) is kept there and answers as Google does: a name that is taken, a disk in
use, a bucket that is not empty. Everything else is kept as a record of its path and fields. `POST ...?machines=none`
makes it while its zone has no room for machines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from policies.audit.record import Part
from tests.google_cloud import declared_disks, declared_machines, declared_others
from tests.google_cloud.compute_operations import IN_USE
from tests.google_cloud.errors import Refusal
from tests.google_cloud.http_server import Answer, Request, Route, route
from tests.google_cloud.lifecycle import Fields, Lifecycle, set_fields
from tests.google_cloud.shapes import Item
from tests.google_cloud.world import World

_COMPUTE: Final = "projects/[^/]+/(?:zones/[^/]+|regions/[^/]+|global)"
_LIFECYCLES: Final[Mapping[str, Lifecycle]] = {
    f"{_COMPUTE}/disks/[^/]+": declared_disks.DISKS,
    f"{_COMPUTE}/snapshots/[^/]+": declared_disks.SNAPSHOTS,
    f"{_COMPUTE}/instances/[^/]+": declared_machines.INSTANCES,
    f"{_COMPUTE}/instanceGroupManagers/[^/]+": declared_machines.GROUPS,
    f"{_COMPUTE}/addresses/[^/]+": declared_others.ADDRESSES,
    f"{_COMPUTE}/routers/[^/]+": declared_others.ROUTERS,
    f"{_COMPUTE}/routers/[^/]+/nats/[^/]+": declared_others.NATS,
    "projects/[^/]+/locations/[^/]+/nodes/[^/]+": declared_machines.NODES,
    "projects/[^/]+/locations/[^/]+/queuedResources/[^/]+": declared_machines.QUEUED_RESOURCES,
    "buckets/[^/]+": declared_others.BUCKETS,
}
_HELD: Final = re.compile(f"{_COMPUTE}/(?:networks|subnetworks|resourcePolicies|instanceTemplates)/[^/]+")
"""What cannot go while something else names it."""


def routes() -> tuple[Route, ...]:
    """All of them."""
    path = "/loopback/resources/{path+}"
    return (
        route("loopback.project", "GET", "/loopback/project", _project),
        route("loopback.resources.get", "GET", path, _get),
        route("loopback.resources.insert", "POST", path, _insert),
        route("loopback.resources.patch", "PATCH", path, _patch),
        route("loopback.resources.delete", "DELETE", path, _delete),
    )


def _project(world: World, request: Request) -> Answer:
    return {"projectId": world.project, "projectNumber": world.number}


def _get(world: World, request: Request) -> Answer:
    path = request.parts["path"]
    return _lifecycle(path).get(world, path)


def _insert(world: World, request: Request) -> Answer:
    path = request.parts["path"]
    life = _lifecycle(path)
    _of_project(world, path)
    if life.find(world, path) is not None:
        raise life.taken(path)
    full = set(path.split("/")[3:4]) - world.exhausted if request.query.get("machines") == "none" else set()
    world.exhausted |= full
    try:
        return life.insert(world, path, request.body)
    finally:
        world.exhausted -= full


def _of_project(world: World, path: str) -> None:
    parts = path.split("/")
    if parts[0] == "projects" and parts[1] not in (world.project, world.number):
        raise Refusal(404, "notFound", f"The resource 'projects/{parts[1]}' was not found")


def _patch(world: World, request: Request) -> Answer:
    path = request.parts["path"]
    life = _lifecycle(path)
    item = life.get(world, path)
    life.patch(world, item, request.body)
    return item


def _delete(world: World, request: Request) -> Answer:
    path = request.parts["path"]
    life = _lifecycle(path)
    item = life.get(world, path)
    if _HELD.fullmatch(path) and (holder := _holder(world, path)):
        raise Refusal(400, IN_USE, f"The resource '{path}' is already being used by '{holder}'")
    life.delete(world, path, item, request.query)
    return {}


def _lifecycle(path: str) -> Lifecycle:
    found = [life for pattern, life in _LIFECYCLES.items() if re.fullmatch(pattern, path)]
    return found[0] if found else _RECORDS


def _holder(world: World, path: str) -> str:
    """What names the resource at `path`; empty where nothing does."""
    names = re.compile(re.escape(path) + r'(?=["/])')
    every = {**world.records, **{key: item for part in Part for key, item in world.inventory[part].items()}}
    return next((key for key, item in sorted(every.items()) if key != path and names.search(json.dumps(item))), "")


def _find(world: World, path: str) -> Item | None:
    return world.records.get(path)


def _record(world: World, path: str, fields: Fields) -> Item:
    world.records[path] = {**fields, "path": path, "creationTimestamp": world.stamp()}
    return world.records[path]


def _forget(world: World, path: str, item: Item, options: Mapping[str, str]) -> None:
    del world.records[path]


_RECORDS: Final = Lifecycle(find=_find, insert=_record, patch=set_fields, delete=_forget)
