"""A model in the cache: a folder that is there whole or not at all, and what lies beside it until it is.

    bucket-models-llama-1f0c3a5b7d9e2468/       the model, once it is whole
    bucket-models-llama-1f0c3a5b7d9e2468.part/  until then: `files/` and their `journal`
    bucket-models-llama-1f0c3a5b7d9e2468.lock   held by the one process that downloads it

The digest is of the names and generations of the objects, so that a model which was uploaded anew is another entry.
Older entries are left alone: another server may read them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from inference.errors import ServingError
from inference.weights.sources.address import Address
from inference.weights.sources.attempts import Halt
from inference.weights.sources.bucket import RemoteObject

_DIGEST_SHOWN: Final = 16
_LONGEST_NAME: Final = 160
_POLL_SECONDS: Final = 0.1
_SLACK: Final = 16 << 20
"""Bytes that stay free beside a model, for journals and what else the machine writes."""
_GIB: Final = 1 << 30


@final
@dataclass(frozen=True, kw_only=True)
class Entry:
    """One version of one model."""

    cache: Path
    name: str
    files: Mapping[str, RemoteObject]
    """By their paths in the folder."""

    @staticmethod
    def of(cache: Path, address: Address, files: Mapping[str, RemoteObject]) -> Entry:
        """Where these objects belong."""
        said = [str(address), sorted((each.name, each.generation) for each in files.values())]
        digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:_DIGEST_SHOWN]
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{address.bucket}/{address.prefix}").strip("-")
        return Entry(cache=cache, name=f"{plain[:_LONGEST_NAME]}-{digest}", files=files)

    @property
    def folder(self) -> Path:
        """The model."""
        return self.cache / self.name

    @property
    def part(self) -> Path:
        """What has come of it."""
        return self.cache / f"{self.name}.part"

    @property
    def arriving(self) -> Path:
        """The folder that becomes the model."""
        return self.part / "files"

    @property
    def journal(self) -> Path:
        """Of what lies in `arriving` for good."""
        return self.part / "journal"

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(each.bytes for each in self.files.values())

    def is_whole(self) -> bool:
        """Whether the model is here. Raises ServingError where something was taken from it."""
        if not self.folder.exists():
            return False
        for path, remote in self.files.items():
            if _size(self.folder / path) != remote.bytes:
                raise ServingError(
                    f"{self.folder / path}: is not the {remote.bytes} bytes that were downloaded; remove {self.folder} "
                    "to have the model downloaded again"
                )
        return True

    @contextlib.contextmanager
    def locked(self, waiting: Callable[[str], None], halt: Halt) -> Iterator[None]:
        """Alone with this entry, among all processes of the machine; `waiting` is told who is at it while it waits.

        Raises ServingError where the cache cannot be written, StoppedError.
        """
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            file = os.open(self.cache / f"{self.name}.lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise ServingError(f"{self.cache}: {error.strerror}; name a cache folder that can be written") from error
        try:
            _lock(file, waiting, halt)
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(file)

    def prepare(self) -> None:
        """Make the files at their full size, so that a disk that is too small is found before anything is fetched.

        Raises ServingError.
        """
        lacking = {path: each for path, each in self.files.items() if _size(self.arriving / path) != each.bytes}
        needed, free = sum(each.bytes for each in lacking.values()), shutil.disk_usage(self.cache).free
        if needed + _SLACK > free:
            raise self.too_small(f"{needed / _GIB:.2f} GiB are needed and {free / _GIB:.2f} free")
        try:
            for path, remote in lacking.items():
                _allocate(self.arriving / path, remote.bytes)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise self.too_small(error.strerror) from error

    def resumable(self) -> frozenset[str]:
        """The files of which something may lie here: those with their full size."""
        return frozenset(path for path, each in self.files.items() if _size(self.arriving / path) == each.bytes)

    def commit(self) -> None:
        """Let what has come be the model, at once. All of it must be there."""
        for folder in sorted({path.parent for path in (self.arriving / name for name in self.files)} | {self.arriving}):
            _flush(folder)
        self.arriving.rename(self.folder)
        _flush(self.cache)
        self.clear()

    def clear(self) -> None:
        """Take away what was needed for the download alone."""
        shutil.rmtree(self.part, ignore_errors=True)

    def too_small(self, why: str | None) -> ServingError:
        """What is said of a disk without room for it."""
        others = sorted(path.name for path in self.cache.iterdir() if path.is_dir() and path != self.part)
        kept = f"; older models are kept there: {', '.join(others[:5])}" if others else ""
        return ServingError(f"{self.cache}: no room for the model: {why}; free some, or name a cache elsewhere{kept}")


def _lock(file: int, waiting: Callable[[str], None], halt: Halt) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting(f"for process {os.pread(file, 20, 0).decode(errors='replace') or '?'}, which downloads it")
            halt.wait(_POLL_SECONDS)
        else:
            return


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() and not path.is_symlink() else None


def _allocate(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        if size:
            os.posix_fallocate(file.fileno(), 0, size)


def _flush(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
