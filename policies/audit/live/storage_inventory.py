"""What exists in Cloud Storage: buckets, their caches, and the heartbeats of training runs.

Source: https://cloud.google.com/storage/docs/json_api/v1
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from policies.audit.links import last
from policies.audit.live.access import Clients
from policies.audit.live.failures import CloudError, told
from policies.audit.live.inventory import Found, Page, read_part
from policies.audit.live.paging import storage_pages
from policies.audit.record import Item, Part, Window
from policies.audit.times import when
from policies.errors import InputError

HEARTBEAT: Final = "heartbeat.json"
_PAGE: Final = 1000
_CACHES_PAGE: Final = 100
_LARGEST: Final = 1 << 16
"""Bytes of a heartbeat; a larger object is something else of that name."""
_OBJECT_FIELDS: Final = "items(name,bucket,updated,size),nextPageToken"


def read_buckets(clients: Clients, project: str) -> Found:
    """The buckets of the project. Raises CloudError where nothing came."""
    query = {"project": project, "projection": "noAcl", "maxResults": _PAGE, "returnPartialSuccess": "true"}
    stream = storage_pages(clients, "storage.buckets.list", "/b", query)
    return read_part(Part.BUCKETS, (Page(items=_objects(page), gaps=_unreachable(page)) for page in stream))


def read_caches(clients: Clients, buckets: Sequence[Item]) -> Found:
    """The caches of these buckets; the API lists them by bucket only."""
    found = Found()
    for name in _names(buckets):
        path = f"/b/{quote(name, safe='')}/anywhereCaches"
        stream = storage_pages(clients, "storage.anywhereCaches.list", path, {"pageSize": _CACHES_PAGE})
        _add(found, Part.CACHES, name, (Page(items=_objects(page), gaps=()) for page in stream))
    return found


def read_heartbeats(clients: Clients, buckets: Sequence[Item], window: Window) -> Found:
    """Every `heartbeat.json` in the buckets labelled `managed-by=spotrail`; with what it says, if of the window."""
    found = Found()
    for name in _names(bucket for bucket in buckets if _managed(bucket)):
        query = {"matchGlob": f"**{HEARTBEAT}", "maxResults": _PAGE, "fields": _OBJECT_FIELDS}
        stream = storage_pages(clients, "storage.objects.list", f"/b/{quote(name, safe='')}/o", query)
        _add(found, Part.HEARTBEATS, name, (Page(items=_beats(clients, page, window), gaps=()) for page in stream))
    return found


def _add(found: Found, part: Part, bucket: str, stream: Iterator[Page]) -> None:
    """One bucket that cannot be read does not hide the others."""
    try:
        came = read_part(part, stream)
    except CloudError as error:
        found.add_gap(part, bucket, f"{error}")
        return
    found.items += came.items
    for gap in came.missing:
        found.add_gap(part, bucket, gap.why)


def _beats(clients: Clients, page: Mapping[str, Any], window: Window) -> Iterator[Item]:
    for item in _objects(page):
        name = item.get("name")
        if not isinstance(name, str) or last(name) != HEARTBEAT:
            continue
        content = _content(clients, str(item.get("bucket")), name) if _recent(item, window) else None
        yield item if content is None else {**item, "content": content}


def _recent(item: Item, window: Window) -> bool:
    """A heartbeat of last year is old whatever it says."""
    try:
        updated = when(item, "updated")
        size = int(str(item.get("size", "")))
    except (InputError, ValueError):
        return False
    return updated is not None and updated >= window.start and 0 < size <= _LARGEST


def _content(clients: Clients, bucket: str, name: str) -> Item | None:
    """What a heartbeat says; None where it was deleted meanwhile, or is no JSON object."""
    from google.api_core.exceptions import NotFound

    method = "storage.objects.get"
    path = f"/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
    clients.asked(method)
    with told(method):
        try:
            # Not by `Blob`: its downloads repeat only what they like, and ask for the bucket besides.
            connection = clients.storage._connection
            text = connection.api_request(
                "GET", path, query_params={"alt": "media"}, expect_json=False, **clients.how(method)
            )
        except NotFound:
            return None
    try:
        content = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _objects(page: Mapping[str, Any]) -> list[Item]:
    items = page.get("items", [])
    if not isinstance(items, list):
        raise CloudError("the answer has items that are no list")
    return [item for item in items if isinstance(item, Mapping)]


def _unreachable(page: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    names = page.get("unreachable", [])
    for name in names if isinstance(names, list) else []:
        yield last(str(name)), "the bucket could not be read"


def _names(buckets: Any) -> Iterator[str]:
    for bucket in buckets:
        if isinstance(name := bucket.get("name"), str) and name:
            yield name


def _managed(bucket: Item) -> bool:
    labels = bucket.get("labels")
    return isinstance(labels, Mapping) and labels.get("managed-by") == "spotrail"
