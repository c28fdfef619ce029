"""Where objects are: the bucket and the version that a request names."""

from __future__ import annotations

from typing import Final

from policies.audit.record import Part
from tests.google_cloud.errors import Refusal
from tests.google_cloud.http_server import Request
from tests.google_cloud.object_preconditions import number
from tests.google_cloud.object_store import Version
from tests.google_cloud.shapes import Item
from tests.google_cloud.world import World

_LONGEST: Final = 1024
"""Bytes of a name."""


def bucket_of(world: World, name: str) -> Item:
    """A bucket by its name. Raises Refusal (404)."""
    found = world.inventory[Part.BUCKETS].get(name)
    if found is None:
        raise Refusal(404, "notFound", "The specified bucket does not exist.")
    return found


def version_of(world: World, request: Request, part: str = "object", generation: str = "generation") -> Version:
    """The version that a request names by a part of its path and, maybe, a generation. Raises Refusal (404)."""
    bucket = bucket_of(world, request.parts["source_bucket" if "source_bucket" in request.parts else "bucket"])["name"]
    name, wanted = request.parts[part], number(request.query, generation)
    found = world.objects.find(bucket, name, wanted)
    if found is None:
        raise absent(bucket, name)
    return found


def absent(bucket: str, name: str) -> Refusal:
    """There is no such object."""
    return Refusal(404, "notFound", f"No such object: {bucket}/{name}")


def check_name(name: str) -> str:
    """A name that an object may have. Raises Refusal (400)."""
    if not name:
        raise Refusal(400, "required", "Required parameter: name")
    if len(name.encode()) > _LONGEST or name in (".", "..") or {"\r", "\n"} & set(name):
        raise Refusal(400, "invalid", f"The object name {name[:60]!r} is not valid.")
    return name
