"""The official engine with the stand-in provider: what an `up` leaves in the world, and what an audit finds there."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from policies.audit.record import Part
from tests.engine.conftest import NOW, Standing
from tests.engine.stand import Stand
from tests.google_cloud.shapes import last
from tests.google_cloud.world import World

VOLUME = "dev-llama-3f9a6c0b-us-central1-b"


@pytest.fixture(scope="module")
def world() -> World:
    return World(now=NOW)


@pytest.fixture(scope="module")
def up(standing: Standing, world: World) -> Stand:
    """The shipped development stack, up."""
    stack = standing("dev", world=world)
    stack.up()
    return stack


def names(world: World, part: Part) -> list[str]:
    return [last(item["name"]) for item in world.items(part)]


def test_an_up_leaves_what_the_stack_names(up: Stand, world: World) -> None:
    assert names(world, Part.DISKS) == ["dev-head", VOLUME, "dev-trainer"]
    assert names(world, Part.INSTANCES) == ["dev-head", "dev-trainer"]
    assert names(world, Part.SNAPSHOTS) == ["dev-llama-3f9a6c0b-snapshot"]
    assert len(world.items(Part.BUCKETS)) == 3
    disk = world.named(Part.DISKS, VOLUME)
    assert (disk["accessMode"], [last(user) for user in disk["users"]]) == ("READ_ONLY_MANY", ["dev-trainer"])


def test_the_model_was_copied_by_the_very_script_of_the_job(up: Stand, world: World) -> None:
    staging = "projects/acme-tpu-dev/zones/us-central1-b/disks/dev-llama-3f9a6c0b-staging"
    calls = [call.method for call in world.calls.log if call.detail.endswith("/dev-llama-3f9a6c0b-staging")]
    assert "loopback.resources.insert" in calls
    assert "loopback.resources.delete" in calls
    assert staging not in world.inventory[Part.DISKS]
    assert names(world, Part.SNAPSHOTS) == ["dev-llama-3f9a6c0b-snapshot"]


def test_nothing_is_left_to_do(up: Stand) -> None:
    assert set(up.preview()) == {"same"}
    assert set(up.refresh()) == {"same"}
    assert set(up.preview()) == {"same"}


def audited(up: Stand, world: World) -> list[dict[str, Any]]:
    """The verdicts of `spotrail audit` of the world's disks, now."""
    endpoint = up.environment["SPOTRAIL_WORLD"]
    order = [str(Path(sys.executable).parent / "spotrail"), "audit", "--project", world.project]
    order += ["--endpoint", endpoint, "--now", world.now.isoformat(), "--format", "json", "--all"]
    ended = subprocess.run(order, capture_output=True, text=True, timeout=120, check=False)
    verdicts: list[dict[str, Any]] = json.loads(ended.stdout)["verdicts"]
    return [each for each in verdicts if each["type"] == "compute.disk"]


def test_an_audit_sees_what_the_up_made_and_what_it_wastes(up: Stand, world: World) -> None:
    verdicts = {last(each["resource"]): each for each in audited(up, world)}
    assert verdicts.keys() == {"dev-head", VOLUME, "dev-trainer"}
    assert verdicts[VOLUME]["verdict"] == "TOO_NEW"
    world.now = NOW + datetime.timedelta(days=30)
    world.observe("traffic", instance="dev-trainer", device=VOLUME, read=0, write=0)
    month_later = {last(each["resource"]): each for each in audited(up, world)}
    world.now = NOW
    # 1,200 MiB/s of which 400 cannot be given back, at 0.12 each.
    assert (month_later[VOLUME]["verdict"], month_later[VOLUME]["monthly_waste"]) == ("IDLE_ATTACHED", "96.00")
