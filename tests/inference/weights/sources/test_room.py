"""A disk on which the model has no room."""

from __future__ import annotations

import mmap
import shutil
from pathlib import Path

import pytest

from inference.errors import ServingError
from policies.audit.record import Part
from tests.google_cloud.object_serving import Storage
from tests.google_cloud.object_store import Checksums
from tests.inference.weights.sources.stored import BUCKET, MODEL, download, media_calls, upload

LARGE = "llama/v1/large.bin"


def put_large(storage: Storage, holes: Path, size: int) -> None:
    """An object that is really as large as it says: a file of holes, mapped into memory."""
    with holes.open("wb") as file:
        file.truncate(size)
    with holes.open("rb") as file:
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    world = storage.world
    with world.lock:
        bucket = world.inventory[Part.BUCKETS][BUCKET]
        world.objects.put(bucket, LARGE, {}, content, Checksums(crc32c="AAAAAA==", md5=None), world.now)


def test_no_room_is_found_before_anything_is_fetched(storage: Storage, cache: Path, tmp_path: Path) -> None:
    upload(storage, MODEL)
    upload(storage, {"model.safetensors": b"old"}, "old/")
    old = download(cache, "gs://models/old")
    calls = media_calls(storage)
    put_large(storage, tmp_path / "holes", shutil.disk_usage(tmp_path).free + (1 << 30))
    told = rf"{cache}: no room for the model: .* GiB are needed and .* free; .*kept there: {old.folder.name}"
    with pytest.raises(ServingError, match=told):
        download(cache)
    assert media_calls(storage) == calls
    storage.lose(BUCKET, LARGE)
    assert download(cache).fetched == sum(map(len, MODEL.values()))
