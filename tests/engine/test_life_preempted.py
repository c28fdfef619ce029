"""A spot slice that Google has taken away: what a refresh sees of it, and the documented command that makes it anew."""

from __future__ import annotations

from typing import Any, Final

from policies.audit.record import Part
from tests.engine.conftest import NOW, Standing
from tests.engine.operations import documented
from tests.engine.stand import Stand
from tests.google_cloud.compute_instances import members
from tests.google_cloud.declared_machines import INSTANCES
from tests.google_cloud.shapes import Item, relative
from tests.google_cloud.world import World

NODES: Final = {"slices": {"trainer": {"backend": "tpu-vm", "max_run_hours": None}}}
NODE: Final = "gcp:tpu/v2Vm:V2Vm"


def test_an_instance_is_gone_and_a_refreshing_up_makes_another(standing: Standing) -> None:
    world = World(project="acme-tpu-dev", now=NOW)
    stand = standing("dev", world=world)
    stand.up()
    take_away(world, world.named(Part.INSTANCES, "dev-trainer"))
    assert set(stand.up()) == {"same"}  # whoever does not look sees nothing
    assert stand.refresh()["delete"] == 1
    stand.run(documented("pulumi up --stack dev --refresh"))
    assert world.named(Part.INSTANCES, "dev-trainer")["status"] == "RUNNING"
    assert set(stand.up()) == {"same"}


def test_a_node_is_seen_as_preempted_and_made_anew_when_it_is_asked_for(standing: Standing) -> None:
    world = World(project="acme-tpu-dev", now=NOW)
    stand = standing("dev", NODES, world)
    stand.up()
    (node,) = world.items(Part.NODES)
    node |= {"state": "PREEMPTED", "health": "UNHEALTHY_MAINTENANCE"}
    assert set(stand.up(refresh=True)) == {"same"}  # an output is no difference
    assert of_node(stand)["outputs"]["state"] == "PREEMPTED"
    stand.run(documented("pulumi up --stack dev --replace '**V2Vm::trainer'"))
    assert of_node(stand)["outputs"]["state"] == "READY"
    calls = [call.method for call in world.calls.log if "/nodes/dev-trainer" in call.detail]
    changes = [method.rpartition(".")[2] for method in calls if not method.endswith(".get")]
    assert changes == ["insert", "delete", "insert"]


def test_a_group_stays_empty_and_gets_hosts_again_when_it_is_asked_for(standing: Standing) -> None:
    world = World(project="acme-tpu-staging", now=NOW)
    stand = standing("staging", world=world)
    stand.up()
    hosts = members(world, world.named(Part.GROUPS, "staging-rehearsal"))
    assert len(hosts) == 4
    for host in hosts:
        take_away(world, host)
    assert set(stand.up(refresh=True)) == {"same"}
    stand.run(documented("pulumi up --stack staging --replace '**InstanceGroupManager::rehearsal'"))
    assert len(members(world, world.named(Part.GROUPS, "staging-rehearsal"))) == 4


def take_away(world: World, machine: Item) -> None:
    """As Google does with a spot machine whose termination action is DELETE."""
    assert machine["scheduling"]["instanceTerminationAction"] == "DELETE"
    INSTANCES.delete(world, relative(machine["selfLink"]), machine, {})


def of_node(stand: Stand) -> dict[str, Any]:
    (node,) = (one for one in stand.state().values() if one["type"] == NODE)
    return node
