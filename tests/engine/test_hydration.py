"""A fill that fails, fails the `up`, and the next `up` starts over; what has succeeded is not run again (case A14).

The scripts of the jobs run for real, under bash, against a gcloud that asks the loopback Google Cloud.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any, Final

from policies.audit.record import Part
from tests.engine.conftest import NOW, Standing
from tests.engine.interruption import HEARD, pending
from tests.engine.stand import Stand, language_host, served_at
from tests.google_cloud.world import World

FILL, CLEAN = "llama-3f9a6c0b-fill", "llama-3f9a6c0b-clean"
JOBS: Final = "projects/acme-tpu-dev/locations/us-central1/jobs"
JOB, SNAPSHOT, DISK = "gcp:cloudrunv2/job:Job", "gcp:compute/snapshot:Snapshot", "gcp:compute/disk:Disk"
OTHER_DIGEST: Final = r"(?s)Error waiting to create Job: .*model\.safetensors has another digest.*pulumi up again"
_SECONDS: Final = 60


def fault(name: str, kind: str) -> list[dict[str, str]]:
    return [{"on": "create", "type": JOB, "name": name, "kind": kind}]


def job(stand: Stand, name: str = FILL) -> dict[str, Any]:
    (found,) = (one for urn, one in stand.state().items() if urn.endswith(f"::{name}"))
    return found


def types(stand: Stand) -> set[str]:
    return {one["type"] for one in stand.state().values()}


def disks(world: World) -> set[str]:
    return {disk["name"] for disk in world.items(Part.DISKS) if "llama" in disk["name"]}


def test_every_up_starts_over_until_the_model_is_there(standing: Standing) -> None:
    world = World(project="acme-tpu-dev", now=NOW)
    stand = standing("dev", world=world)
    for _ in range(2):
        assert re.search(OTHER_DIGEST, stand.failing_up(fault(FILL, "failed-execution")))
        assert job(stand)["initErrors"]
        assert {SNAPSHOT, DISK}.isdisjoint(types(stand))
        # What does not wait for the model is up, and nothing that bills is left of the fill.
        assert "gcp:storage/bucket:Bucket" in types(stand)
        assert disks(world) == set()
    assert stand.preview()["replace"] == 1

    # Mended, and now the other job fails: it has not run, so the staging disk is still there.
    stand.settings({"hydration": {"staging_throughput": 700}})
    stand.failing_up(fault(CLEAN, "half-created"))
    filled = job(stand)
    assert "initErrors" not in filled
    container = filled["inputs"]["template"]["template"]["containers"][0]
    assert {"name": "SPOTRAIL_STAGING_THROUGHPUT", "value": "700"} in container["envs"]
    assert SNAPSHOT in types(stand)
    assert disks(world) == {"dev-llama-3f9a6c0b-staging"}

    done = stand.up()
    assert done["replace"] == 1
    assert "initErrors" not in job(stand, CLEAN)
    assert job(stand)["created"] == filled["created"], "what has succeeded is not run again"
    assert disks(world) == {"dev-llama-3f9a6c0b-us-central1-b"}
    assert set(stand.up()) == {"same"}


def test_a_refresh_forgets_a_failure_and_the_up_says_how_to_start_over(standing: Standing) -> None:
    stand = standing("dev")
    stand.failing_up(fault(FILL, "failed-execution"))
    assert set(stand.refresh()) == {"same"}
    assert "initErrors" not in job(stand)
    said = stand.failing_up([])
    assert "disks/dev-llama-3f9a6c0b-staging' was not found" in said
    urn = job(stand)["urn"]
    assert re.search(r"The execution of the job dev-llama-3f9a6c0b-fill has failed: .*model\.safetensors", said)
    assert f"To start over: pulumi up --replace '{urn}'" in said
    stand.settings({"hydration": {"staging_throughput": 700}})
    assert stand.up(replace=[urn])["replace"] == 1
    assert DISK in types(stand)
    stand.refresh()
    assert set(stand.up()) == {"same"}


def test_a_killed_fill_is_in_the_way_until_its_job_is_deleted(standing: Standing) -> None:
    world = World(project="acme-tpu-dev", now=NOW)
    stand = standing("dev", world=world)
    kill_while_it_fills(stand, world)
    assert not [urn for urn in stand.state() if urn.endswith(f"::{FILL}")]
    stand.run("pulumi cancel --stack dev")
    # Its execution may go on: that no second job takes the name keeps two fills from one disk.
    assert re.search(r"Error 409: .*alreadyExists", stand.failing_up([]))
    del world.records[f"{JOBS}/dev-{FILL}"]  # gcloud run jobs delete
    stand.up()
    assert disks(world) == {"dev-llama-3f9a6c0b-us-central1-b"}


def kill_while_it_fills(stand: Stand, world: World) -> None:
    """An `up` that is interrupted, and killed when nothing is left of it but a job whose execution goes on."""
    environment = {**os.environ, **stand.environment, "SPOTRAIL_FAULTS": json.dumps(fault(FILL, "endless-execution"))}
    order = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive", "--stack", stand.name]
    said = stand.folder / "said.txt"
    with language_host(stand.folder) as port, said.open("w", encoding="utf-8") as file:
        order += served_at(port)
        command = subprocess.Popen(order, cwd=stand.folder, env=environment, stdout=file, stderr=subprocess.STDOUT)
        try:
            wait(lambda: f"{JOBS}/dev-{FILL}" in world.records, "the fill was not begun")
            command.send_signal(signal.SIGINT)
            wait(lambda: HEARD in said.read_text("utf-8"), "the interrupt was not heard")
            wait(lambda: alone(stand), "something else was not ended")
        finally:
            command.kill()
            command.wait(_SECONDS)


def alone(stand: Stand) -> bool:
    """Whether the fill is all that is under way, for a second: a step that had begun may not be written yet."""
    for _ in range(10):
        if pending(stand) != {FILL: "creating"}:
            return False
        time.sleep(0.1)
    return True


def wait(reached: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + _SECONDS
    while not reached():
        assert time.monotonic() < end, otherwise
        time.sleep(0.1)
