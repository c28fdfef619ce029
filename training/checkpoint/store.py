"""An object store with preconditions: all that checkpoints need of a folder or of Cloud Storage.

Keys are relative to the root and use `/`. What was written is durable when the call returns; an object is whole or not
there. Listings may lag behind (they are never the only proof of anything here); reads of one object may not.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from training.checkpoint.errors import CheckpointError

Part: TypeAlias = bytes | npt.NDArray[np.uint8]
"""A stretch of the bytes of an object; arrays are written from where they lie."""
SCHEME = "gs://"
_ADDRESS: Final = re.compile(r"\w[\w+.-]*://")


@final
@dataclass(frozen=True, kw_only=True)
class Versioned:
    """An object, and the generation that a conditional write has to name."""

    content: bytes
    generation: str


class AbstractStore(ABC):
    """Objects under one root. Every method may be called from any thread, and raises StoreError where it fails."""

    threads: int
    """So many writes at once are worth it in the background."""
    url: str
    """What the root is called, the same from every machine that sees it."""

    @abstractmethod
    def get(self, key: str) -> bytes:
        """The bytes of an object. Raises NotThereError."""

    @abstractmethod
    def create(self, key: str, parts: Sequence[Part]) -> None:
        """Write an object that is not there yet. Raises AlreadyThereError, and then has changed nothing."""

    @abstractmethod
    def read(self, key: str) -> Versioned | None:
        """An object with its generation; None where there is none."""

    @abstractmethod
    def replace(self, key: str, content: bytes, generation: str | None) -> None:
        """Write an object over the generation that was read, None for one that was not there. Raises ChangedError."""

    @abstractmethod
    def folders(self) -> tuple[str, ...]:
        """The names of the folders in the root, sorted: one delimited listing."""

    @abstractmethod
    def objects(self) -> tuple[str, ...]:
        """The names of the objects in the root itself, sorted: one delimited listing."""

    @abstractmethod
    def keys(self, folder: str) -> tuple[str, ...]:
        """The keys of all objects in a folder and below, sorted."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is fine."""

    def close(self) -> None:
        """Let go of connections."""
        return


def open_store(root: str | Path | AbstractStore) -> AbstractStore:
    """The store at `gs://bucket/prefix`, or in a folder, which need not be there yet.

    Raises CheckpointError for an address of neither, StoreError where there are no credentials for a bucket.
    """
    if isinstance(root, AbstractStore):
        return root
    if str(root).startswith(SCHEME):
        from training.checkpoint.gcs_store import GcsStore

        return GcsStore(str(root))
    if not str(root).strip():
        raise CheckpointError(f"the address of the checkpoints is empty; name a folder or {SCHEME}bucket/prefix")
    if str(root).startswith("gs:"):
        raise CheckpointError(f"{root}: did you mean {SCHEME}{str(root)[3:].lstrip('/')}?")
    if found := _ADDRESS.match(str(root)):
        hint = f"; did you mean {SCHEME}{str(root)[found.end() :]}?" if found[0].lower() == SCHEME else ""
        raise CheckpointError(f"{root}: checkpoints need a folder or {SCHEME}bucket/prefix, not {found[0]}{hint}")
    from training.checkpoint.local_store import LocalStore

    return LocalStore(Path(root))
