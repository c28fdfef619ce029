"""No resource, however malformed, breaks an auditor: what cannot be read is in an unknown state, with the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.audit.live.fields import ALLOWED
from policies.audit.model import AuditFinding, Verdict, VerdictKind
from policies.audit.record import Metric, Part
from tests.policies.audit.worlds import (
    URL,
    ZONE,
    context,
    disk,
    duty,
    everywhere,
    instance,
    node,
    regional,
    told,
    zonal,
)

AUDITORS = (
    "addresses",
    "buckets",
    "caches",
    "fan_out",
    "images",
    "instances",
    "leftovers",
    "nat",
    "nodes",
    "on_demand",
    "queued_resources",
    "snapshots",
    "storage_pools",
    "tpu_hosts",
    "ttl_labels",
)
GOOD: Mapping[Part, dict[str, Any]] = {
    Part.DISKS: disk(provisionedThroughput="2400", users=[f"{URL}/zones/{ZONE}/instances/head"] * 21),
    Part.INSTANCES: instance(machine="ct6e-standard-8t", labels={"env": "dev", "slice": "trainer", "ttl": "7d"}),
    Part.SNAPSHOTS: everywhere(
        "snapshots", "s", storageBytes="5", sourceDisk="zones/z/disks/gone", storageLocations=["us-central1"]
    ),
    Part.IMAGES: everywhere("images", "i", archiveSizeBytes="5", sourceDisk="zones/z/disks/gone", family="f"),
    Part.ADDRESSES: regional("addresses", "a", status="RESERVED", addressType="EXTERNAL"),
    Part.GROUPS: zonal("instanceGroupManagers", "g", targetSize=4, baseInstanceName="head"),
    Part.STORAGE_POOLS: zonal(
        "storagePools",
        "p",
        storagePoolType="hyperdisk-balanced",
        poolProvisionedCapacityGb="20480",
        capacityProvisioningType="ADVANCED",
        resourceStatus={"diskCount": "1", "poolUsedCapacityBytes": "7"},
    ),
    Part.ROUTERS: regional("routers", "r", nats=[{"name": "n"}]),
    Part.NODES: node(dataDisks=[{"sourceDisk": f"projects/reef/zones/{ZONE}/disks/coral"}], labels={"run": "kite"}),
    Part.QUEUED_RESOURCES: {
        "name": "projects/reef/locations/us-central1-b/queuedResources/q",
        "state": {"state": "WAITING_FOR_RESOURCES"},
        "spot": {},
        "tpu": {
            "nodeSpec": [{"parent": "projects/reef/locations/us-central1-b", "node": {"acceleratorType": "v6e-8"}}]
        },
    },
    Part.BUCKETS: {"name": "b", "location": "US-CENTRAL1", "storageClass": "STANDARD", "lifecycle": {"rule": [{}]}},
    Part.CACHES: {"name": "c", "bucket": "b", "zone": ZONE, "state": "running", "createTime": "2026-01-01T00:00:00Z"},
    Part.HEARTBEATS: {"bucket": "reef-dev-x", "updated": "2026-11-01T00:00:00Z", "content": {"run": "kite", "time": 1}},
}
TEXTS = st.sampled_from(
    [
        "",
        "READY",
        "RUNNING",
        "PREEMPTED",
        "NEW_STATE",
        "http://[",
        "//",
        "/",
        "-1",
        "1e9",
        "²",
        "9" * 40,
        "2026-13-01T00:00:00Z",
    ]
) | st.text(max_size=12)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def worlds(draw: st.DrawFn) -> dict[Part, list[dict[str, Any]]]:
    """One good item a part, with a few of the fields that a record may have replaced by anything."""
    found: dict[Part, list[dict[str, Any]]] = {}
    for part, good in GOOD.items():
        item = json.loads(json.dumps(good))
        for field in draw(st.lists(st.sampled_from(sorted({*ALLOWED[part], *good})), max_size=3)):
            item[field] = draw(JUNK)
        for field in draw(st.lists(st.sampled_from(sorted(good)), max_size=1)):
            item.pop(field, None)
        found[part] = [item]
    return found


METRICS = {
    Metric.DUTY_CYCLE: [duty("4611686018427387904", 0.0, 0.0, 0.0)],
    Metric.CPU: (),
    Metric.BUCKET_BYTES: (),
    Metric.NAT_RECEIVED: (),
    Metric.CACHE_HITS: (),
}


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(world=worlds())
def test_nothing_that_an_api_could_answer_breaks_an_auditor(world: dict[Part, list[dict[str, Any]]]) -> None:
    seen = context(world, METRICS)
    for name in AUDITORS:
        for found in told(name, seen):
            assert found.message
            assert "Traceback" not in found.message
            assert "\n" not in found.message
            if isinstance(found, AuditFinding):
                continue
            assert found.waste is None or found.waste.per_month >= 0
            if found.kind.unknown:
                assert (found.waste, found.remedy) == (None, None)


@settings(max_examples=60)
@given(part=st.sampled_from(list(Part)), item=st.dictionaries(st.sampled_from(["name", "state", "status", "x"]), JUNK))
def test_a_resource_of_nothing_but_junk_is_at_worst_unknown(part: Part, item: dict[str, Any]) -> None:
    seen = context({part: [item], Part.DISKS: []} if part is not Part.DISKS else {part: [item]}, METRICS)
    for name in AUDITORS:
        for found in told(name, seen):
            assert not (isinstance(found, Verdict) and found.kind is VerdictKind.IDLE_SLICE)


@pytest.mark.parametrize("part", GOOD)
def test_the_good_items_are_read(part: Part) -> None:
    """So that the junk above stands in items that are otherwise judged."""
    found = [
        each
        for name in AUDITORS
        for each in told(name, context({part: [item] for part, item in GOOD.items()}, METRICS))
    ]
    assert not [each for each in found if "cannot be read" in each.message]
