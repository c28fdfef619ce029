"""What is written has to be there after a power cut: files, and the folders that name them."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Have the disk take a file, or the names in a folder. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Have the disk take the files of a folder that has no others below it, and their names. Raises OSError."""
    for path in (*folder.iterdir(), folder):
        sync(path)
