"""What is in the small project of these tests, and a guard that looks at it."""

from __future__ import annotations

import datetime
from typing import Any, Final

from policies.audit.live.access import Access
from policies.audit.record import Part
from policies.audit.terms import Terms
from policies.guard.running import Orders, Run, run_guard
from policies.prices.book import shipped_book
from tests.google_cloud.world import World

NOW: Final = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)
ZONE: Final = "us-central1-b"
TOPIC: Final = "projects/acme-tpu-dev/topics/dev-findings"
OURS: Final = {"managed-by": "spotrail", "env": "dev", "owner": "ml-infra"}


def furnish(world: World) -> None:
    """Ours: a volume that nobody reads, one that nobody has attached, a node and a group past their ttl. Somebody
    else's: a volume that nobody has attached."""
    volume(world, "dev-llama", labels=OURS, users=["dev-reader"])
    volume(world, "dev-old", labels=OURS)
    volume(world, "theirs", labels={"env": "lab"})
    reader(world, "dev-reader", "dev-llama")
    world.observe("traffic", instance="dev-reader", device="dev-llama", read=0)
    world.add(
        Part.NODES,
        name=f"{ZONE}/dev-node",
        state="READY",
        acceleratorType="v6e-8",
        runtimeVersion="v2-alpha-tpuv6e",
        schedulingConfig={"spot": True},
        createTime="2026-11-20T08:00:00Z",
        labels={**OURS, "ttl": "3d"},
    )
    group(world, "dev-group", hosts=2)


def volume(world: World, name: str, **fields: Any) -> None:
    """A volume of 500 GiB with what Google provisions where nobody says a throughput."""
    wanted = {"name": name, "zone": ZONE, "sizeGb": "500", "provisionedThroughput": "12000", **fields}
    world.add(Part.DISKS, accessMode="READ_ONLY_MANY", **wanted)


def reader(world: World, name: str, disk: str) -> None:
    """A machine that has a volume attached."""
    labels = {**OURS, "role": "head"}
    boot = {"source": f"{name}-boot", "boot": True}
    disks = [boot, {"source": disk, "deviceName": disk, "mode": "READ_ONLY"}]
    world.add(Part.INSTANCES, name=name, zone=ZONE, machineType="e2-standard-4", labels=labels, disks=disks)
    world.observe("cpu", instance=name, utilization=0.5)


def group(world: World, name: str, *, hosts: int) -> None:
    """A slice of several hosts, made by a managed group, past its ttl."""
    world.add(Part.GROUPS, name=name, zone=ZONE, targetSize=hosts)
    for number in range(hosts):
        world.add(
            Part.INSTANCES,
            name=f"{name}-{number:04}",
            zone=ZONE,
            machineType="ct6e-standard-4t",
            creationTimestamp="2026-11-20T08:00:00.000-08:00",
            labels={**OURS, "ttl": "12h", "slice": "group"},
            scheduling={"provisioningModel": "SPOT"},
            metadata={
                "items": [
                    {
                        "key": "created-by",
                        "value": f"projects/481516234210/zones/{ZONE}/instanceGroupManagers/{name}",
                    }
                ]
            },
        )


def orders(**changes: Any) -> Orders:
    """Those of the stack dev, with the shipped prices."""
    wanted: dict[str, Any] = {
        "project": "acme-tpu-dev",
        "stack": "dev",
        "terms": Terms(),
        "book": shipped_book(),
        "topic": TOPIC,
        "poll_s": 0.01,
        **changes,
    }
    return Orders(**wanted)


def guarded(endpoint: str, at: datetime.datetime = NOW, **changes: Any) -> Run:
    """A run of the guard at a moment."""
    access = Access(endpoint=endpoint, first_wait_s=0.01, deadline_s=2.0)
    return run_guard(orders(**changes), access, lambda line: None, now=at)
