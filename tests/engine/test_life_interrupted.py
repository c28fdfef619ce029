"""An `up` that nobody let end: what may exist is a possible cost, and the documented commands get on from there."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from scripts.cli import run
from tests.engine.conftest import NOW, Standing
from tests.engine.interruption import DISK, interrupted, killed, pending
from tests.engine.operations import documented
from tests.engine.stand import Stand
from tests.engine.walk import reading
from tests.google_cloud.declared_disks import DISKS
from tests.google_cloud.world import World

VOLUME: Final = "llama-3f9a6c0b-us-central1-b"
PATH: Final = f"projects/acme-tpu-dev/zones/us-central1-b/disks/dev-{VOLUME}"
A_MONTH: Final = Decimal("160.00")
"""200 GiB at 0.08 and 1,200 MiB/s at 0.12."""


def estimated(stand: Stand, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    (folder / "state.json").write_text(stand.export(), encoding="utf-8")
    assert run(["estimate", str(folder / "state.json"), "--format", "json", "--as-of", "2026-11-29"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_killed_up_is_priced_unlocked_and_finished(
    standing: Standing, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand = standing("dev")
    killed(stand, VOLUME)
    assert pending(stand) == {VOLUME: "creating"}
    document = estimated(stand, tmp_path, capsys)
    assert not [one for one in document["resources"] if one["name"] == VOLUME]
    assert [note for note in document["notes"] if f"possible {A_MONTH} a month" in note and VOLUME in note]
    locked = stand.cli("refresh", "--yes", "--non-interactive")
    assert "pulumi cancel" in locked.stderr
    stand.run(documented("pulumi cancel --stack dev"))
    stand.run(documented("pulumi refresh --stack dev --clear-pending-creates"))
    assert pending(stand) == {}
    stand.run(documented("pulumi up --stack dev"))
    assert [one.name for one in reading(stand.export(), "state.json").after.of_type(DISK)] == [VOLUME]
    assert set(stand.up()) == {"same"}


def test_what_google_has_made_meanwhile_is_in_the_way_until_it_is_deleted(standing: Standing) -> None:
    world = World(project="acme-tpu-dev", now=NOW)
    stand = standing("dev", world=world)
    said = interrupted(stand, VOLUME)
    assert said.code != 0
    volume = DISKS.insert(world, PATH, {"type": "hyperdisk-ml", "sizeGb": "200", "provisionedThroughput": "1200"})
    assert "alreadyExists" in stand.failing_up([])
    documented("gcloud compute disks delete dev-llama-3f9a6c0b-us-central1-b --zone=us-central1-b")
    DISKS.delete(world, PATH, volume, {})
    stand.run(documented("pulumi up --stack dev"))
    # The engine itself does not forget what it once began, though it stands now.
    assert pending(stand) == {VOLUME: "creating"}
    found = reading(stand.export(), "state.json")
    assert [one.name for one in found.after.of_type(DISK)] == [VOLUME]
    assert found.possible == ()
