"""What is done to objects that are there: metadata, deletion, copies, composition, restoration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.google_cloud.errors import Refusal
from tests.google_cloud.http_server import Answer, Reply, Request
from tests.google_cloud.object_places import bucket_of, check_name, version_of
from tests.google_cloud.object_preconditions import Preconditions, asked, number
from tests.google_cloud.object_store import WRITABLE, Checksums, Version, crc32c, crc32c_text, writable
from tests.google_cloud.shapes import Item
from tests.google_cloud.world import World

_MOST_SOURCES: Final = 32
"""That one composition takes."""


def patch(world: World, request: Request) -> Answer:
    """Fields that are given replace what is there; null takes away, also within `metadata`."""
    version = version_of(world, request)
    asked(request.query).check(version)
    for name, value in _settable(request.body).items():
        if name == "metadata" and value is not None:
            merged = version.item.get("metadata", {}) | value
            value = {key: text for key, text in merged.items() if text is not None}
        _set(version, name, value)
    return _changed(world, version)


def update(world: World, request: Request) -> Answer:
    """All fields that a client may set become what is given."""
    version = version_of(world, request)
    asked(request.query).check(version)
    for name in WRITABLE - {"storageClass"}:
        _set(version, name, _settable(request.body).get(name))
    return _changed(world, version)


def delete(world: World, request: Request) -> Answer:
    """With `generation` that version, for good."""
    version = version_of(world, request)
    asked(request.query).check(version)
    bucket = bucket_of(world, request.parts["bucket"])
    world.objects.delete(bucket, version, world.now, for_good="generation" in request.query)
    return Reply(code=204)


def restore(world: World, request: Request) -> Answer:
    """A soft-deleted generation, in place of the live one."""
    name, bucket = request.parts["object"], bucket_of(world, request.parts["bucket"])
    generation = number(request.query, "generation")
    if generation is None:
        raise Refusal(400, "required", "Required parameter: generation")
    version = world.objects.find_soft_deleted(bucket["name"], name, generation, world.now)
    if version is None:
        raise Refusal(404, "notFound", f"No such object: {bucket['name']}/{name}#{generation}")
    asked(request.query).check(world.objects.find(bucket["name"], name))
    return world.objects.restore(bucket, version, world.now).shown(world.objects.origin)


def copy(world: World, request: Request) -> Answer:
    """`copyTo`: the new object."""
    return _copied(world, request).shown(world.objects.origin)


def rewrite(world: World, request: Request) -> Answer:
    """`rewriteTo`: always done in one call."""
    made = _copied(world, request)
    size = str(len(made.content))
    return {
        "kind": "storage#rewriteResponse",
        "totalBytesRewritten": size,
        "objectSize": size,
        "done": True,
        "resource": made.shown(world.objects.origin),
    }


def move(world: World, request: Request) -> Answer:
    """`moveTo` within a bucket: the copy is there and the source gone at once."""
    bucket = bucket_of(world, request.parts["bucket"])
    source = version_of(world, request, "source", "sourceGeneration")
    if source.name == request.parts["target"]:
        raise Refusal(400, "invalid", "Source and destination object names must be different.")
    made = _copied(world, request, same_bucket=True)
    world.objects.delete(bucket, source, world.now, for_good=False)
    return made.shown(world.objects.origin)


def compose(world: World, request: Request) -> Answer:
    """Up to 32 objects of the bucket, one after the other."""
    bucket, name = bucket_of(world, request.parts["bucket"]), check_name(request.parts["object"])
    asked(request.query).check(world.objects.find(bucket["name"], name))
    given = request.body.get("sourceObjects", [])
    if not 1 <= len(given) <= _MOST_SOURCES:
        raise Refusal(400, "invalid", f"The number of source components must be 1 to {_MOST_SOURCES}.")
    sources = [_component(world, bucket, source) for source in given]
    content = memoryview(b"".join(source.content for source in sources))
    fields = writable(request.body.get("destination", {}))
    fields |= {"componentCount": sum(int(source.item.get("componentCount", 1)) for source in sources)}
    fields.setdefault("contentType", sources[0].item.get("contentType", "application/octet-stream"))
    sums = Checksums(crc32c=crc32c_text(crc32c(content)), md5=None)
    return world.objects.put(bucket, name, fields, content, sums, world.now).shown(world.objects.origin)


def _component(world: World, bucket: Item, source: Mapping[str, Any]) -> Version:
    name, generation = str(source.get("name", "")), number(source, "generation")
    version = world.objects.find(bucket["name"], name, generation)
    if version is None:
        raise Refusal(404, "notFound", f"Object {bucket['name']}/{name} not found.")
    wanted = number(source.get("objectPreconditions", {}), "ifGenerationMatch")
    Preconditions(generation=wanted).check(version)
    return version


def _copied(world: World, request: Request, *, same_bucket: bool = False) -> Version:
    source = version_of(world, request, "source", "sourceGeneration")
    target = bucket_of(world, request.parts["bucket" if same_bucket else "target_bucket"])
    name = check_name(request.parts["target"])
    asked(request.query, "ifSource").check(source)
    asked(request.query).check(world.objects.find(target["name"], name))
    fields = writable(source.item) | writable(request.body)
    if "componentCount" in source.item:
        fields["componentCount"] = source.item["componentCount"]
    sums = Checksums(crc32c=source.item["crc32c"], md5=source.item.get("md5Hash"))
    return world.objects.put(target, name, fields, source.content, sums, world.now)


def _settable(body: Mapping[str, Any]) -> dict[str, Any]:
    """Of what was sent the fields that can be set; the API passes over the others."""
    return {name: value for name, value in body.items() if name in WRITABLE}


def _set(version: Version, name: str, value: Any) -> None:
    if value is None:
        version.item.pop(name, None)
    else:
        version.item[name] = value


def _changed(world: World, version: Version) -> Item:
    version.item.update(metageneration=str(version.metageneration + 1), updated=world.stamp())
    return version.shown(world.objects.origin)
