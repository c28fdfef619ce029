"""A small project on the loopback cloud, and the command lines that look at it."""

from __future__ import annotations

import datetime
from typing import Any, Final

from policies.audit.record import Part
from tests.google_cloud.instants import rfc3339
from tests.google_cloud.world import World

NOW: Final = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)
ZONE: Final = "us-central1-b"
AT: Final = f"projects/acme-tpu-dev/zones/{ZONE}"
OURS: Final = {"managed-by": "spotrail", "env": "dev", "role": "model"}
WASTE: Final = "1687.70"
"""llama-old: 12,000 MiB/s at 0.12 and 500 GiB at 0.08; serve: 1,670 MiB/s beyond 400 at 0.12; old-head: an address that
nobody uses, 0.010 an hour."""


def furnished() -> World:
    """A volume that nobody has attached, one that is read at a tenth of its throughput, an address of somebody else."""
    world = World(now=NOW)
    volume(world, "llama-old", lastDetachTimestamp="now-27d")
    volume(world, "serve", users=["reader"], provisionedThroughput="2070")
    reader(world, "reader", "serve", read=200)
    world.add(
        Part.ADDRESSES, name="old-head", region="us-central1", addressType="EXTERNAL", networkTier="PREMIUM",
        status="RESERVED", creationTimestamp="now-75d",
    )  # fmt: skip
    return world


def volume(world: World, name: str, **fields: Any) -> None:
    """A volume of 500 GiB of ours, 60 days old."""
    wanted = {
        "name": name, "zone": ZONE, "sizeGb": "500", "provisionedThroughput": "12000", "labels": OURS,
        "accessMode": "READ_ONLY_MANY", "creationTimestamp": "now-60d", "lastAttachTimestamp": "now-59d", **fields,
    }  # fmt: skip
    world.add(Part.DISKS, **wanted)


def reader(world: World, name: str, disk: str, **flows: Any) -> None:
    """A machine at work that has a volume attached, 60 days old; `read` is what its series say, none without."""
    disks = [{"source": f"{name}-boot", "boot": True}, {"source": disk, "deviceName": disk, "mode": "READ_ONLY"}]
    world.add(
        Part.INSTANCES, name=name, zone=ZONE, machineType="e2-standard-4", labels=OURS, disks=disks,
        creationTimestamp="now-60d",
    )  # fmt: skip
    world.observe("cpu", instance=name, utilization=0.5)
    if flows:
        world.observe("traffic", instance=name, device=disk, **flows)


def live(endpoint: str, *more: str) -> tuple[str, ...]:
    """The arguments of an audit of that cloud, by its own clock."""
    place = ("--endpoint", endpoint, "--now", rfc3339(NOW), "--quiet")
    return ("audit", "--project", "acme-tpu-dev", *place, *more)


def done(endpoint: str, plan: str, *more: str) -> tuple[str, ...]:
    """The arguments that do a saved plan there."""
    return ("audit", "--from", plan, "--apply", "--endpoint", endpoint, "--now", rfc3339(NOW), *more)
