"""The same verdicts through Google's own clients: the record keeps every field that an auditor needs."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from policies.audit.judge import judge
from policies.audit.live.access import Access
from policies.audit.live.recording import collect
from policies.audit.model import Audit, RemedyKind, VerdictKind
from policies.audit.pricing import GIB
from policies.audit.record import Part
from policies.audit.terms import Terms
from policies.money import Amount
from tests.google_cloud.server import served
from tests.google_cloud.world import World
from tests.policies.audit.worlds import ZONE, book

NOW = datetime.datetime(2026, 11, 15, 10, 0, tzinfo=datetime.UTC)
PROJECT = "reef"
AT = f"projects/{PROJECT}/zones/{ZONE}"
OWNED = {"env": "dev", "managed-by": "spotrail", "ttl": "90d"}


def slices(world: World) -> None:
    nodes: dict[str, dict[str, object]] = {
        "idle": {"labels": OWNED},
        "busy": {"labels": OWNED},
        "silent": {"labels": OWNED | {"run": "kite"}},
        "gone": {"state": "PREEMPTED", "dataDisks": [{"sourceDisk": f"{AT}/disks/orphan", "mode": "READ_ONLY"}]},
        "blind": {},
    }
    for name, fields in nodes.items():
        own = {
            "acceleratorType": "v6e-8",
            "schedulingConfig": {"spot": True},
            "createTime": "now-20d",
            "state": "READY",
        }
        world.add(Part.NODES, name=f"{ZONE}/{name}", **{**own, **fields})
    world.observe("duty", zone=ZONE, worker=world.named(Part.NODES, "idle")["id"], chips=8, percent=0.4)
    world.observe("duty", zone=ZONE, worker="busy-w-0", chips=8, percent=71)
    world.observe("duty", zone=ZONE, worker="silent", chips=8, percent=99)
    world.add(Part.BUCKETS, name="reef-dev-checkpoints", labels=OWNED)
    beat = {"run": "kite", "attempt": 1, "step": 7, "time": "2026-11-15T07:00:00Z"}
    world.add(
        Part.HEARTBEATS, bucket="reef-dev-checkpoints", name="kite/heartbeat.json", updated="now-3h", content=beat
    )
    for name, state in (("q1", "SUSPENDED"), ("q2", "FAILED"), ("q3", "WAITING_FOR_RESOURCES")):
        spec = {"nodeId": name, "node": {"acceleratorType": "v6e-8", "runtimeVersion": "v2-alpha-tpuv6e"}}
        world.add(
            Part.QUEUED_RESOURCES, name=f"{ZONE}/{name}", state={"state": state}, spot={}, tpu={"nodeSpec": [spec]}
        )


def machines(world: World) -> None:
    creator = {"items": [{"key": "created-by", "value": f"projects/77/zones/{ZONE}/instanceGroupManagers/trainer"}]}
    world.add(Part.GROUPS, name="trainer", zone=ZONE, targetSize=4)
    for end in ("a1b2", "c3d4", "e5f6", "g7h8"):
        world.add(
            Part.INSTANCES,
            name=f"trainer-{end}",
            zone=ZONE,
            machineType="ct6e-standard-4t",
            labels=OWNED | {"ttl": "30d"},
            scheduling={"provisioningModel": "SPOT", "preemptible": True},
            metadata=creator,
            networkInterfaces=[{"network": f"projects/{PROJECT}/global/networks/default"}],
        )
    world.add(Part.INSTANCES, name="head", zone=ZONE, machineType="e2-standard-4", labels=OWNED)
    world.observe("cpu", instance="head", utilization=0.01)


def leftovers(world: World) -> None:
    world.add(Part.DISKS, name="orphan", zone=ZONE, sizeGb="200", provisionedThroughput="400")
    world.add(Part.ADDRESSES, name="spare", region="us-central1", status="RESERVED", addressType="EXTERNAL")
    gone = {"sourceDisk": f"{AT}/disks/gone", "sourceDiskId": "77"}
    world.add(Part.SNAPSHOTS, name="old", storageBytes=str(40 * GIB), storageLocations=["us-central1"], **gone)
    world.add(Part.SNAPSHOTS, name="model", storageBytes=str(40 * GIB), labels={"role": "model"}, **gone)
    world.add(Part.IMAGES, name="stale", archiveSizeBytes=str(8 * GIB), storageLocations=["us-central1"], **gone)
    world.observe(
        "bytes",
        bucket="reef-dev-checkpoints",
        kinds={"live-object": 100 * GIB, "soft-deleted-object": 900 * GIB, "noncurrent-object": 50 * GIB},
    )
    world.add(Part.CACHES, bucket="reef-dev-checkpoints", zone=ZONE)
    world.observe("requests", bucket="reef-dev-checkpoints", zone=ZONE, per_second={"cache_hit=false": 3})
    world.add(Part.ROUTERS, name="exit", region="us-central1", nats=[{"name": "nat"}])
    world.observe("nat", router="exit", gateway="nat", mibps=2)


@pytest.fixture(scope="module")
def audit() -> Audit:
    """An audit of a world with one thing of each kind."""
    world = World(project=PROJECT, now=NOW)
    for fill in (slices, machines, leftovers):
        fill(world)
    with served(world) as endpoint:
        found = collect(Access(endpoint=endpoint), PROJECT, Terms(), lambda _: None, now=NOW)
    return judge(found.record, Terms(), book(), NOW.date())


@pytest.mark.parametrize(
    ("name", "kind", "monthly", "advice"),
    [
        ("idle", VerdictKind.IDLE_SLICE, "3504", RemedyKind.DELETE_NODE),
        ("busy", VerdictKind.IN_USE, "0", None),
        ("silent", VerdictKind.IDLE_SLICE, "3504", None),
        ("gone", VerdictKind.PREEMPTED, "0", RemedyKind.DELETE_NODE),
        ("blind", VerdictKind.UNKNOWN_TELEMETRY, None, None),
        ("q1", VerdictKind.STALE_REQUEST, "0", RemedyKind.DELETE_QUEUED_RESOURCE),
        ("q2", VerdictKind.STALE_REQUEST, "0", RemedyKind.DELETE_QUEUED_RESOURCE),
        ("q3", VerdictKind.WAITING, "0", None),
        ("trainer", VerdictKind.EXPIRED, "7008", RemedyKind.RESIZE_GROUP),
        ("spare", VerdictKind.ORPHANED, "7.30", RemedyKind.RELEASE_ADDRESS),
        ("old", VerdictKind.ORPHANED, "2", RemedyKind.DELETE_SNAPSHOT),
        ("stale", VerdictKind.ORPHANED, "0.40", RemedyKind.DELETE_IMAGE),
        ("reef-dev-checkpoints", VerdictKind.ORPHANED, "19", RemedyKind.SHORTEN_SOFT_DELETE),
    ],
)
def test_a_verdict(audit: Audit, name: str, kind: VerdictKind, monthly: str | None, advice: RemedyKind | None) -> None:
    (found,) = [verdict for verdict in audit.verdicts if verdict.name == name]
    assert found.kind is kind, found.message
    assert found.waste == (None if monthly is None else Amount.by_month(Decimal(monthly)))
    assert (found.remedy.kind if found.remedy else None) is advice


def test_the_cache_and_the_rest_of_the_verdicts(audit: Audit) -> None:
    (cache,) = [verdict for verdict in audit.verdicts if verdict.type == "storage.anywhereCache"]
    assert (cache.kind, cache.location) == (VerdictKind.ORPHANED, ZONE)
    assert len(audit.verdicts) == 15
    assert audit.missing == ()


def test_the_findings(audit: Audit) -> None:
    found = [(finding.rule, finding.resource.rpartition("/")[2]) for finding in audit.findings]
    assert sorted(found) == [
        ("NET-NAT-BULK", "exit"),
        ("TPU-LEFTOVER", "gone"),
        ("TPU-NO-TTL", "blind"),
        ("VM-IDLE", "head"),
    ]
