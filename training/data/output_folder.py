"""A folder that appears whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from training.data.manifest import MANIFEST
from training.durable import sync, sync_folder
from training.errors import TrainingError, unwritable


def check_place(out: Path) -> None:
    """Raises TrainingError where `out` is something that prepared data must not replace."""
    if str(out).startswith("gs:"):
        raise TrainingError(f"--out {out}: data is prepared on a disk; name a folder, and copy it afterwards")
    try:
        if out.exists() and not out.is_dir():
            raise TrainingError(f"--out {out}: is no folder; name another")
        if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).exists():
            raise TrainingError(f"--out {out}: holds other files; name a folder that is empty or not there yet")
    except OSError as error:
        raise TrainingError(f"--out {out}: cannot be read: {error.strerror or error}") from None


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `out` when the block ends well. What is at `out` by then goes.

    A process that is killed leaves `.NAME.partial` beside it, which the next one removes. Raises TrainingError where
    another process is writing there, or the disk does not take it.
    """
    out = out.absolute()
    partial = out.with_name(f".{out.name}.partial")
    try:
        partial.mkdir(parents=True, exist_ok=True)
        with _claimed(partial, out):
            try:
                _empty(partial)
                yield partial
                sync_folder(partial)  # before it gets its name: after a power cut it is whole too
                _move(partial, out)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
    except OSError as error:
        raise unwritable(f"--out {out}", error, "name a folder that can be written") from None


@contextmanager
def _claimed(partial: Path, out: Path) -> Iterator[None]:
    """The folder for this process alone, until the process ends, however it ends."""
    held = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(out) from None
        # Between opening and locking it may have been moved to its place by the process that had it.
        if not partial.exists() or os.fstat(held).st_ino != partial.stat().st_ino:
            raise _taken(out)
        yield
    finally:
        os.close(held)


def _taken(out: Path) -> TrainingError:
    return TrainingError(f"--out {out}: another process is preparing data there; wait for it, or name another folder")


def _empty(folder: Path) -> None:
    """Remove what a process that was killed has left."""
    for path in folder.iterdir():
        path.unlink()


def _move(partial: Path, out: Path) -> None:
    old = out.with_name(f".{out.name}.old")
    if (out / MANIFEST).exists():
        shutil.rmtree(old, ignore_errors=True)
        out.rename(old)
    partial.rename(out)
    sync(out.parent)
    shutil.rmtree(old, ignore_errors=True)
