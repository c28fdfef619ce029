"""What is mounted, and on which mount a path lies.

Blanks, line ends and backslashes are written in octal. Source: proc_pid_mounts(5), fstab(5), getmntent(3).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, final

_OCTAL: Final = re.compile(rb"\\([0-7]{3})")
_FIELDS: Final = 4
"""Source, mount point, type and options; two numbers may follow."""
_NOT_FUSE: Final = frozenset({"fusectl"})
"""The switches of the kernel's FUSE, which is a file system of its own."""


@final
@dataclass(frozen=True, kw_only=True)
class Mount:
    """A line of /proc/self/mounts."""

    source: str
    """A device; of gcsfuse the bucket."""
    point: PurePath
    type: str
    options: Mapping[str, str]
    """With their values; a switch has an empty one."""

    @property
    def is_fuse(self) -> bool:
        """Whether a process of the machine answers its reads."""
        return self.type == "gcsfuse" or (self.type.startswith("fuse") and self.type not in _NOT_FUSE)


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """The lines of /proc/self/mounts; what is no such line is passed over."""
    lines = (line.split() for line in text.split("\n"))
    return tuple(_mount(fields) for fields in lines if len(fields) >= _FIELDS and not fields[0].startswith("#"))


def mount_of(path: PurePath, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that an absolute path without links lies on: the deepest, and of several on one point the last."""
    found: Mount | None = None
    for mount in mounts:
        deeper = found is None or len(mount.point.parts) >= len(found.point.parts)
        if deeper and path.is_relative_to(mount.point):
            found = mount
    return found


def _mount(fields: list[str]) -> Mount:
    source, point, type_, options = (_unescaped(field) for field in fields[:_FIELDS])
    pairs = (option.partition("=") for option in options.split(",") if option)
    return Mount(
        source=source,
        point=PurePath(point),
        type=type_,
        options={name: value for name, _, value in pairs},
    )


def _unescaped(field: str) -> str:
    return os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), os.fsencode(field)))
