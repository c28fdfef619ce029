"""How much the kernel reads ahead of a program, device by device, and whether that is too little.

Source: https://docs.kernel.org/admin-guide/abi-testing.html (/sys/class/bdi), mm/readahead.c: a read of any size is
cut into requests of at most the read-ahead or what the device takes at once, and page by page where there is none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from inference.weights.sources.mounts import Mount

_LEAST_DISK_KIB: Final = 128
"""Linux's own default; large reads are then cut by what the device takes at once."""
_LEAST_FUSE_KIB: Final = 1024
"""A FUSE mount has no other bound, and each request goes to a process and back."""


@final
@dataclass(frozen=True, kw_only=True)
class ReadAhead:
    """Of the device that a folder is on."""

    kib: int
    file: Path
    """Where it is read and set."""


def read_ahead(device: int, sys: Path) -> ReadAhead | None:
    """Of a device, as stat has it; None where the kernel does not say. A partition has that of its disk."""
    number = f"{os.major(device)}:{os.minor(device)}"
    disk = (sys / "dev" / "block" / number).resolve().parent
    for file in (sys / "class" / "bdi" / number / "read_ahead_kb", disk / "queue" / "read_ahead_kb"):
        try:
            return ReadAhead(kib=int(file.read_text()), file=file)
        except (OSError, ValueError):
            continue
    return None


def judge_disk(found: ReadAhead | None) -> tuple[str, ...]:
    """Only where it matters: the reader's own reads are large, and cut where the device's read-ahead is tiny."""
    if found is None or found.kib >= _LEAST_DISK_KIB:
        return ()
    return (
        f"the disk of the weights reads {found.kib} KiB ahead, so that every read is cut small: "
        f"`echo 4096 > {found.file}`",
    )


def judge_fuse(mount: Mount, found: ReadAhead | None) -> tuple[str, ...]:
    """What the kernel knows of a FUSE mount."""
    told = []
    if found is not None and found.kib < _LEAST_FUSE_KIB:
        told.append(
            f"{mount.point}: the kernel asks for {found.kib} KiB at once: mount with the option "
            f"read_ahead_kb={_LEAST_FUSE_KIB} (GKE), or `echo {_LEAST_FUSE_KIB} > {found.file}`"
        )
    most = mount.options.get("max_read", "")
    if most.isdecimal() and 0 < int(most) < _LEAST_FUSE_KIB << 10:
        told.append(f"{mount.point}: each read is held to {int(most) >> 10} KiB: mount without max_read={most}")
    return tuple(told)
