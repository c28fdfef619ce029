"""What a checkpoint says of itself: the part of each host, and the manifest that makes it complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from training.checkpoint.documents import DamagedError, canonical, parsed_json, sealed, unsealed
from training.checkpoint.grid import Box
from training.checkpoint.leaves import LeafSpec

MANIFEST_SCHEMA: Final = "spotrail.checkpoint/1"
PART_SCHEMA: Final = "spotrail.checkpoint.part/1"


@final
@dataclass(frozen=True, kw_only=True)
class Digest:
    """What the bytes of an object have to be. Exactly one of the two sums is given."""

    bytes: int
    """Its length."""
    sha256: str | None = None
    """Of a document."""
    crc32c: str | None = None
    """Of a chunk: of its values, in hexadecimal; the last four bytes of the object say it again."""

    def to_json(self) -> dict[str, Any]:
        sum_ = {"sha256": self.sha256} if self.sha256 is not None else {"crc32c": self.crc32c}
        return {"bytes": self.bytes, **sum_}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Digest:
        return cls(bytes=data["bytes"], sha256=data.get("sha256"), crc32c=data.get("crc32c"))


@final
@dataclass(frozen=True, kw_only=True)
class ChunkRecord:
    """A stretch of an array in an object."""

    slice: Box
    """What is valid of it, by the indices of the whole array."""
    object: str
    """Its key, from the checkpoint's folder on."""
    digest: Digest

    def to_json(self) -> dict[str, Any]:
        return {"slice": [list(bounds) for bounds in self.slice], "object": self.object, **self.digest.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ChunkRecord:
        box = tuple((start, stop) for start, stop in data["slice"])
        return cls(slice=box, object=data["object"], digest=Digest.from_json(data))


@final
@dataclass(frozen=True, kw_only=True)
class LeafRecord:
    """What one host has of an array."""

    spec: LeafSpec
    folder: str
    """Of the zarr array, from the checkpoint's folder on."""
    objects: tuple[ChunkRecord, ...]

    def to_json(self) -> dict[str, Any]:
        objects = [record.to_json() for record in self.objects]
        return {**leaf_json(self.spec), "folder": self.folder, "objects": objects}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LeafRecord:
        objects = tuple(ChunkRecord.from_json(record) for record in data["objects"])
        return cls(spec=leaf_spec(data), folder=data["folder"], objects=objects)


@final
@dataclass(frozen=True, kw_only=True)
class HostPart:
    """Everything that one host has written."""

    host: int
    hosts: int
    leaves: tuple[LeafRecord, ...]
    documents: Mapping[str, Digest]
    """The `zarr.json` of its arrays."""

    def content(self) -> bytes:
        """The bytes of `PART-{host}.json`."""
        return canonical(
            {
                "schema": PART_SCHEMA,
                "host": self.host,
                "hosts": self.hosts,
                "leaves": [leaf.to_json() for leaf in self.leaves],
                "documents": {key: digest.to_json() for key, digest in self.documents.items()},
            }
        )

    @classmethod
    def of(cls, content: bytes, where: str) -> HostPart:
        """Raises DamagedError."""
        data = parsed_json(content, where)
        try:
            return cls(
                host=data["host"],
                hosts=data["hosts"],
                leaves=tuple(LeafRecord.from_json(leaf) for leaf in data["leaves"]),
                documents={key: Digest.from_json(digest) for key, digest in data["documents"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedError(f"{where} is damaged, or of another version: it lacks {error}") from error

    def digests(self) -> dict[str, Digest]:
        """Of every object that it names."""
        chunks = {record.object: record.digest for leaf in self.leaves for record in leaf.objects}
        return {**chunks, **self.documents}


@final
@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A complete checkpoint."""

    run: str
    attempt: str
    epoch: int
    """Of the lease under which it was committed: later attempts have greater ones."""
    step: int
    """Updates that its state has seen."""
    created: str
    """RFC 3339, by the clock of the host that committed it."""
    hosts: int
    """How many wrote it; each has a part."""
    leaves: tuple[LeafSpec, ...]
    """The arrays in the order of the tree."""
    objects: Mapping[str, Digest]
    """Every other object of the checkpoint, by its key from the checkpoint's folder on."""
    fingerprint: Mapping[str, Any] | None = None
    """What the numbers depend on; see `training.fingerprint`."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """What the loop says beside its arrays: random numbers, place in the data, state of the runtime."""

    @property
    def size(self) -> int:
        """Bytes of all its objects."""
        return sum(digest.bytes for digest in self.objects.values())

    def content(self) -> bytes:
        """The bytes of `MANIFEST.json`."""
        known = {name: getattr(self, name) for name in _PLAIN}
        return sealed(
            {
                "schema": MANIFEST_SCHEMA,
                **known,
                "leaves": [leaf_json(spec) for spec in self.leaves],
                "objects": {key: digest.to_json() for key, digest in self.objects.items()},
            }
        )

    @classmethod
    def of(cls, content: bytes, where: str) -> Manifest:
        """Raises DamagedError."""
        data = unsealed(content, where)
        if data.get("schema") != MANIFEST_SCHEMA:
            raise DamagedError(f"{where} is of the schema {data.get('schema')!r}; this version reads {MANIFEST_SCHEMA}")
        return cls(
            **{name: data[name] for name in _PLAIN},
            leaves=tuple(leaf_spec(leaf) for leaf in data["leaves"]),
            objects={key: Digest.from_json(digest) for key, digest in data["objects"].items()},
        )


_PLAIN: Final = ("run", "attempt", "epoch", "step", "created", "hosts", "fingerprint", "meta")


def leaf_json(spec: LeafSpec) -> dict[str, Any]:
    """An array without its values, as JSON."""
    return {"leaf": spec.path, "shape": list(spec.shape), "dtype": spec.dtype, "prng": spec.prng}


def leaf_spec(data: Mapping[str, Any]) -> LeafSpec:
    """The opposite of `leaf_json`."""
    return LeafSpec(path=data["leaf"], shape=tuple(data["shape"]), dtype=data["dtype"], prng=data["prng"])
