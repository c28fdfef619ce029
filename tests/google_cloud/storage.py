"""Cloud Storage as JSON: buckets, their objects and their caches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from policies.audit.record import Part
from tests.google_cloud import object_changes, object_downloads, object_resumable, object_uploads
from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import FaultKind
from tests.google_cloud.http_server import Answer, Reply, Request, Route, page_size, route
from tests.google_cloud.object_lists import list_objects
from tests.google_cloud.object_places import bucket_of
from tests.google_cloud.object_preconditions import asked, refused
from tests.google_cloud.shapes import Item
from tests.google_cloud.world import World

MOST: Final = 1000
"""The most that a page has."""
_PATCHED: Final = frozenset({"lifecycle", "softDeletePolicy", "versioning", "labels", "autoclass"})
_BASE: Final = "/storage/v1/b"


def routes() -> tuple[Route, ...]:
    """All of them."""
    bucket, caches = f"{_BASE}/{{bucket}}", f"{_BASE}/{{bucket}}/anywhereCaches"
    return (
        route("storage.buckets.list", "GET", _BASE, _list_buckets),
        route("storage.buckets.insert", "POST", _BASE, _insert),
        route("storage.buckets.get", "GET", bucket, _get),
        route("storage.buckets.patch", "PATCH", bucket, _patch),
        route("storage.buckets.delete", "DELETE", bucket, _delete),
        *_object_routes(),
        route("storage.anywhereCaches.list", "GET", caches, _list_caches),
        route("storage.anywhereCaches.get", "GET", f"{caches}/{{cache}}", _get_cache),
        route("storage.anywhereCaches.disable", "POST", f"{caches}/{{cache}}/disable", _set_state("disabled")),
        route("storage.anywhereCaches.resume", "POST", f"{caches}/{{cache}}/resume", _set_state("running")),
    )


def _object_routes() -> tuple[Route, ...]:
    objects, up = f"{_BASE}/{{bucket}}/o", f"/upload{_BASE}/{{bucket}}/o"
    one, away = f"{objects}/{{object+}}", f"{_BASE}/{{source_bucket}}/o/{{source}}"
    target, moves = "b/{target_bucket}/o/{target}", {"locks": False, "about": object_uploads.named}
    resumed, go_on = {**moves, "takes_parts": True}, object_resumable.go_on
    return (
        route("storage.objects.list", "GET", objects, _list_objects),
        route("storage.objects.insert", "POST", up, object_uploads.upload, **moves),
        route("storage.objects.insert", "PUT", up, go_on, **resumed),
        route("storage.objects.insert", "DELETE", up, object_resumable.cancel, about=object_uploads.named),
        route("storage.objects.rewrite", "POST", f"{away}/rewriteTo/{target}", object_changes.rewrite, about=_target),
        route("storage.objects.copy", "POST", f"{away}/copyTo/{target}", object_changes.copy, about=_target),
        route(
            "storage.objects.move",
            "POST",
            f"{objects}/{{source}}/moveTo/o/{{target}}",
            object_changes.move,
            about=_target,
        ),
        route("storage.objects.compose", "POST", f"{objects}/{{object}}/compose", object_changes.compose),
        route("storage.objects.restore", "POST", f"{objects}/{{object}}/restore", object_changes.restore),
        route("storage.objects.get", "GET", one, object_downloads.get, locks=False),
        route("storage.objects.get", "GET", f"/download{one}", object_downloads.get, locks=False),
        route("storage.objects.patch", "PATCH", one, object_changes.patch),
        route("storage.objects.update", "PUT", one, object_changes.update),
        route("storage.objects.delete", "DELETE", one, object_changes.delete),
    )


def _target(world: World, parts: Mapping[str, str], query: Mapping[str, str], head: bytes) -> str:
    return parts["target"]


def _list_objects(world: World, request: Request) -> Answer:
    return list_objects(world, bucket_of(world, request.parts["bucket"]), request)


def _insert(world: World, request: Request) -> Answer:
    """An empty bucket."""
    name = str(request.body.get("name", ""))
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", name):
        raise Refusal(400, "invalid", f"Invalid bucket name: '{name}'")
    if name in world.inventory[Part.BUCKETS]:
        raise Refusal(
            409, "conflict", "Your previous request to create the named bucket succeeded and you already own it."
        )
    stamp = world.stamp()
    location = str(request.body.get("location", "US")).upper()
    return world.add(Part.BUCKETS, **{**request.body, "location": location, "timeCreated": stamp, "updated": stamp})


def _get(world: World, request: Request) -> Answer:
    bucket = _bucket(world, request)
    _check(bucket, request, reads=True)
    return bucket


def _delete(world: World, request: Request) -> Answer:
    """Raises Refusal (409) while anything is in it."""
    bucket = _bucket(world, request)
    _check(bucket, request)
    if world.objects.holds(bucket["name"]):
        raise Refusal(409, "conflict", "The bucket you tried to delete is not empty.")
    world.objects.drop(bucket["name"])
    del world.inventory[Part.BUCKETS][bucket["name"]]
    return Reply(code=204)


def _check(bucket: Item, request: Request, *, reads: bool = False) -> None:
    """Of a bucket there are preconditions on its metageneration only."""
    wanted = asked(request.query)
    number = int(bucket["metageneration"])
    if wanted.metageneration not in (None, number):
        raise refused()
    if wanted.metageneration_not == number:
        raise Refusal(304, "notModified", "Not Modified") if reads else refused()


def _list_buckets(world: World, request: Request) -> Answer:
    if request.query.get("project") not in (world.project, world.number):
        raise Refusal(400, "invalid", f"Unknown project id: {request.query.get('project')}")
    away = request.call.unreachable()
    items = world.items(Part.BUCKETS)
    seen = [item for item in items if not away & {item["name"], item["location"].lower()}]
    answer = _listed("storage#buckets", seen, request)
    if away and len(seen) < len(items):
        answer["unreachable"] = [f"projects/_/buckets/{item['name']}" for item in items if item not in seen]
    return answer


def _bucket(world: World, request: Request) -> Item:
    return bucket_of(world, request.parts["bucket"])


def _patch(world: World, request: Request) -> Answer:
    """Fields that are given replace what is there; null takes away."""
    bucket = _bucket(world, request)
    _check(bucket, request)
    unknown = set(request.body) - _PATCHED
    if unknown:
        raise Refusal(501, "notImplemented", f"the loopback patches no {', '.join(sorted(unknown))}")
    for name, value in request.body.items():
        if value is None:
            bucket.pop(name, None)
        elif name == "labels":
            labels = bucket.get("labels", {}) | value
            bucket["labels"] = {key: text for key, text in labels.items() if text is not None}
        else:
            bucket[name] = value
    if "softDeletePolicy" in request.body:
        seconds = str(request.body["softDeletePolicy"]["retentionDurationSeconds"])
        bucket["softDeletePolicy"] = {"retentionDurationSeconds": seconds, "effectiveTime": world.stamp()}
    bucket.update(metageneration=str(int(bucket["metageneration"]) + 1), updated=world.stamp())
    return bucket


def _list_caches(world: World, request: Request) -> Answer:
    _bucket(world, request)
    found = [item for item in world.items(Part.CACHES) if item["bucket"] == request.parts["bucket"]]
    return _listed("storage#anywhereCaches", found, request, "pageSize")


def _get_cache(world: World, request: Request) -> Item:
    found = world.inventory[Part.CACHES].get(f"{request.parts['bucket']}/{request.parts['cache']}")
    if found is None:
        raise Refusal(404, "notFound", "The specified anywhere cache does not exist.")
    return found


def _set_state(state: str) -> Callable[[World, Request], Answer]:
    def answer(world: World, request: Request) -> Answer:
        cache = _get_cache(world, request)
        cache.update(state=state, updateTime=world.stamp())
        return cache

    return answer


def _listed(kind: str, items: Sequence[Item], request: Request, size_name: str = "maxResults") -> dict[str, Any]:
    size = page_size(request.query, size_name, MOST)
    start = int(request.query.get("pageToken") or 0)
    answer: dict[str, Any] = {"kind": kind}
    if found := items[start : start + size]:
        answer["items"] = list(found)
    if request.call.struck(FaultKind.LOOP):
        answer["nextPageToken"] = str(start)
    elif start + size < len(items):
        answer["nextPageToken"] = str(start + size)
    return answer
