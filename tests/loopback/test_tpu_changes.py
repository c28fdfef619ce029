"""Nodes and queued resources end by operations that Google's own client waits for."""

from __future__ import annotations

from typing import Any

import pytest
from google.api_core.exceptions import GoogleAPICallError, InvalidArgument, NotFound

from policies.audit.record import Part
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.world import World
from tests.loopback.clients import tpu

PARENT = "projects/acme-tpu-dev/locations/us-central1-b"


def slice_of(world: World, state: str, *, node: bool) -> None:
    """A queued resource `q`, and where wanted its node `pod`."""
    spec = {"nodeId": "pod", "node": {"acceleratorType": "v6e-8", "runtimeVersion": "v2-alpha-tpuv6e"}}
    name = f"{PARENT}/queuedResources/q"
    world.add(Part.QUEUED_RESOURCES, name=name, state={"state": state}, spot={}, tpu={"nodeSpec": [spec]})
    if node:
        world.add(Part.NODES, name=f"{PARENT}/nodes/pod", state="READY", queuedResource=name)


def left(world: World) -> list[str]:
    parts = (Part.NODES, Part.QUEUED_RESOURCES)
    return [item["name"].rsplit("/", 1)[-1] for part in parts for item in world.items(part)]


def test_a_node_is_deleting_and_then_gone(world: World, endpoint: str) -> None:
    world.add(Part.NODES, name=f"{PARENT}/nodes/pod", state="PREEMPTED")
    client = tpu(endpoint)
    operation = client.delete_node(name=f"{PARENT}/nodes/pod")
    assert client.get_node(name=f"{PARENT}/nodes/pod").state.name == "DELETING"
    with pytest.raises(NotFound):
        client.delete_node(name=f"{PARENT}/nodes/pod")
    operation.result(timeout=20)
    assert left(world) == []
    assert operation.metadata.target == f"{PARENT}/nodes/pod"


def test_what_an_ended_node_was_queued_for_is_suspended(world: World, endpoint: str) -> None:
    slice_of(world, "ACTIVE", node=True)
    tpu(endpoint).delete_node(name=f"{PARENT}/nodes/pod").result(timeout=20)
    (queued,) = world.items(Part.QUEUED_RESOURCES)
    assert queued["state"] == {"state": "SUSPENDED"}


@pytest.mark.parametrize(
    ("state", "node", "force", "remain"),
    [
        ("SUSPENDED", True, False, []),
        ("FAILED", False, False, []),
        ("WAITING_FOR_RESOURCES", False, False, []),
        ("ACTIVE", True, True, []),
        ("ACTIVE", True, False, ["pod", "q"]),
        ("PROVISIONING", True, False, ["pod", "q"]),
    ],
)
def test_a_queued_resource_is_deleted_with_its_nodes_or_refused(
    world: World, endpoint: str, state: str, node: bool, force: bool, remain: list[str]
) -> None:
    slice_of(world, state, node=node)
    request: Any = {"name": f"{PARENT}/queuedResources/q", "force": force}
    if remain:
        with pytest.raises(InvalidArgument, match="has nodes"):
            tpu(endpoint).delete_queued_resource(request=request)
    else:
        tpu(endpoint).delete_queued_resource(request=request).result(timeout=20)
    assert left(world) == remain


def test_a_repeated_request_is_the_same_deletion(world: World, endpoint: str) -> None:
    slice_of(world, "FAILED", node=False)
    request: Any = {"name": f"{PARENT}/queuedResources/q", "request_id": "c0ffee00-0000-4000-8000-000000000001"}
    names = {tpu(endpoint).delete_queued_resource(request=request).operation.name for _ in range(2)}
    assert len(names) == 1


def test_a_deletion_that_fails_leaves_the_node(world: World, endpoint: str) -> None:
    world.add(Part.NODES, name=f"{PARENT}/nodes/pod", state="PREEMPTED")
    world.fail(Fault(kind=FaultKind.FAILED_OPERATION, method="tpu.nodes.delete"))
    operation = tpu(endpoint).delete_node(name=f"{PARENT}/nodes/pod")
    with pytest.raises(GoogleAPICallError, match="Internal error"):
        operation.result(timeout=20)
    assert world.items(Part.NODES)[0]["state"] == "PREEMPTED"
