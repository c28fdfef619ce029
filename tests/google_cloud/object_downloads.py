"""The metadata of an object, and its bytes: all, or a range of them."""

from __future__ import annotations

import datetime
import email.utils
import re
from http import HTTPStatus
from typing import Final

from tests.google_cloud.errors import Refusal
from tests.google_cloud.http_server import Answer, Reply, Request
from tests.google_cloud.object_places import bucket_of, version_of
from tests.google_cloud.object_preconditions import asked, number
from tests.google_cloud.object_store import Version
from tests.google_cloud.world import World

_PLAIN: Final = {"Content-Type": "text/html; charset=UTF-8"}
_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")


def get(world: World, request: Request) -> Answer:
    """With `alt=media` the bytes; what is wrong is then told as plain text."""
    try:
        return _got(world, request)
    except Refusal as refusal:
        if request.query.get("alt") != "media" or refusal.code == HTTPStatus.NOT_MODIFIED:
            raise
        return Reply(code=refusal.code, headers=_PLAIN, body=refusal.message.encode())


def _got(world: World, request: Request) -> Answer:
    with world.lock:
        version = _soft_deleted(world, request) if request.query.get("softDeleted") == "true" else None
        version = version or version_of(world, request)
        asked(request.query).check(version, reads=True)
        if request.query.get("alt") != "media":
            return version.shown(world.objects.origin)
        headers = _headers(version)
    return _ranged(version, headers, request.header("range"))


def _soft_deleted(world: World, request: Request) -> Version:
    bucket, name = bucket_of(world, request.parts["bucket"])["name"], request.parts["object"]
    generation = number(request.query, "generation") or 0
    found = world.objects.find_soft_deleted(bucket, name, generation, world.now)
    if found is None:
        raise Refusal(404, "notFound", f"No such object: {bucket}/{name}")
    return found


def _headers(version: Version) -> dict[str, str]:
    item = version.shown("")
    updated = datetime.datetime.fromisoformat(item["updated"])
    sums = [f"crc32c={item['crc32c']}", *([f"md5={item['md5Hash']}"] if "md5Hash" in item else [])]
    kept = {"cacheControl": "Cache-Control", "contentDisposition": "Content-Disposition"}
    return {
        "Content-Type": item.get("contentType", "application/octet-stream"),
        "ETag": item["etag"],
        "Last-Modified": email.utils.format_datetime(updated.astimezone(datetime.UTC), usegmt=True),
        "Accept-Ranges": "bytes",
        "X-Goog-Generation": item["generation"],
        "X-Goog-Metageneration": item["metageneration"],
        "X-Goog-Hash": ",".join(sums),
        "X-Goog-Storage-Class": item["storageClass"],
        "X-Goog-Stored-Content-Encoding": item.get("contentEncoding", "identity"),
        "X-Goog-Stored-Content-Length": item["size"],
        **({"Content-Encoding": item["contentEncoding"]} if "contentEncoding" in item else {}),
        **{header: item[name] for name, header in kept.items() if name in item},
    }


def _ranged(version: Version, headers: dict[str, str], text: str) -> Reply:
    """A range that is not understood is passed over, as HTTP has it; one beyond the end is 416."""
    match, size = _RANGE.fullmatch(text.strip()), len(version.content)
    if match is None or match.groups() == ("", ""):
        return Reply(headers=headers, body=version.content)
    first, last = match.groups()
    if first:
        start, stop = int(first), min(int(last) + 1 if last else size, size)
    else:
        start, stop = max(0, size - int(last)), size
    if last and first and int(last) < int(first):
        return Reply(headers=headers, body=version.content)
    if start >= size:
        told = {**_PLAIN, "Content-Range": f"bytes */{size}"}
        return Reply(code=416, headers=told, body=b"The requested range cannot be satisfied.")
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return Reply(code=206, headers=headers, body=version.content[start:stop])
