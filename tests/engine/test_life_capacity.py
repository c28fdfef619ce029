"""A zone without room for a slice: the `up` says so, what it made stays, and the next one makes what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest

from infra.preview import preview
from policies.audit.record import Part
from tests.engine.agreement import missing
from tests.engine.conftest import NOW, Standing
from tests.engine.operations import documented
from tests.engine.stand import Stand
from tests.engine.walk import reading
from tests.google_cloud.world import World

INSTANCE, NODE = "gcp:compute/instance:Instance", "gcp:tpu/v2Vm:V2Vm"
GROUP: Final = "gcp:compute/instanceGroupManager:InstanceGroupManager"
FULL: Final = "us-central1-b' does not have enough resources available"
NODES: Final = {"slices": {"trainer": {"backend": "tpu-vm", "max_run_hours": None}}}


def no_capacity(type_: str, name: str) -> list[Mapping[str, Any]]:
    return [{"on": "create", "type": type_, "name": name, "kind": "no-capacity"}]


@pytest.mark.parametrize(("type_", "changes"), [(INSTANCE, {}), (NODE, NODES)], ids=("instance", "node"))
def test_the_next_up_makes_what_is_missing_and_nothing_twice(
    standing: Standing, type_: str, changes: Mapping[str, Any]
) -> None:
    world = World(project="acme-tpu-dev", now=NOW)
    stand = standing("dev", changes, world)
    said = stand.failing_up(no_capacity(type_, "trainer"))
    assert FULL in said
    planned, exported = preview(stand.name, stand.folder).resources, reading(stand.export(), "state.json")
    left_out = missing(planned, exported.after)
    assert [urn for urn in left_out if urn.endswith(f"{type_}::trainer")]
    assert exported.possible == ()  # a refusal is an end: nothing is in doubt
    before = ids(stand)
    documented("pulumi up --stack dev")
    assert stand.up() == {"create": len(left_out), "same": len(planned) - len(left_out)}
    assert before.items() <= ids(stand).items()
    assert set(inserted(world).values()) == {1}


def test_a_group_waits_at_google_for_its_hosts(standing: Standing) -> None:
    world = World(project="acme-tpu-staging", now=NOW)
    stand = standing("staging", world=world)
    stand.environment["SPOTRAIL_FAULTS"] = str(no_capacity(GROUP, "rehearsal")).replace("'", '"')
    assert set(stand.up()) == {"create"}
    assert [group["name"] for group in world.items(Part.GROUPS)] == ["staging-rehearsal"]
    assert [machine["name"] for machine in world.items(Part.INSTANCES)] == ["staging-head"]


def ids(stand: Stand) -> dict[str, str]:
    return {urn: one["id"] for urn, one in stand.state().items() if one.get("id")}


def inserted(world: World) -> Counter[str]:
    """How often each thing was made in Google Cloud."""
    return Counter(call.detail for call in world.calls.log if call.method == "loopback.resources.insert")
