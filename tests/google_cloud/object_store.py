"""The objects of Cloud Storage in memory: every version with its bytes, live, noncurrent or soft-deleted.

All changes are made under the lock of the world. Generations are microseconds of the world's clock, and never fall or
repeat. What a world was given as `Part.HEARTBEATS` is an object like any other, live until it is replaced or deleted.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

import google_crc32c

from tests.google_cloud.instants import rfc3339
from tests.google_cloud.shapes import Item

_PIECE: Final = 1 << 20


@final
@dataclass(frozen=True, kw_only=True)
class Checksums:
    """Of the bytes of an object, as the API writes them."""

    crc32c: str
    """Base64 of the four bytes, the high one first."""
    md5: str | None
    """Base64; None of an object that was composed."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Version:
    """One generation of an object."""

    item: Item
    """Its metadata; what changes (`metageneration`, `metadata`) is changed in place."""
    content: memoryview
    """Never changes."""

    @property
    def name(self) -> str:
        return str(self.item["name"])

    @property
    def generation(self) -> int:
        return int(self.item["generation"])

    @property
    def metageneration(self) -> int:
        return int(self.item["metageneration"])

    def shown(self, origin: str) -> Item:
        """The resource of the API. Google's client follows its links, so they lead to `origin`: see `Objects`."""
        etag = base64.b64encode(f"{self.generation}/{self.metageneration}".encode()).decode()
        known = {name: value for name, value in self.item.items() if name != "content"}
        path = f"/storage/v1/b/{self.item['bucket']}/o/{urllib.parse.quote(self.name, safe='')}"
        return known | {
            "size": str(len(self.content)),
            "etag": etag,
            "selfLink": f"{origin}{path}",
            "mediaLink": f"{origin}/download{path}?generation={self.generation}&alt=media",
        }


class _Bucket:
    """The versions of one bucket."""

    def __init__(self) -> None:
        self.live: dict[str, Version] = {}
        self.noncurrent: list[Version] = []
        self.soft_deleted: list[Version] = []


