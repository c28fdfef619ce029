"""Queued resources by their state."""

from __future__ import annotations

from typing import Any

import pytest

from policies.audit.model import RemedyKind, VerdictKind
from policies.audit.record import Item, Missing, Part
from policies.money import ZERO
from tests.policies.audit.worlds import context, told, verdict

PARENT = "projects/reef/locations/us-central1-b"


def request(state: Any, **fields: Any) -> Item:
    return {"name": f"{PARENT}/queuedResources/q", "state": {"state": state}} | fields


def node_spec(name: str = "n", **more: Any) -> Item:
    return {"parent": PARENT, "nodeId": name, "node": {"acceleratorType": "v6e-8"}} | more


@pytest.mark.parametrize(
    ("state", "kind", "advice"),
    [
        ("SUSPENDED", VerdictKind.STALE_REQUEST, RemedyKind.DELETE_QUEUED_RESOURCE),
        ("FAILED", VerdictKind.STALE_REQUEST, RemedyKind.DELETE_QUEUED_RESOURCE),
        ("WAITING_FOR_RESOURCES", VerdictKind.WAITING, None),
        ("ACCEPTED", VerdictKind.WAITING, None),
        ("PROVISIONING", VerdictKind.WAITING, None),
        ("CREATING", VerdictKind.WAITING, None),
        ("SUSPENDING", VerdictKind.WAITING, None),
        ("DELETING", VerdictKind.WAITING, None),
        ("ACTIVE", VerdictKind.IN_USE, None),
        ("THAWING", VerdictKind.UNKNOWN_STATE, None),
        ("STATE_UNSPECIFIED", VerdictKind.UNKNOWN_STATE, None),
        (None, VerdictKind.UNKNOWN_STATE, None),
        (["SUSPENDED"], VerdictKind.UNKNOWN_STATE, None),
        ({"state": "SUSPENDED"}, VerdictKind.UNKNOWN_STATE, None),
    ],
)
def test_a_state_decides_whether_a_request_is_dead(state: Any, kind: VerdictKind, advice: RemedyKind | None) -> None:
    found = verdict("queued_resources", context({Part.QUEUED_RESOURCES: [request(state)]}))
    assert found.kind is kind
    assert (found.remedy.kind if found.remedy else None) is advice
    assert found.waste in (ZERO, None)


def test_three_requests_of_one_project() -> None:
    states = {"q1": "SUSPENDED", "q2": "FAILED", "q3": "WAITING_FOR_RESOURCES"}
    items = [{"name": name, "state": {"state": state}} for name, state in states.items()]
    found = told("queued_resources", context({Part.QUEUED_RESOURCES: items}))
    assert [each.message for each in found] == [
        "SUSPENDED: never served again, costs no chips, holds quota",
        "FAILED: stays until it is deleted, costs no chips, holds quota",
        "WAITING_FOR_RESOURCES: costs nothing now, bills as soon as it is served",
    ]


@pytest.mark.parametrize(
    ("fields", "monthly"),
    [
        ({"spot": {}}, "3,504.00"),
        ({"guaranteed": {}}, "15,768.00"),
        ({}, "15,768.00"),
    ],
)
def test_what_waits_says_what_it_will_cost(fields: Item, monthly: str) -> None:
    item = request("ACCEPTED", createTime="2026-11-03T00:00:00Z", tpu={"nodeSpec": [node_spec()]}, **fields)
    found = verdict("queued_resources", context({Part.QUEUED_RESOURCES: [item]}))
    assert found.message == f"ACCEPTED since 11-03: costs nothing now, {monthly} /month as soon as it is served"


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        ([node_spec("a"), node_spec("b")], "7,008.00 /month"),
        ([node_spec(multisliceParams={"nodeCount": 3})], "10,512.00 /month"),
        ([node_spec("a"), node_spec("b", node={"acceleratorType": "v5litepod-8"})], "bills"),
    ],
)
def test_all_its_nodes_count_or_none(specs: list[Item], said: str) -> None:
    item = request("ACCEPTED", spot={}, tpu={"nodeSpec": specs})
    found = verdict("queued_resources", context({Part.QUEUED_RESOURCES: [item]}))
    assert found.message == f"ACCEPTED: costs nothing now, {said} as soon as it is served"


def test_a_half_seen_world_deletes_no_request() -> None:
    gap = Missing(part="tpu.queuedResources us-east1-d", why="503")
    found = verdict("queued_resources", context({Part.QUEUED_RESOURCES: [request("SUSPENDED")]}, missing=(gap,)))
    assert (found.kind, found.remedy) == (VerdictKind.UNKNOWN_STATE, None)
