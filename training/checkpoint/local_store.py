"""Checkpoints in a folder: every object is written beside its place, synced, and linked into it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, final

import numpy as np
import numpy.typing as npt

from training.checkpoint.errors import AlreadyThereError, ChangedError, CheckpointError, NotThereError, StoreError
from training.checkpoint.store import AbstractStore, Part, Versioned
from training.durable import sync

_PAGE: Final = 4096
_DIRECT_BYTES: Final = 1 << 20
"""From so many on, an object is written past the page cache."""
_DIRECT_MOST: Final = 1 << 30
"""In one system call; Linux takes a page less than 2 GiB."""
_O_DIRECT: Final = getattr(os, "O_DIRECT", 0)


@final
class LocalStore(AbstractStore):
    """A folder of this machine, or of a file system that many machines see and that has hard links and locks."""

    threads = 1  # more take from the step, and a disk is as fast with one

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise CheckpointError(f"{folder} is a file; checkpoints need a folder or gs://bucket/prefix")
        self.folder = folder.absolute()
        self.url = str(self.folder)

    def get(self, key: str) -> bytes:
        try:
            return (self.folder / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotThereError(f"{self.folder / key} is not there") from error
        except OSError as error:
            raise StoreError(f"{self.folder / key} cannot be read: {error.strerror}") from error

    def create(self, key: str, parts: Sequence[Part]) -> None:
        target = self.folder / key
        with self._said(target), self._written(target, parts) as temporary:
            try:
                os.link(temporary, target)
            except FileExistsError as error:
                raise AlreadyThereError(f"{target} is there already") from error
        with self._said(target):
            sync(target.parent)

    def read(self, key: str) -> Versioned | None:
        try:
            content = self.get(key)
        except NotThereError:
            return None
        return Versioned(content=content, generation=hashlib.sha256(content).hexdigest())

    def replace(self, key: str, content: bytes, generation: str | None) -> None:
        target = self.folder / key
        with self._said(target), self._locked(target):
            found = self.read(key)
            if (found and found.generation) != generation:
                raise ChangedError(f"{target} was changed by another process")
            with self._written(target, [content]) as temporary:
                temporary.replace(target)
            sync(target.parent)

    def folders(self) -> tuple[str, ...]:
        return self._listed(lambda entry: entry.is_dir(follow_symlinks=False))

    def objects(self) -> tuple[str, ...]:
        # What begins with a dot is a lock, or is being written.
        return self._listed(lambda entry: not entry.name.startswith(".") and entry.is_file())

    def keys(self, folder: str) -> tuple[str, ...]:
        found = (path for path in (self.folder / folder).rglob("*") if not path.is_dir())
        return tuple(sorted(path.relative_to(self.folder).as_posix() for path in found))

    def delete(self, key: str) -> None:
        target = self.folder / key
        with self._said(target):
            target.unlink(missing_ok=True)
            for parent in target.relative_to(self.folder).parents:
                if parent == Path():
                    break
                try:
                    (self.folder / parent).rmdir()
                except OSError:  # something else is in it, or another thread was faster
                    break

    def _listed(self, wanted: Callable[[os.DirEntry[str]], bool]) -> tuple[str, ...]:
        try:
            return tuple(sorted(entry.name for entry in os.scandir(self.folder) if wanted(entry)))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be listed: {error.strerror}") from error

    @contextlib.contextmanager
    def _said(self, target: Path) -> Iterator[None]:
        """A failure of the disk, with the name of what was to be written."""
        try:
            yield
        except OSError as error:
            raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error

    @contextlib.contextmanager
    def _written(self, target: Path, parts: Sequence[Part]) -> Iterator[Path]:
        """A file with those bytes, synced, beside its place; gone at the end unless it was moved."""
        self._make(target.parent)
        temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                _write(descriptor, parts)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def _make(self, folder: Path) -> None:
        """Make a folder and those above it, each known to the one above it for good."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)

    @contextlib.contextmanager
    def _locked(self, target: Path) -> Iterator[None]:
        """One process at a time. The lock goes with the process, however it ends; its file stays."""
        self._make(target.parent)
        descriptor = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _write(descriptor: int, parts: Sequence[Part]) -> None:
    for part in parts:
        view = memoryview(part)  # type: ignore[arg-type]  # an array is a buffer
        done = _write_direct(descriptor, view) if isinstance(part, np.ndarray) and _aligned(part) else 0
        while done < len(view):
            done += os.write(descriptor, view[done:])


def _aligned(part: npt.NDArray[np.uint8]) -> bool:
    return part.size >= _DIRECT_BYTES and part.ctypes.data % _PAGE == 0


def _write_direct(descriptor: int, view: memoryview) -> int:
    """Write whole pages past the page cache, where the file system can; gives how many bytes.

    The copy into fresh pages of the cache would take more of a core than all else that a save does.
    """
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    end, done = len(view) // _PAGE * _PAGE, 0
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | _O_DIRECT)
        while done < end:
            written = os.write(descriptor, view[done : min(end, done + _DIRECT_MOST)])
            done += written
            if written % _PAGE:
                break
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
    return done
