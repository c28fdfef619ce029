"""A run of the guard that is killed before any of its calls, and the next one, which ends in the same world."""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

import pytest

from policies.audit.live.access import Access, Calls, Clients
from policies.audit.record import Part
from policies.audit.remedies.applying import Outcome
from policies.exit_codes import ExitCode
from policies.guard import running
from tests.google_cloud.server import served
from tests.google_cloud.world import World
from tests.policies.guard.project import NOW, furnish, guarded

LATER = NOW + datetime.timedelta(hours=1)


class Killed(BaseException):
    """The process ends here, as by SIGKILL."""


@final
class Fuse:
    """Counts calls, and ends the process before the one with the number `at`."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.calls = 0

    def add(self, method: str) -> None:
        if self.calls == self.at:
            raise Killed
        self.calls += 1


def state(world: World) -> dict[str, Any]:
    """What a run may change."""
    return {
        "throughput": {disk["name"]: disk["provisionedThroughput"] for disk in world.items(Part.DISKS)},
        "nodes": [node["name"] for node in world.items(Part.NODES)],
        "groups": {group["name"]: group["targetSize"] for group in world.items(Part.GROUPS)},
    }


def ended(fuse: Fuse, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The world after a run with that fuse, and after the next run, an hour later."""
    world = World(now=NOW, polls=1)
    furnish(world)
    with served(world) as endpoint:
        with monkeypatch.context() as patch:
            patch.setattr(running, "Clients", lambda access, say: lit(access, fuse))
            if fuse.at < 0:
                guarded(endpoint, apply=True)
            else:
                with pytest.raises(Killed):
                    guarded(endpoint, apply=True)
        world.now = LATER
        guarded(endpoint, LATER, apply=True)
    assert world.counts()["tpu.nodes.delete"] == 1
    return state(world)


def lit(access: Access, fuse: Fuse) -> Clients:
    calls = Calls()
    calls.add = fuse.add  # type: ignore[method-assign]
    return Clients(access, calls)


def test_wherever_it_is_killed_the_next_run_ends_in_the_same_world(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Fuse(-1)
    wanted = ended(whole, monkeypatch)
    assert wanted["groups"] == {"dev-group": 0}
    assert wanted["nodes"] == []
    assert wanted["throughput"]["dev-llama"] == "400"
    assert whole.calls >= 15
    assert [at for at in range(whole.calls) if ended(Fuse(at), monkeypatch) != wanted] == []


def test_two_at_once_end_in_the_same_world_and_neither_is_in_trouble() -> None:
    """A run that takes longer than an hour, and the next: the call that comes second finds its end reached."""
    world = World(now=NOW, polls=2)
    furnish(world)
    with served(world) as endpoint, ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: guarded(endpoint, apply=True), range(2)))
    found = state(world)
    assert (found["groups"], found["nodes"], found["throughput"]["dev-llama"]) == ({"dev-group": 0}, [], "400")
    assert [(run.troubles, run.exit_code) for run in both] == [((), ExitCode.FINE)] * 2
    outcomes = [{result.outcome for result in run.report.results} for run in both]
    assert set.union(*outcomes) <= {Outcome.DONE, Outcome.ALREADY}
