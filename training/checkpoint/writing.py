"""One checkpoint, from copies in memory to a manifest: the order in which its objects are written is its safety.

Owner, arrays, the part of each host, manifest. Nobody takes a checkpoint without a manifest for one, and a manifest is
only written over objects that are there for good.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import jax

from training.checkpoint import lease, zarr_arrays
from training.checkpoint.documents import canonical, sha256
from training.checkpoint.errors import AlreadyThereError, LeaseLostError, NotThereError, SaveFailedError
from training.checkpoint.leaves import LeafSpec, Owns, slug
from training.checkpoint.manifest import ChunkRecord, Digest, HostPart, LeafRecord, Manifest
from training.checkpoint.names import MANIFEST, OWNER, host_folder, part_name, prefix_of
from training.checkpoint.owner import Owner
from training.checkpoint.staging import StagedChunk, StagedLeaf
from training.checkpoint.store import AbstractStore, Part
from training.checkpoint.verification import read_manifest
from training.checkpoint.workers import Workers

_POLL_SECONDS: Final = 0.2


@final
@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The processes of a run. The first of them commits, the others only bring their parts."""

    index: int = 0
    """Which of them this is."""
    count: int = 1
    wait_seconds: float = 600.0
    """How long the first one waits for the parts of the others."""
    owns: Owns = field(default=lambda device: device.process_index == jax.process_index())
    """Whether this one writes what lies on a device."""

    @property
    def first(self) -> bool:
        return self.index == 0


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Commit:
    """All that is known of a checkpoint before it is written."""

    held: lease.Lease
    step: int
    specs: tuple[LeafSpec, ...]
    """Every array of the tree, whoever writes it."""
    staged: tuple[StagedLeaf, ...]
    """What this host writes."""
    fingerprint: Mapping[str, Any] | None
    meta: Mapping[str, Any]
    hosts: Hosts

    @property
    def prefix(self) -> str:
        return prefix_of(self.step, self.held.attempt)


def write(store: AbstractStore, commit: Commit, workers: Workers) -> None:
    """Write a checkpoint. When this returns on the first host, it is complete.

    Raises SaveFailedError, LeaseLostError or StoreError; nothing is committed then.
    """
    digests: dict[str, Digest] = {}
    if commit.hosts.first:
        held = commit.held
        lease.check(store, held)
        owner = Owner(run=held.run, attempt=held.attempt, epoch=held.epoch, prefix=commit.prefix, root=store.url)
        _create(store, f"{commit.prefix}/{OWNER}", [owner.content()])
        digests[OWNER] = _of_document(owner.content())
    content = _write_arrays(store, commit, workers).content()
    _create(store, f"{commit.prefix}/{part_name(commit.hosts.index)}", [content])
    if commit.hosts.first:
        _write_manifest(store, commit, digests)


def _create(store: AbstractStore, key: str, parts: Sequence[Part]) -> None:
    """Write an object; one that is there already must be the same: an answer was lost, or this is another try."""
    try:
        store.create(key, parts)
    except AlreadyThereError as error:
        if store.get(key) != b"".join(map(bytes, parts)):
            raise SaveFailedError(
                f"{store.url}/{key} is there already with other bytes: another process writes under the same attempt; "
                "give each its own"
            ) from error


def _write_arrays(store: AbstractStore, commit: Commit, workers: Workers) -> HostPart:
    """The arrays of this host."""
    tasks: list[Callable[[], tuple[str, Digest]]] = []
    folders: list[str] = []
    for number, leaf in enumerate(commit.staged):
        folder = f"{host_folder(commit.hosts.index)}/{number:05d}.{slug(leaf.spec.path)}"
        folders.append(folder)
        if leaf.chunks or commit.hosts.first:
            tasks.append(_metadata_task(store, commit.prefix, folder, leaf))
        tasks += [_chunk_task(store, commit.prefix, folder, chunk) for chunk in leaf.chunks]
    digests = dict(workers.each(lambda task: task(), tasks))
    records = [_record(folder, leaf, digests) for folder, leaf in zip(folders, commit.staged, strict=True)]
    documents = {key: digest for key, digest in digests.items() if digest.sha256 is not None}
    return HostPart(host=commit.hosts.index, hosts=commit.hosts.count, leaves=tuple(records), documents=documents)


