"""Whether a checkpoint is what its manifest says, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from training.checkpoint.checksums import crc32c, little_endian
from training.checkpoint.documents import DamagedError, sha256
from training.checkpoint.errors import NotThereError
from training.checkpoint.manifest import Digest, Manifest
from training.checkpoint.names import MANIFEST
from training.checkpoint.store import AbstractStore

_THREADS: Final = 8


def read_manifest(store: AbstractStore, prefix: str) -> Manifest:
    """The manifest of a checkpoint. Raises NotThereError where it is not complete, DamagedError."""
    key = f"{prefix}/{MANIFEST}"
    manifest = Manifest.of(store.get(key), f"{store.url}/{key}")
    if not prefix.startswith(f"{manifest.step:08d}-"):
        raise DamagedError(f"{store.url}/{key} is that of step {manifest.step}")
    return manifest


def problems(store: AbstractStore, prefix: str, manifest: Manifest) -> tuple[str, ...]:
    """What is wrong with the objects of a checkpoint, one line each; every byte is read. Raises StoreError."""

    def problem(item: tuple[str, Digest]) -> str | None:
        try:
            get_verified(store, prefix, *item)
        except DamagedError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(problem, sorted(manifest.objects.items()))
        return tuple(line for line in found if line is not None)


def get_verified(store: AbstractStore, prefix: str, key: str, digest: Digest) -> bytes:
    """The bytes of an object, as they were written. Raises DamagedError, StoreError."""
    try:
        content = store.get(f"{prefix}/{key}")
    except NotThereError as error:
        raise DamagedError(f"{prefix}/{key} is missing") from error
    if len(content) != digest.bytes:
        raise DamagedError(f"{prefix}/{key} has {len(content)} bytes of {digest.bytes}")
    if digest.sha256 is not None and sha256(content) != digest.sha256:
        raise DamagedError(f"{prefix}/{key} is damaged: its sha256 is another")
    if digest.crc32c is not None:
        checksum = crc32c(np.frombuffer(content, np.uint8)[:-4])
        if f"{checksum:08x}" != digest.crc32c or content[-4:] != little_endian(checksum):
            raise DamagedError(f"{prefix}/{key} is damaged: its crc32c is another")
    return content


def get_all_verified(store: AbstractStore, prefix: str, digests: Mapping[str, Digest]) -> dict[str, bytes]:
    """Several objects at once. Raises DamagedError, StoreError."""
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda item: get_verified(store, prefix, *item), digests.items())
        return dict(zip(digests, found, strict=True))
