"""The kinds of source, and what each of them becomes: a folder on this machine."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import final

from inference.weights.reading_style import ReadingStyle


@final
class SourceKind(enum.Enum):
    """Where weights come from, as `--source` has it."""

    AUTO = "auto"
    """By the address: a gs:// is downloaded, a path on a FUSE mount is FUSE, any other a disk."""
    DISK = "disk"
    """A file system of this machine, such as a Hyperdisk ML volume."""
    FUSE = "fuse"
    """A bucket that is mounted."""
    DOWNLOAD = "download"
    """A bucket, copied to this machine first."""


@final
@dataclass(frozen=True, kw_only=True)
class LocalModel:
    """A model that can be read here."""

    folder: Path
    """With all links followed."""
    kind: SourceKind
    """Never AUTO."""
    style: ReadingStyle
    """In which the folder is best read."""
    warnings: tuple[str, ...] = ()
    """What makes it slower than it need be, each with its remedy; and what came damaged and was fetched again."""
    bytes: int
    """Of the model's files; of a mount or a disk: of what lies in the folder itself."""
    fetched: int = 0
    """Bytes that came over the network, this time; 0 where the model was here already."""
    seconds: float = 0.0
    """That it took to make the folder, waiting included."""

    @property
    def rate(self) -> float:
        """Bytes a second over the network; 0 where none came."""
        return self.fetched / self.seconds if self.seconds > 0 else 0.0
