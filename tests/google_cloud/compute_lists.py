"""Compute: what is there. Aggregated lists over all zones and regions, lists, and single resources."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from policies.audit.record import Part
from tests.google_cloud.errors import Refusal, not_found
from tests.google_cloud.faults import FaultKind
from tests.google_cloud.http_server import Answer, Request, Route, page_size, route
from tests.google_cloud.shapes import HOST, Item, key, scope
from tests.google_cloud.world import World

MOST: Final = 500
"""The most resources that a page has."""
PROJECT: Final = "/compute/v1/projects/{project}"
_AGGREGATED: Final[Mapping[str, Part]] = {
    "disks": Part.DISKS,
    "instances": Part.INSTANCES,
    "addresses": Part.ADDRESSES,
    "instanceGroupManagers": Part.GROUPS,
    "storagePools": Part.STORAGE_POOLS,
    "routers": Part.ROUTERS,
}
_GLOBAL: Final[Mapping[str, Part]] = {"snapshots": Part.SNAPSHOTS, "images": Part.IMAGES}
_ZONES: Final = ("us-central1-a", "us-central1-b", "us-central1-c", "us-east1-d", "us-east5-a", "europe-west4-a")
"""Scopes that every aggregated list names, besides those that hold something."""


def routes() -> tuple[Route, ...]:
    """All of them."""
    found = []
    for collection, part in _AGGREGATED.items():
        method = f"compute.{collection}.aggregatedList"
        found.append(route(method, "GET", f"{PROJECT}/aggregated/{collection}", _aggregated(collection, part)))
        for places in ("zones", "regions"):
            path = f"{PROJECT}/{places}/{{place}}/{collection}/{{name}}"
            found.append(route(f"compute.{collection}.get", "GET", path, _get(part)))
    for collection, part in _GLOBAL.items():
        base = f"{PROJECT}/global/{collection}"
        found.append(route(f"compute.{collection}.list", "GET", base, _listed(collection, part)))
        found.append(route(f"compute.{collection}.get", "GET", f"{base}/{{name}}", _get(part)))
    found.append(route("compute.addresses.get", "GET", f"{PROJECT}/global/addresses/{{name}}", _get(Part.ADDRESSES)))
    return tuple(found)


def of_project(world: World, request: Request) -> None:
    """Refuse a project that is not the world's."""
    if request.parts["project"] not in (world.project, world.number):
        raise not_found(f"projects/{request.parts['project']}")


def _aggregated(collection: str, part: Part) -> Callable[[World, Request], Answer]:
    def answer(world: World, request: Request) -> Answer:
        of_project(world, request)
        away = request.call.unreachable()
        seen = [item for item in world.items(part) if scope(item).rpartition("/")[2] not in away]
        found, token = _page(part, seen, request)
        places = {f"zones/{zone}" for zone in _ZONES} | {f"regions/{zone[:-2]}" for zone in _ZONES}
        places |= {scope(item) for item in world.items(part)} | {"global"}
        scopes: dict[str, Any] = {place: {collection: []} for place in sorted(places)}
        for item in found:
            scopes[scope(item)][collection].append(item)
        for place, content in scopes.items():
            if not content[collection]:
                scopes[place] = {"warning": _warning(place, away)}
        answered: dict[str, Any] = {"kind": f"compute#{collection[:-1]}AggregatedList", "items": scopes}
        return answered | _tail(world, request, token, (place for place in scopes if place.rpartition("/")[2] in away))

    return answer


def _tail(world: World, request: Request, token: str, away: Iterable[str]) -> dict[str, Any]:
    """What stands at the end of a list."""
    tail: dict[str, Any] = {"selfLink": f"https://www.googleapis.com{request.path}"}
    if token:
        tail["nextPageToken"] = token
    gone = sorted(away)
    if gone:
        tail["unreachables"] = [f"projects/{world.project}/{place}" for place in gone]
        tail["warning"] = _warning(gone[0], frozenset([gone[0].rpartition("/")[2]]))
    return tail


def _warning(place: str, away: frozenset[str]) -> dict[str, Any]:
    if place.rpartition("/")[2] in away:
        code, message = "UNREACHABLE", f"The scope '{place}' could not be reached."
    else:
        code, message = "NO_RESULTS_ON_PAGE", f"There are no results for scope '{place}' on this page."
    return {"code": code, "message": message, "data": [{"key": "scope", "value": place}]}


def _listed(collection: str, part: Part) -> Callable[[World, Request], Answer]:
    def answer(world: World, request: Request) -> Answer:
        of_project(world, request)
        found, token = _page(part, world.items(part), request)
        listed: dict[str, Any] = {"kind": f"compute#{collection[:-1]}List", "items": found}
        return listed | _tail(world, request, token, ())

    return answer


def _get(part: Part) -> Callable[[World, Request], Answer]:
    def answer(world: World, request: Request) -> Answer:
        of_project(world, request)
        return world.get(part, path_of(world, request))

    return answer


def path_of(world: World, request: Request) -> str:
    """`projects/p/zones/z/disks/d`, from the request's path, with the id of the project and no action at the end."""
    names = request.path.removeprefix("/compute/v1/").split("/")
    names[1] = world.project
    return "/".join(names[: 5 if names[2] == "global" else 6])


def _page(part: Part, items: Sequence[Item], request: Request) -> tuple[list[Item], str]:
    """Tokens name the last resource of a page, so that a list that changes between pages loses nothing."""
    if "filter" in request.query:
        raise Refusal(501, "notImplemented", "the loopback filters no lists")
    size = page_size(request.query, "maxResults", MOST)
    after = base64.urlsafe_b64decode(request.query["pageToken"]).decode() if request.query.get("pageToken") else ""
    left = [item for item in items if key(part, item) > after]
    found = left[:size]
    token = base64.urlsafe_b64encode(key(part, found[-1]).encode()).decode() if len(left) > size else ""
    if request.call.struck(FaultKind.LOOP):
        return found, request.query.get("pageToken") or base64.urlsafe_b64encode(b" ").decode()
    return found, token


def link(path: str) -> str:
    """The URL of a path."""
    return HOST + path