def _metadata_task(
    store: AbstractStore, prefix: str, folder: str, leaf: StagedLeaf
) -> Callable[[], tuple[str, Digest]]:
    def task() -> tuple[str, Digest]:
        content = canonical(zarr_arrays.metadata(leaf.spec, leaf.chunk))
        key = f"{folder}/{zarr_arrays.METADATA}"
        _create(store, f"{prefix}/{key}", [content])
        return key, _of_document(content)

    return task


def _chunk_task(store: AbstractStore, prefix: str, folder: str, chunk: StagedChunk) -> Callable[[], tuple[str, Digest]]:
    def task() -> tuple[str, Digest]:
        checksum = chunk.seal()
        key = f"{folder}/{zarr_arrays.chunk_name(chunk.cell)}"
        _create(store, f"{prefix}/{key}", [chunk.object])
        return key, Digest(bytes=chunk.object.size, crc32c=f"{checksum:08x}")

    return task


def _record(folder: str, leaf: StagedLeaf, digests: Mapping[str, Digest]) -> LeafRecord:
    named = [(f"{folder}/{zarr_arrays.chunk_name(chunk.cell)}", chunk.boxes) for chunk in leaf.chunks]
    objects = [ChunkRecord(slice=box, object=key, digest=digests[key]) for key, boxes in named for box in boxes]
    return LeafRecord(spec=leaf.spec, folder=folder, objects=tuple(objects))


def _write_manifest(store: AbstractStore, commit: Commit, digests: dict[str, Digest]) -> None:
    """Gather the parts, and commit."""
    for host, content in enumerate(_parts(store, commit)):
        digests[part_name(host)] = _of_document(content)
        digests |= HostPart.of(content, f"{commit.prefix}/{part_name(host)}").digests()
    held = commit.held
    manifest = Manifest(
        run=held.run,
        attempt=held.attempt,
        epoch=held.epoch,
        step=commit.step,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        hosts=commit.hosts.count,
        leaves=commit.specs,
        objects=digests,
        fingerprint=commit.fingerprint,
        meta=commit.meta,
    )
    lease.check(store, held)
    try:
        store.create(f"{commit.prefix}/{MANIFEST}", [manifest.content()])
    except AlreadyThereError as error:
        if read_manifest(store, commit.prefix).epoch != held.epoch:
            raise LeaseLostError(f"{store.url}/{commit.prefix} was committed by another attempt") from error


def _parts(store: AbstractStore, commit: Commit) -> Sequence[bytes]:
    """What every host says it has written. Raises SaveFailedError naming the hosts that said nothing in time."""
    found: dict[int, bytes] = {}
    end = time.monotonic() + commit.hosts.wait_seconds
    while True:
        missing = sorted(set(range(commit.hosts.count)) - set(found))
        for host in missing:
            try:
                found[host] = store.get(f"{commit.prefix}/{part_name(host)}")
            except NotThereError:
                continue
        if len(found) == commit.hosts.count:
            return [found[host] for host in range(commit.hosts.count)]
        if time.monotonic() > end:
            missing = sorted(set(range(commit.hosts.count)) - set(found))
            raise SaveFailedError(
                f"{store.url}/{commit.prefix}: no part after {commit.hosts.wait_seconds:g} s from host "
                + ", ".join(map(str, missing))
            )
        time.sleep(_POLL_SECONDS)


def _of_document(content: bytes) -> Digest:
    return Digest(bytes=len(content), sha256=sha256(content))
