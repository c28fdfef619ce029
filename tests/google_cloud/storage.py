"""Cloud Storage as JSON: buckets, their objects and their caches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from policies.audit.record import Part
from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import FaultKind
from tests.google_cloud.http_server import Answer, Request, Route, page_size, route
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
        route("storage.buckets.get", "GET", bucket, lambda world, request: _bucket(world, request)),
        route("storage.buckets.patch", "PATCH", bucket, _patch),
        route("storage.objects.list", "GET", f"{bucket}/o", _list_objects),
        route("storage.objects.get", "GET", f"{bucket}/o/{{object+}}", _object),
        route("storage.objects.get", "GET", f"/download{bucket}/o/{{object+}}", _object),
        route("storage.anywhereCaches.list", "GET", caches, _list_caches),
        route("storage.anywhereCaches.get", "GET", f"{caches}/{{cache}}", _get_cache),
        route("storage.anywhereCaches.disable", "POST", f"{caches}/{{cache}}/disable", _set_state("disabled")),
        route("storage.anywhereCaches.resume", "POST", f"{caches}/{{cache}}/resume", _set_state("running")),
    )


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
    found = world.inventory[Part.BUCKETS].get(request.parts["bucket"])
    if found is None:
        raise Refusal(404, "notFound", "The specified bucket does not exist.")
    return found


def _patch(world: World, request: Request) -> Answer:
    """Fields that are given replace what is there; null takes away."""
    bucket = _bucket(world, request)
    wanted = request.query.get("ifMetagenerationMatch", bucket["metageneration"])
    if wanted != bucket["metageneration"]:
        raise Refusal(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
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


def _list_objects(world: World, request: Request) -> Answer:
    _bucket(world, request)
    prefix, pattern = request.query.get("prefix", ""), glob(request.query.get("matchGlob", "**"))
    found = [
        _shown(item)
        for item in world.items(Part.HEARTBEATS)
        if item["bucket"] == request.parts["bucket"]
        and item["name"].startswith(prefix)
        and pattern.fullmatch(item["name"])
    ]
    return _listed("storage#objects", found, request)


def glob(text: str) -> re.Pattern[str]:
    """The globs of Cloud Storage: `*` and `?` stay within a folder, `**` does not, `{a,b}` is either."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\{[^}]*\})", text)
    return re.compile("".join(_GLOB.get(part) or _either(part) for part in parts), re.DOTALL)


_GLOB: Final[Mapping[str, str]] = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _either(part: str) -> str:
    if part.startswith("{"):
        return "(?:" + "|".join(map(re.escape, part[1:-1].split(","))) + ")"
    return re.escape(part)


def _object(world: World, request: Request) -> Answer:
    key = f"{request.parts['bucket']}/{request.parts['object']}"
    item = world.inventory[Part.HEARTBEATS].get(key)
    if item is None:
        raise Refusal(404, "notFound", f"No such object: {key}")
    return _content(item) if request.query.get("alt") == "media" else _shown(item)


def _content(item: Item) -> bytes:
    content = item.get("content", "")
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def _shown(item: Item) -> Item:
    """An object without its bytes."""
    return {name: value for name, value in item.items() if name != "content"} | {"size": str(len(_content(item)))}


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
