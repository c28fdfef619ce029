"""The official CLI, an environment without anything of the user's, and stacks that several tests share."""

from __future__ import annotations

import datetime
import functools
import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import pytest
from pulumi import automation

from tests.engine.command import decide, look
from tests.engine.stand import Stand, environment, stand
from tests.engine.walk import Walk, walk
from tests.google_cloud.server import served
from tests.google_cloud.world import World

NOW = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)


LEFT_OPEN = "ignore:Exception ignored in. <(socket|function BaseEventLoop):pytest.PytestUnraisableExceptionWarning"
"""The SDK leaves the event loop of a program open where the engine ends it, which is found when it is collected."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what the SDK leaves open fail none of the tests of this folder."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN))


@pytest.fixture(scope="session")
def pulumi() -> Iterator[Path]:
    """The CLI, first on the PATH of this process and of all that it starts, with the stand-in provider."""
    decision = decide(look(os.environ))
    if decision.program is None:
        # In CI a test that is not run is a test that fails.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(decision.reason)
    with pytest.MonkeyPatch.context() as patch:
        variables = environment(decision.program, os.environ)
        for key in os.environ.keys() - variables.keys():
            patch.delenv(key)
        patch.setenv("PATH", variables["PATH"])
        yield decision.program
        gc.collect()  # what was left open is found here, where it fails nothing, and not when pytest itself ends


Standing = Callable[..., Stand]
"""`standing("dev", {"owner": "..."})`: a new stack in a world of its own."""


@pytest.fixture(scope="session")
def standing(pulumi: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """Makes stacks, each in a folder and a world of its own."""
    with ExitStack() as worlds:

        def make(
            name: str, changes: Mapping[str, Any] | None = None, world: World | None = None, program: str = ""
        ) -> Stand:
            own = World(project=f"acme-tpu-{name}", now=NOW) if world is None else world
            endpoint = worlds.enter_context(served(own))
            return stand(name, tmp_path_factory.mktemp(name), endpoint, changes, program)

        yield make


@pytest.fixture(scope="session")
def walks(standing: Standing) -> Callable[[str], Walk]:
    """The way of a shipped stack, walked once; tests that change the stack take one of their own."""

    @functools.cache
    def walked(name: str) -> Walk | Exception:
        try:
            return walk(standing(name))
        except (automation.CommandError, AssertionError, TimeoutExpired) as error:
            return error  # so that a way which fails is walked once, not once a test

    def of(name: str) -> Walk:
        found = walked(name)
        if isinstance(found, Exception):
            raise found
        return found

    return of
