"""Models in the life of a stack: a new version is a volume of its own, more throughput the same volume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import pytest

from policies.audit.record import Part
from tests.engine.conftest import NOW, Standing
from tests.engine.stand import Stand, Step
from tests.google_cloud.shapes import last
from tests.google_cloud.world import World

DISK, TEMPLATE = "gcp:compute/disk:Disk", "gcp:compute/instanceTemplate:InstanceTemplate"
INSTANCE, GROUP = "gcp:compute/instance:Instance", "gcp:compute/instanceGroupManager:InstanceGroupManager"
NODE = "gcp:tpu/v2Vm:V2Vm"
NEW_DIGEST: Final = "77" * 32
NEW: Final = "llama-77777777-us-central1-b"
NODES: Final = {"slices": {"trainer": {"backend": "tpu-vm", "max_run_hours": None}}}


@final
@dataclass(frozen=True, kw_only=True)
class Case:
    """A stack, and who reads its model."""

    stack: str
    old: str
    """Its volume, by the digest that its file has."""
    readers: frozenset[tuple[str, str]]
    changes: Mapping[str, Any] | None = None


CASES = (
    Case(stack="dev", old="llama-3f9a6c0b-us-central1-b", readers=frozenset({(INSTANCE, "trainer")})),
    Case(stack="dev", old="llama-3f9a6c0b-us-central1-b", readers=frozenset({(NODE, "trainer")}), changes=NODES),
    Case(
        stack="staging",
        old="llama-a41d07e2-us-central1-b",
        readers=frozenset({(GROUP, "rehearsal"), (TEMPLATE, "rehearsal-template")}),
    ),
    Case(
        stack="prod",
        old="llama-c7e58d1f-us-central1-b",
        readers=frozenset((INSTANCE, f"serve-{number}") for number in range(4)),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=("instance", "node", "group", "serving"))
def test_a_new_version_is_made_then_read_and_then_the_old_one_goes(standing: Standing, case: Case) -> None:
    world = World(project=f"acme-tpu-{case.stack}", now=NOW)
    stand = standing(case.stack, case.changes, world)
    stand.up()
    stand.settings({"model": {"manifest_sha256": NEW_DIGEST}})
    steps = stand.steps()
    moved = {(step.type, step.name) for step in steps if "replace" in step.op}
    assert moved == case.readers
    made = steps.index(Step(op="create", type=DISK, name=NEW))
    gone = steps.index(Step(op="delete", type=DISK, name=case.old))
    assert all(made < place < gone for place, step in enumerate(steps) if (step.type, step.name) in moved)
    volumes = {last(disk["name"]): disk["users"] for disk in world.items(Part.DISKS) if "hyperdisk-ml" in disk["type"]}
    assert {name: bool(users) for name, users in volumes.items()} == {f"{case.stack}-{NEW}": True}


def test_throughput_changes_in_place(standing: Standing) -> None:
    world = World(project="acme-tpu-dev", now=NOW)
    stand = standing("dev", world=world)
    stand.up()
    before = of_volume(stand)
    stand.settings({"model": {"throughput": 2000}})
    steps = [step for step in stand.steps() if step.op != "same"]
    assert {step.op for step in steps} == {"update"}
    assert Step(op="update", type=DISK, name="llama-3f9a6c0b-us-central1-b") in steps
    after = of_volume(stand)
    assert (before["id"], before["inputs"]["provisionedThroughput"]) == (after["id"], 1200)
    assert after["inputs"]["provisionedThroughput"] == 2000
    volume = world.named(Part.DISKS, "dev-llama-3f9a6c0b-us-central1-b")
    assert (volume["provisionedThroughput"], len(volume["users"])) == ("2000", 1)


def of_volume(stand: Stand) -> dict[str, Any]:
    (found,) = (one for urn, one in stand.state().items() if urn.endswith("::llama-3f9a6c0b-us-central1-b"))
    return found
