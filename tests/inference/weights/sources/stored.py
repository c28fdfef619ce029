"""Models in a bucket of the loopback, and downloads of them that are small and quick."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from inference.weights.sources.attempts import Patience
from inference.weights.sources.kinds import LocalModel, SourceKind
from inference.weights.sources.progress import DownloadProgress
from inference.weights.sources.resolving import resolve
from inference.weights.sources.transfer import Limits
from policies.audit.record import Part
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.object_serving import Storage
from tests.google_cloud.object_store import checksums

BUCKET: Final = "models"
URL: Final = f"gs://{BUCKET}/llama/v1"
PART: Final = 1 << 16
MEDIA: Final = "storage.objects.get"
PATIENT: Final = Patience(retry_seconds=60.0, connect_seconds=5.0, stall_seconds=2.0, stall_bytes=1)
LIMITS: Final = Limits(part_bytes=PART, workers=4, patience=PATIENT)


def noise(size: int, seed: int) -> bytes:
    """Bytes of which no part is like another."""
    return random.Random(seed).randbytes(size)


MODEL: Final = {
    "config.json": b'{"layers": 2}',
    "model.safetensors": noise(10 * PART + 777, 1),
    "tokenizer.json": noise(PART, 2),
    "chat_template.jinja": b"",
}
"""With a file that ends within a part, one that is a part, and one of nothing."""


def manifest(files: Mapping[str, bytes]) -> bytes:
    """As an export has it."""
    entries = [
        {"path": path, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for path, content in files.items()
    ]
    return json.dumps({"schema": "spotrail.model/1", "files": entries}).encode()


def with_manifest(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """An export."""
    return {**files, "MANIFEST.json": manifest(files)}


def put(storage: Storage, name: str, content: bytes | memoryview, **fields: Any) -> None:
    """An object, past all faults and limits on names."""
    world = storage.world
    view = memoryview(content)
    with world.lock:
        bucket = world.inventory[Part.BUCKETS][BUCKET]
        world.objects.put(bucket, name, fields, view, checksums(view), world.now)


def upload(storage: Storage, files: Mapping[str, bytes], prefix: str = "llama/v1/") -> None:
    """Files as objects under a prefix."""
    for path, content in files.items():
        put(storage, prefix + path, content)


def download(
    cache: Path,
    url: str = URL,
    *,
    limits: Limits = LIMITS,
    verify: bool = False,
    progress: Callable[[DownloadProgress], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> LocalModel:
    """Have a model in `cache`."""
    return resolve(url, SourceKind.AUTO, cache=cache, progress=progress, verify=verify, limits=limits, stop=stop)


def content_of(folder: Path) -> dict[str, bytes]:
    """All files under a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def media_calls(storage: Storage, name: str = "") -> int:
    """How often bytes were asked for."""
    return sum(call.method == MEDIA and name in call.detail for call in storage.world.calls.log)


def hold(storage: Storage, calls: int) -> None:
    """Let so many more calls for bytes through, and none after them until `heal`: downloads wait, and try again."""
    storage.world.fail(Fault(kind=FaultKind.UNAVAILABLE, method=MEDIA, after=calls))


def heal(storage: Storage) -> None:
    """Take all faults out of force."""
    storage.world.calls.clear()
