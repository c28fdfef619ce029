"""Lists of objects: by prefix and glob, with a delimiter, from one name to another, page by page."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import FaultKind
from tests.google_cloud.http_server import Answer, Request
from tests.google_cloud.object_preconditions import number
from tests.google_cloud.object_store import Version
from tests.google_cloud.shapes import Item
from tests.google_cloud.world import World

MOST: Final = 1000
"""The most that a page has; who asks for more gets so many."""
_Entry: TypeAlias = "tuple[str, Version | None]"
"""A name with its version, or a prefix without one."""


def list_objects(world: World, bucket: Item, request: Request) -> Answer:
    """One page. Versions of a name come in the order of their generations."""
    query = request.query
    entries = list(_entries(_wanted(_versions(world, bucket, query), request), query))
    start = _start(entries, query)
    size = min(number(query, "maxResults") or MOST, MOST)
    page = entries[start : start + size]
    answer: dict[str, Any] = {"kind": "storage#objects"}
    if items := [version.shown(world.objects.origin) for _, version in page if version is not None]:
        answer["items"] = items
    if prefixes := [name for name, version in page if version is None]:
        answer["prefixes"] = prefixes
    if request.call.struck(FaultKind.LOOP):
        answer["nextPageToken"] = query.get("pageToken") or _token(("", None))
    elif start + size < len(entries):
        answer["nextPageToken"] = _token(page[-1])
    return answer


def _versions(world: World, bucket: Item, query: Mapping[str, str]) -> Sequence[Version]:
    name = bucket["name"]
    if query.get("softDeleted") == "true":
        if query.get("versions") == "true":
            raise Refusal(400, "invalid", "softDeleted and versions cannot both be true.")
        return world.objects.soft_deleted(name, world.now)
    live = list(world.objects.live(name).values())
    return [*live, *world.objects.noncurrent(name)] if query.get("versions") == "true" else live


def _wanted(versions: Sequence[Version], request: Request) -> Iterator[Version]:
    """Those that the query names, in their order, but for what a stale list has not seen yet."""
    query = request.query
    prefix, first, last = (query.get(name, "") for name in ("prefix", "startOffset", "endOffset"))
    pattern = glob(query["matchGlob"]) if "matchGlob" in query else None
    unseen = [fault.object for fault in request.call.faults if fault.kind is FaultKind.STALE_LIST]
    for version in sorted(versions, key=lambda each: (each.name, each.generation)):
        name = version.name
        fits = name.startswith(prefix) and name >= first and (not last or name < last)
        if (
            fits
            and (pattern is None or pattern.fullmatch(name))
            and not any(fnmatch.fnmatchcase(name, hidden) for hidden in unseen)
        ):
            yield version


def _entries(versions: Iterator[Version], query: Mapping[str, str]) -> Iterator[_Entry]:
    """Names, or what they have in common up to the delimiter."""
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    trailing = query.get("includeTrailingDelimiter") == "true"
    seen = ""
    for version in versions:
        at = version.name.find(delimiter, len(prefix)) if delimiter else -1
        if at < 0:
            yield version.name, version
            continue
        common = version.name[: at + len(delimiter)]
        if common != seen:
            seen = common
            yield common, None
        if trailing and version.name == common:
            yield version.name, version


def _token(entry: _Entry) -> str:
    """Where the next page goes on: after this entry, whatever comes or goes meanwhile."""
    name, version = entry
    text = f"{'' if version is None else version.generation}:{name}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def _start(entries: Sequence[_Entry], query: Mapping[str, str]) -> int:
    token = query.get("pageToken")
    if not token:
        return 0
    try:
        generation, _, name = base64.urlsafe_b64decode(token).decode().partition(":")
        after = (name, int(generation or 0))
    except (binascii.Error, ValueError):
        raise Refusal(400, "invalid", f"Invalid page token: {token}") from None
    order: Callable[[_Entry], tuple[str, int]] = lambda entry: (entry[0], entry[1].generation if entry[1] else 0)  # noqa: E731
    return sum(order(entry) <= after for entry in entries) if after != ("", 0) else 0


def glob(text: str) -> re.Pattern[str]:
    """The globs of Cloud Storage: `*` and `?` stay within a folder, `**` does not, `{a,b}` is either."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\{[^}]*\})", text)
    return re.compile("".join(_GLOB.get(part) or _either(part) for part in parts), re.DOTALL)


_GLOB: Final[Mapping[str, str]] = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _either(part: str) -> str:
    if part.startswith("{"):
        return "(?:" + "|".join(map(re.escape, part[1:-1].split(","))) + ")"
    return re.escape(part)
