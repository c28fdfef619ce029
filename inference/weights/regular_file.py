"""The content of a small file, which must be one: to open a pipe that nobody writes to would wait for ever."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def content_of(path: Path) -> bytes:
    """All bytes of `path`. Raises OSError, also for what is no regular file, nor a link to one."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
        raise OSError(errno.EINVAL, f"it is {kind}, and no file", str(path))
    return path.read_bytes()
