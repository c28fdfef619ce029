"""MANIFEST.json of an export: the size and sha256 of every file, and the checking of them."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType
from typing import Any, Final, final

from inference.errors import ServingError
from inference.weights.regular_file import content_of
from inference.weights.sharded_index import is_plain_name
from inference.weights.strict_json import parse_json

MANIFEST: Final = "MANIFEST.json"
SCHEMA: Final = "spotrail.model/1"
INTERVAL: Final = 0.2
"""Seconds between two reports of progress."""
BLOCK: Final = 4 << 20
"""Bytes that are hashed at once."""
_HEX: Final = frozenset("0123456789abcdef")


@final
@dataclass(frozen=True, kw_only=True)
class Entry:
    """What the manifest says of a file."""

    size: int
    """Bytes."""
    sha256: str
    """In hex."""


@final
@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A manifest. Two folders whose manifests have one digest, and which are verified, hold the same model."""

    files: Mapping[str, Entry]
    """By name."""
    sha256: str
    """Of the manifest itself, by which a model volume names the version."""


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of `folder`, every size in it compared; None where there is none.

    Raises ServingError where it cannot be read, or a file is missing or of another size.
    """
    path = folder / MANIFEST
    try:
        content = content_of(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ServingError(f"{path}: cannot be read: {error.strerror or error}") from None
    manifest = parse_manifest(content, str(path))
    wrong = [
        f"{name} {problem}" for name, entry in manifest.files.items() if (problem := _problem(folder / name, entry))
    ]
    if wrong:
        raise ServingError(f"{path}: the folder is not what was exported; fetch it again:\n  " + "\n  ".join(wrong))
    return manifest


def parse_manifest(content: bytes, where: str) -> Manifest:
    """The manifest of such a text. Raises ServingError that begins with `where`."""
    try:
        body = parse_json(content)
    except ValueError as error:
        raise ServingError(f"{where}: is no manifest: {error}. Fetch the model again") from None
    if not isinstance(body, dict) or body.get("schema") != SCHEMA:
        given = body.get("schema") if isinstance(body, dict) else body
        raise ServingError(f'{where}: schema is {json.dumps(given)[:40]}; this version reads "{SCHEMA}"')
    entries = body.get("files")
    if not isinstance(entries, list):
        raise ServingError(f"{where}: files is no list of path, bytes and sha256")
    files: dict[str, Entry] = {}
    for each in entries:
        name, entry = _entry(each, where)
        if name in files:
            raise ServingError(f"{where}: {name} stands twice in it; which one is meant cannot be known")
        files[name] = entry
    return Manifest(files=MappingProxyType(files), sha256=hashlib.sha256(content).hexdigest())


def check_listed(manifest: Manifest, folder: Path, names: Iterable[str]) -> None:
    """Raises ServingError where a file of the model was added behind the back of the manifest."""
    for name in names:
        if name not in manifest.files:
            raise ServingError(
                f"{folder / name}: is not in {MANIFEST}, and came after the export. Take it away, or export anew"
            )


def verify_files(folder: Path, manifest: Manifest, *, workers: int, read: Callable[[int], None]) -> None:
    """Compare the sha256 of every file, `workers` of them at a time.

    `read` hears of bytes that were read, several times a second, on this thread; what it raises ends it. Raises
    ServingError that names every file that differs.
    """
    told: SimpleQueue[int] = SimpleQueue()
    stop = threading.Event()
    with ThreadPoolExecutor(max(1, min(workers, len(manifest.files)))) as pool:
        jobs = {name: pool.submit(_digest, folder / name, told, stop) for name in manifest.files}
        try:
            waiting = True
            while waiting:
                waiting = bool(wait(jobs.values(), timeout=INTERVAL, return_when=FIRST_EXCEPTION).not_done)
                read(sum(told.get() for _ in range(told.qsize())))
                waiting = waiting and not any(job.done() and job.exception() for job in jobs.values())
        finally:
            stop.set()
    found = {name: job.result() for name, job in jobs.items()}
    wrong = [
        f"{name} has sha256 {found[name]}, and the manifest says {entry.sha256}"
        for name, entry in manifest.files.items()
        if found[name] != entry.sha256
    ]
    if wrong:
        raise ServingError(
            f"{folder / MANIFEST}: the folder is not what was exported; fetch it again:\n  " + "\n  ".join(wrong)
        )


def _digest(path: Path, told: SimpleQueue[int], stop: threading.Event) -> str:
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(BLOCK))
    try:
        with path.open("rb", buffering=0) as file:
            while (count := file.readinto(buffer)) and not stop.is_set():
                digest.update(buffer[:count])
                told.put(count)
    except OSError as error:
        raise ServingError(f"{path}: cannot be read: {error.strerror or error}") from None
    return digest.hexdigest()


def _entry(each: Any, where: str) -> tuple[str, Entry]:
    name, size, sha256 = (each.get(field) if isinstance(each, dict) else None for field in ("path", "bytes", "sha256"))
    if not isinstance(name, str) or not is_plain_name(name):
        raise ServingError(f"{where}: path is {str(name)[:80]!r}; it must be the name of a file in the folder")
    if type(size) is not int or size < 0:
        raise ServingError(f"{where}: bytes of {name} is {str(size)[:40]}; it must be a whole number")
    if not isinstance(sha256, str) or len(sha256) != 64 or not _HEX.issuperset(sha256):
        raise ServingError(
            f"{where}: sha256 of {name} is {str(sha256)[:80]!r}; it must be 64 digits of hex, small letters"
        )
    return name, Entry(size=size, sha256=sha256)


def _problem(path: Path, entry: Entry) -> str | None:
    try:
        size = path.stat().st_size
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return None if size == entry.size else f"has {size} bytes, and the manifest says {entry.size}"
