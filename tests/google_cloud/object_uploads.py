"""Uploads in one request: the bytes alone (`media`), or with metadata before them (`multipart`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from tests.google_cloud import object_resumable
from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import FaultKind
from tests.google_cloud.http_bodies import flipped
from tests.google_cloud.http_server import Answer, Request
from tests.google_cloud.object_hashes import Claims, claims_of
from tests.google_cloud.object_places import bucket_of, check_name
from tests.google_cloud.object_preconditions import asked
from tests.google_cloud.object_store import checksums, writable
from tests.google_cloud.world import World

_NAME: Final = re.compile(rb'"name"\s*:\s*("(?:[^"\\]|\\.)*")')
_OCTETS: Final = "application/octet-stream"


def upload(world: World, request: Request) -> Answer:
    """Begin or make an upload, by `uploadType`."""
    kind = request.query.get("uploadType")
    if kind == "resumable":
        return object_resumable.begin(world, request)
    if kind == "media":
        fields = {"contentType": request.header("content-type") or _OCTETS}
        if "contentEncoding" in request.query:
            fields["contentEncoding"] = request.query["contentEncoding"]
        return _stored(world, request, fields, request.data)
    if kind == "multipart":
        given, content = _parts(request)
        return _stored(world, request, given, content)
    raise Refusal(400, "invalid", f"Invalid value for uploadType: {kind}")


def named(world: World, parts: Mapping[str, str], query: Mapping[str, str], head: bytes) -> str:
    """The object that an upload is of, as far as it is known before the body is read."""
    if "upload_id" in query:
        return world.uploads.named(query["upload_id"])
    if "name" in query:
        return query["name"]
    match = _NAME.search(head)
    return str(json.loads(match.group(1))) if match else ""


def _stored(world: World, request: Request, given: Mapping[str, Any], content: memoryview) -> Answer:
    name = check_name(request.query.get("name") or str(given.get("name", "")))
    sums = checksums(content)
    claims_of(given).also(Claims.of_headers(request)).check(sums)
    flip = request.call.struck(FaultKind.FLIPPED_STORED)
    kept = content if flip is None else flipped(content, flip.bit)
    with world.lock:
        bucket = bucket_of(world, request.parts["bucket"])
        asked(request.query).check(world.objects.find(bucket["name"], name))
        return world.objects.put(bucket, name, writable(given), kept, sums, world.now).shown(world.objects.origin)


def _parts(request: Request) -> tuple[dict[str, Any], memoryview]:
    """The metadata and the bytes of a body of two parts. Raises Refusal (400)."""
    match = re.search(r'boundary="?([^";]+)"?', request.header("content-type"))
    if match is None:
        raise Refusal(400, "badContent", "Missing multipart boundary.")
    line = b"--" + match.group(1).encode()
    # Only the metadata is looked through; the bytes end where the last boundary of the body begins.
    whole = request.data.obj
    assert isinstance(whole, bytearray), "as `received` reads it"
    first = _past(whole, line, 0)
    begin, end = _past(whole, b"\r\n\r\n", first), _find(whole, b"\r\n" + line, first)
    second = _past(whole, line, end)
    start = _past(whole, b"\r\n\r\n", second)
    stop = whole.rfind(b"\r\n" + line + b"--")
    if stop < start:
        raise Refusal(400, "badContent", "Missing end boundary in multipart body.")
    try:
        given = json.loads(bytes(whole[begin:end]) or b"{}")
    except ValueError:
        raise Refusal(400, "parseError", "Parse Error") from None
    if not isinstance(given, dict):
        raise Refusal(400, "parseError", "Parse Error")
    headers = bytes(whole[second:start]).decode("latin-1")
    kind = re.search(r"(?i)^content-type:\s*(.+?)\s*$", headers, re.MULTILINE)
    given.setdefault("contentType", kind.group(1) if kind else _OCTETS)
    return given, request.data[start:stop]


def _find(whole: bytearray, mark: bytes, start: int) -> int:
    at = whole.find(mark, start)
    if at < 0:
        raise Refusal(400, "badContent", "Malformed multipart body.")
    return at


def _past(whole: bytearray, mark: bytes, start: int) -> int:
    return _find(whole, mark, start) + len(mark)
