"""A small project, served by the loopback Google Cloud, with one of each thing that the guard finds."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

from tests.google_cloud.server import served
from tests.google_cloud.world import World
from tests.policies.guard.project import NOW, furnish


@pytest.fixture
def world() -> World:
    world = World(now=NOW, polls=1)
    furnish(world)
    return world


@pytest.fixture
def endpoint(world: World) -> Iterator[str]:
    with served(world) as endpoint:
        yield endpoint


@pytest.fixture
def later() -> datetime.datetime:
    """The next hour."""
    return NOW + datetime.timedelta(hours=1)
