"""A world whose clock stands still, served to the tests of this folder."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

from tests.google_cloud.server import served
from tests.google_cloud.world import World

NOW = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)


@pytest.fixture
def world() -> World:
    return World(now=NOW)


@pytest.fixture
def endpoint(world: World) -> Iterator[str]:
    with served(world) as endpoint:
        yield endpoint
