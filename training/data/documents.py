"""What is prepared: named sources that give their documents, as often as asked, in one order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

from training.errors import TrainingError


@final
@dataclass(frozen=True, kw_only=True)
class BadLine:
    """A line that holds no document, where others do."""

    path: Path
    number: int
    """Counted from 1."""
    reason: str
    """What is wrong with it."""

    def __str__(self) -> str:
        return f"{self.path}:{self.number}: {self.reason}"


@final
@dataclass(frozen=True, kw_only=True)
class DocumentSource:
    """Documents of one origin."""

    name: str
    """What the manifest calls it: the name of the file, without its folder."""
    size: int
    """Bytes, about: only the progress bar and messages use them."""
    read: Callable[[], Iterator[str | BadLine]]
    """The documents and the lines that should be some, in order; a second call gives the same."""


def size_of_file(path: Path) -> int:
    """Bytes of the regular file `path`, which can be read twice. Raises TrainingError for anything else."""
    try:
        if path.is_dir():
            raise TrainingError(f"{path}: is a folder; name the files in it, such as {path / '*.txt'}")
        if not path.exists():
            raise TrainingError(f"{path}: there is no such file")
        if not path.is_file():
            raise TrainingError(f"{path}: is no file but a device or a pipe, and data is read twice; save it first")
        return path.stat().st_size
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> TrainingError:
    """The error of a file that the system does not give."""
    return TrainingError(f"{path}: cannot be read: {error.strerror or error}")
