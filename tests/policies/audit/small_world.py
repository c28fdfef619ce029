"""A small project with something in every part, for the tests of the live clients."""

import datetime
from typing import Any, Final

from policies.audit.live.access import Access
from policies.audit.live.recording import Candidates, Collected, collect
from policies.audit.record import Part
from policies.audit.terms import Terms
from tests.google_cloud.server import served
from tests.google_cloud.world import PROJECT, World

NOW: Final = datetime.datetime(2026, 11, 29, 12, 3, 20, tzinfo=datetime.UTC)
B: Final = "us-central1-b"
SECRET: Final = "hunter2"

LISTS: Final = {
    Part.DISKS: "compute.disks.aggregatedList",
    Part.INSTANCES: "compute.instances.aggregatedList",
    Part.SNAPSHOTS: "compute.snapshots.list",
    Part.IMAGES: "compute.images.list",
    Part.ADDRESSES: "compute.addresses.aggregatedList",
    Part.GROUPS: "compute.instanceGroupManagers.aggregatedList",
    Part.STORAGE_POOLS: "compute.storagePools.aggregatedList",
    Part.ROUTERS: "compute.routers.aggregatedList",
    Part.NODES: "tpu.nodes.list",
    Part.QUEUED_RESOURCES: "tpu.queuedResources.list",
    Part.BUCKETS: "storage.buckets.list",
    Part.CACHES: "storage.anywhereCaches.list",
    Part.HEARTBEATS: "storage.objects.list",
}
"""The method that lists each part."""


def small_world() -> World:
    """Something in every part, with secrets where the APIs have room for them."""
    world = World(now=NOW)
    world.add(Part.DISKS, name="llama", zone=B, type="hyperdisk-ml", sizeGb="500", provisionedThroughput="12000")
    world.add(Part.DISKS, name="far", zone="us-east1-d", type="hyperdisk-ml", sizeGb="500", description=SECRET)
    world.add(
        Part.INSTANCES,
        name="reader",
        zone=B,
        disks=[{"source": "llama", "deviceName": "weights", "diskEncryptionKey": {"rawKey": SECRET}}],
        metadata={"items": [{"key": "startup-script", "value": f"export TOKEN={SECRET}"}]},
        serviceAccounts=[{"email": f"{SECRET}@example.com"}],
        networkInterfaces=[{"name": "nic0", "networkIP": SECRET, "accessConfigs": [{"name": "NAT", "natIP": SECRET}]}],
        description=SECRET,
        hostname=SECRET,
        tags={"items": [SECRET]},
    )
    world.add(
        Part.SNAPSHOTS,
        name="old",
        sourceDisk=f"projects/{PROJECT}/zones/{B}/disks/gone",
        storageBytes="1099511627776",
        description=SECRET,
    )
    world.add(Part.IMAGES, name="golden", archiveSizeBytes="53687091200", description=SECRET)
    world.add(Part.ADDRESSES, name="forgotten", region="us-central1", status="RESERVED", address="34.1.2.3")
    world.add(Part.GROUPS, name="serving", zone=B, targetSize=2, description=SECRET)
    world.add(Part.STORAGE_POOLS, name="pool", zone=B, poolProvisionedCapacityGb="10240", description=SECRET)
    world.add(Part.ROUTERS, name="router", region="us-central1", nats=[{"name": "nat"}], description=SECRET)
    world.add(
        Part.NODES,
        name=f"{B}/pod",
        state="READY",
        acceleratorType="v6e-8",
        metadata={"token": SECRET},
        description=SECRET,
    )
    world.add(Part.QUEUED_RESOURCES, name=f"{B}/queue", state={"state": "SUSPENDED"})
    world.add(Part.BUCKETS, name="runs", labels={"managed-by": "spotrail"})
    world.add(Part.BUCKETS, name="other")
    world.add(Part.CACHES, bucket="runs", zone=B)
    beat = {"run": "run-7", "attempt": 1, "step": 640, "time": "2026-11-29T11:58:00Z", "token": SECRET}
    world.add(Part.HEARTBEATS, bucket="runs", name="trainer/run-7/heartbeat.json", updated="now-5m", content=beat)
    world.observe("traffic", instance="reader", device="weights", read=300)
    return world


def collected(
    world: World, *, said: list[str] | None = None, candidates: Candidates = lambda _record, _terms: (), **patience: Any
) -> Collected:
    """The project, read over the loopback by the real clients with little patience."""
    access: dict[str, Any] = {"first_wait_s": 0.01, "deadline_s": 4.0, "call_s": 20.0, "part_s": 60.0} | patience
    say = (lambda _: None) if said is None else said.append
    with served(world) as endpoint:
        return collect(Access(endpoint=endpoint, **access), PROJECT, Terms(), say, now=NOW, candidates=candidates)
