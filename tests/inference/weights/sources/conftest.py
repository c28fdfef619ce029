"""A bucket for models, served on loopback, to which this process is pointed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.google_cloud.object_serving import Storage, served_buckets
from tests.inference.weights.sources.stored import BUCKET


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    with served_buckets(BUCKET) as storage:
        for name, text in storage.environment.items():
            monkeypatch.setenv(name, text)
        yield storage


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