@final
class Objects:
    """All of them. `seeds` are the objects that a world was given, by `bucket/name`, with their bytes in `content`."""

    def __init__(self, seeds: dict[str, Item]) -> None:
        self._seeds = seeds
        self._buckets: dict[str, _Bucket] = {}
        self._generation = 0
        self.origin = "https://www.googleapis.com"
        """Where links of objects lead; a server that starts puts itself there."""

    def live(self, bucket: str) -> dict[str, Version]:
        """The live versions by name."""
        seeds = {item["name"]: _seed(item) for item in self._seeds.values() if item["bucket"] == bucket}
        return {**seeds, **self._of(bucket).live}

    def find(self, bucket: str, name: str, generation: int | None = None) -> Version | None:
        """The live version, or that of a generation, live or noncurrent."""
        live = self._of(bucket).live.get(name)
        if live is None and (item := self._seeds.get(f"{bucket}/{name}")) is not None:
            live = _seed(item)
        if generation is None or (live is not None and live.generation == generation):
            return live
        return _of_generation(self._of(bucket).noncurrent, name, generation)

    def find_soft_deleted(self, bucket: str, name: str, generation: int, now: datetime.datetime) -> Version | None:
        """A version that can still be restored."""
        return _of_generation(self.soft_deleted(bucket, now), name, generation)

    def noncurrent(self, bucket: str) -> list[Version]:
        """Versions that were replaced or deleted in a bucket with versioning."""
        return list(self._of(bucket).noncurrent)

    def soft_deleted(self, bucket: str, now: datetime.datetime) -> list[Version]:
        """What was deleted and is kept for a while; what is past its time goes now."""
        held = self._of(bucket)
        held.soft_deleted = [
            each for each in held.soft_deleted if datetime.datetime.fromisoformat(each.item["hardDeleteTime"]) > now
        ]
        return list(held.soft_deleted)

    def holds(self, bucket: str) -> bool:
        """Whether anything is in a bucket that keeps it from being deleted."""
        return bool(self.live(bucket) or self._of(bucket).noncurrent)

    def put(
        self,
        bucket: Item,
        name: str,
        fields: Mapping[str, Any],
        content: memoryview,
        sums: Checksums,
        now: datetime.datetime,
    ) -> Version:
        """A new live version in place of the one that there is."""
        self._retire(bucket, name, now)
        version = self._made(bucket, name, fields, content, sums, now)
        self._of(bucket["name"]).live[name] = version
        return version

    def delete(self, bucket: Item, version: Version, now: datetime.datetime, *, for_good: bool) -> None:
        """`for_good` names a generation: it does not become noncurrent, though it may be soft-deleted."""
        held = self._of(bucket["name"])
        if version in held.noncurrent:
            held.noncurrent.remove(version)
            self._soft_delete(bucket, version, now)
        else:
            self._retire(bucket, version.name, now, for_good=for_good)

    def damage(self, bucket: str, name: str, content: bytes) -> None:
        """Let other bytes lie under a live object, whose generation and checksums stay. Raises KeyError."""
        live = self._of(bucket).live
        live[name] = replace(live[name], content=memoryview(content))

    def lose(self, bucket: str, name: str) -> None:
        """Take a live object away without a trace. Raises KeyError."""
        del self._of(bucket).live[name]

    def restore(self, bucket: Item, version: Version, now: datetime.datetime) -> Version:
        """A soft-deleted version becomes live again, under a new generation."""
        self._of(bucket["name"]).soft_deleted.remove(version)
        sums = Checksums(crc32c=version.item["crc32c"], md5=version.item.get("md5Hash"))
        return self.put(bucket, version.name, writable(version.item), version.content, sums, now)

    def drop(self, bucket: str) -> None:
        """Everything in a bucket, without a trace."""
        self._buckets.pop(bucket, None)
        for path in [path for path, item in self._seeds.items() if item["bucket"] == bucket]:
            del self._seeds[path]

    def bytes_of(self, bucket: str, now: datetime.datetime) -> dict[str, int]:
        """How many bytes there are, by the label `type` of Cloud Monitoring."""
        kinds = {
            "live-object": self.live(bucket).values(),
            "noncurrent-object": self.noncurrent(bucket),
            "soft-deleted-object": self.soft_deleted(bucket, now),
        }
        return {kind: sum(len(version.content) for version in versions) for kind, versions in kinds.items()}

    def _of(self, bucket: str) -> _Bucket:
        return self._buckets.setdefault(bucket, _Bucket())

    def _made(
        self,
        bucket: Item,
        name: str,
        fields: Mapping[str, Any],
        content: memoryview,
        sums: Checksums,
        now: datetime.datetime,
    ) -> Version:
        self._generation = max(self._generation + 1, int(now.timestamp() * 1e6))
        generation, stamp = str(self._generation), rfc3339(now)
        item = {
            "kind": "storage#object",
            "id": f"{bucket['name']}/{name}/{generation}",
            "name": name,
            "bucket": bucket["name"],
            "generation": generation,
            "metageneration": "1",
            "storageClass": bucket["storageClass"],
            **fields,
            "crc32c": sums.crc32c,
            **({} if sums.md5 is None else {"md5Hash": sums.md5}),
            **dict.fromkeys(("timeCreated", "updated", "timeStorageClassUpdated", "timeFinalized"), stamp),
        }
        return Version(item=item, content=content)

    def _retire(self, bucket: Item, name: str, now: datetime.datetime, *, for_good: bool = False) -> None:
        """Take away the live version of a name, if there is one."""
        version = self.find(bucket["name"], name)
        if version is None:
            return
        held = self._of(bucket["name"])
        if held.live.pop(name, None) is None:
            del self._seeds[f"{bucket['name']}/{name}"]
        if bucket.get("versioning", {}).get("enabled") and not for_good:
            version.item["timeDeleted"] = rfc3339(now)
            held.noncurrent.append(version)
        else:
            self._soft_delete(bucket, version, now)

    def _soft_delete(self, bucket: Item, version: Version, now: datetime.datetime) -> None:
        seconds = int(bucket.get("softDeletePolicy", {}).get("retentionDurationSeconds", 0))
        if seconds:
            gone = now + datetime.timedelta(seconds=seconds)
            version.item.update(softDeleteTime=rfc3339(now), hardDeleteTime=rfc3339(gone))
            self._of(bucket["name"]).soft_deleted.append(version)


WRITABLE: Final = frozenset(
    {
        "acl",
        "cacheControl",
        "contentDisposition",
        "contentEncoding",
        "contentLanguage",
        "contentType",
        "customTime",
        "eventBasedHold",
        "metadata",
        "storageClass",
        "temporaryHold",
    }
)
"""The fields that a client may set."""


def writable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Of some fields those that a client may set."""
    return {name: value for name, value in fields.items() if name in WRITABLE and value is not None}


def checksums(content: memoryview) -> Checksums:
    """Of some bytes."""
    md5 = hashlib.md5(content, usedforsecurity=False).digest()
    return Checksums(crc32c=crc32c_text(crc32c(content)), md5=base64.b64encode(md5).decode())


def crc32c(content: memoryview, before: int = 0) -> int:
    """Of some bytes, after others that have `before`. The library wants `bytes`: they are copied piece by piece."""
    for start in range(0, len(content), _PIECE):
        before = google_crc32c.extend(before, bytes(content[start : start + _PIECE]))
    return before


def crc32c_text(value: int) -> str:
    """As the API writes it."""
    return base64.b64encode(value.to_bytes(4, "big")).decode()


def _seed(item: Item) -> Version:
    given = item.get("content", "")
    content = memoryview((given if isinstance(given, str) else json.dumps(given)).encode())
    sums = checksums(content)
    item.update(crc32c=sums.crc32c, md5Hash=sums.md5)
    return Version(item=item, content=content)


def _of_generation(versions: list[Version], name: str, generation: int) -> Version | None:
    found: Iterator[Version] = (each for each in versions if each.name == name and each.generation == generation)
    return next(found, None)
