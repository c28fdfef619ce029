"""Resumable uploads: begun with the metadata, sent in chunks, asked about, gone on with after an interruption.

Source: https://cloud.google.com/storage/docs/performing-resumable-uploads
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Final, final

from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import FaultKind
from tests.google_cloud.http_bodies import flipped
from tests.google_cloud.http_server import Answer, Reply, Request
from tests.google_cloud.object_hashes import Claims, claims_of
from tests.google_cloud.object_places import bucket_of, check_name
from tests.google_cloud.object_preconditions import asked
from tests.google_cloud.object_sessions import UNIT, Session
from tests.google_cloud.object_store import Checksums, crc32c_text, writable
from tests.google_cloud.world import World

_RANGE: Final = re.compile(r"bytes (?:(\d+)-(\d+|\*)|\*)/(\d+|\*)")
_CANCELLED: Final = 499


@final
@dataclass(frozen=True, kw_only=True)
class _Range:
    """A Content-Range."""

    first: int | None
    """None for a question about the status."""
    last: int | None
    total: int | None
    """None as long as the client does not know it."""


def begin(world: World, request: Request) -> Answer:
    """A session; its address comes in `Location`. Preconditions must hold now, and at the end again."""
    body = request.body
    name = check_name(request.query.get("name") or str(body.get("name", "")))
    fields = {"contentType": request.header("x-upload-content-type") or "application/octet-stream", **body}
    size = request.header("x-upload-content-length")
    with world.lock:
        bucket = bucket_of(world, request.parts["bucket"])["name"]
        asked(request.query).check(world.objects.find(bucket, name))
        session = world.uploads.begin(
            bucket=bucket, name=name, query=request.query, fields=fields, announced=int(size) if size else None
        )
    place = f"http://{request.header('host')}{request.path}?uploadType=resumable&upload_id={session.id}"
    return Reply(headers={"Location": place, "X-GUploader-UploadID": session.id})


def go_on(world: World, request: Request) -> Answer:
    """A chunk, or a question about what has come."""
    with world.lock:
        session = world.uploads.get(request.query.get("upload_id", ""))
    with session.lock:
        if session.refusal is not None:
            raise session.refusal
        if session.made is not None:
            return session.made
        given = _range(request)
        if given.total is not None and session.announced not in (None, given.total):
            raise Refusal(400, "invalid", f"Content-Range says {given.total} bytes, not {session.announced}.")
        if given.first is not None:
            _take(session, given, request)
        if given.total is None or len(session.data) < given.total or not request.complete:
            return _status(session)
        with world.lock:
            return _finish(world, session, request)


def cancel(world: World, request: Request) -> Answer:
    """An upload that will not go on."""
    world.uploads.cancel(request.query.get("upload_id", ""))
    return Reply(code=_CANCELLED)


def _range(request: Request) -> _Range:
    """Without the header the body is the whole object."""
    text, size = request.header("content-range"), len(request.data)
    if not text:
        return _Range(first=0, last=size - 1, total=size if request.complete else None)
    match = _RANGE.fullmatch(text)
    if match is None:
        raise Refusal(400, "invalid", "Failed to parse Content-Range header.")
    first, last, total = (int(part) if part not in (None, "*") else None for part in match.groups())
    if first is not None and last is None:
        last = first + size - 1
    if first is not None and request.complete and last != first + size - 1:
        raise Refusal(400, "invalid", f"Content-Range {text!r} does not fit a body of {size} bytes.")
    return _Range(first=first, last=last, total=total)


def _take(session: Session, given: _Range, request: Request) -> None:
    """Keep what is new of a chunk: all of the last one, whole multiples of the unit of the others."""
    first, held, size = given.first or 0, len(session.data), len(request.data)
    if first > held:
        message = (
            f"Invalid request. According to the Content-Range header, the upload offset is {first} byte(s), "
            f"which exceeds already uploaded size of {held} byte(s)."
        )
        raise Refusal(503, "backendError", message)
    ends = given.total is not None and first + size >= given.total
    if given.total is not None and first + size > given.total:
        raise Refusal(400, "invalid", f"The chunk goes beyond the {given.total} bytes of the object.")
    if request.complete and not ends and size < UNIT:
        message = (
            f"Invalid request. The number of bytes uploaded is required to be equal or greater than {UNIT}, except "
            f"for the final request (it's recommended to be the exact multiple of {UNIT}). The received request "
            f"contained {size} bytes, which does not meet this requirement."
        )
        raise Refusal(400, "invalid", message)
    stop = first + size if ends else (first + size) // UNIT * UNIT
    if stop > held:
        session.keep(request.data[held - first : stop - first])


def _status(session: Session) -> Reply:
    """308 with what has come to stay."""
    came = {"Range": f"bytes=0-{len(session.data) - 1}"} if session.data else {}
    return Reply(code=308, headers={**came, "X-GUploader-UploadID": session.id})


def _finish(world: World, session: Session, request: Request) -> Answer:
    """The object, once. A refusal here is the end of the session too."""
    md5 = base64.b64encode(session.md5.digest()).decode()
    sums = Checksums(crc32c=crc32c_text(session.crc32c), md5=md5)
    content = memoryview(session.data).toreadonly()
    flip = request.call.struck(FaultKind.FLIPPED_STORED)
    try:
        claims_of(session.fields).also(Claims.of_headers(request)).check(sums)
        bucket = bucket_of(world, session.bucket)
        asked(session.query).check(world.objects.find(session.bucket, session.name))
    except Refusal as refusal:
        session.refusal = refusal
        raise
    kept = content if flip is None else flipped(content, flip.bit)
    version = world.objects.put(bucket, session.name, writable(session.fields), kept, sums, world.now)
    session.made = version.shown(world.objects.origin)
    session.data = bytearray()
    return session.made
