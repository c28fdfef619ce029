"""Verification of a copied model against its MANIFEST.json (`spotrail.model/1`).

The hydrator runs this file as it stands, by the Python of its boot image: the standard library only.

The manifest is `{"schema": "spotrail.model/1", "files": [{"path", "bytes", "sha256"}, ...]}`. Every file of the
folder but the manifest itself is in it, and nothing else is there.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

NAME = "MANIFEST.json"
SCHEMA = "spotrail.model/1"
BLOCK = 8 * 1024 * 1024


def mistakes(folder: Path, digest: str) -> list[str]:
    """Every way in which `folder` is not the model whose manifest has the SHA-256 `digest`; empty when it is."""
    manifest = folder / NAME
    if not manifest.is_file():
        return [f"{NAME} is missing"]
    found = sha256(manifest)
    if found != digest:
        return [f"{NAME} has the digest {found}, the settings say {digest}"]
    try:
        listed = files_of(json.loads(manifest.read_bytes()))
    except (ValueError, TypeError, KeyError) as error:
        return [f"{NAME} is not {SCHEMA}: {error}"]
    extra = sorted(set(present(folder)) - {*listed, NAME})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = pool.map(lambda path: file_mistake(folder / path, path, *listed[path]), sorted(listed))
        return [*(text for text in wrong if text), *(f"{path} is not in {NAME}" for path in extra)]


def files_of(document: dict[str, object]) -> dict[str, tuple[int, str]]:
    """Path to size in bytes and digest. Raises ValueError, TypeError or KeyError for another shape."""
    if document["schema"] != SCHEMA:
        raise ValueError(f"schema is {document['schema']!r}")
    listed: dict[str, tuple[int, str]] = {}
    entries = document["files"]
    if not isinstance(entries, list) or not entries:
        raise ValueError("files is not a list, or empty")
    for entry in entries:
        path = PurePosixPath(entry["path"])
        if path.is_absolute() or ".." in path.parts or str(path) in listed or str(path) == NAME:
            raise ValueError(f"path {entry['path']!r}")
        listed[str(path)] = int(entry["bytes"]), str(entry["sha256"])
    return listed


def file_mistake(file: Path, path: str, size: int, digest: str) -> str:
    """What is wrong with one file; empty when nothing is."""
    if file.is_symlink() or not file.is_file():
        return f"{path} is missing"
    if file.stat().st_size != size:
        return f"{path} has {file.stat().st_size} bytes, not {size}"
    return "" if sha256(file) == digest else f"{path} has another digest than the manifest says"


def present(folder: Path) -> Iterator[str]:
    """Every file below `folder`, as a path relative to it."""
    for file in folder.rglob("*"):
        if file.is_symlink() or not file.is_dir():
            yield file.relative_to(folder).as_posix()


def sha256(file: Path) -> str:
    """The SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def main(folder: str, digest: str) -> int:
    """Print the mistakes, one a line; 0 when there are none."""
    found = mistakes(Path(folder), digest)
    for text in found:
        print(text)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
