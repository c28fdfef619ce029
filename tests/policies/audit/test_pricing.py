"""The same thing costs the same, to the last digit, from Google's answer and from the state of a stack."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from policies.audit.pricing import GIB
from policies.audit.record import Part
from policies.estimate.engine import estimate
from policies.estimate.model import Estimate
from policies.money import Amount
from policies.readers.source import read_source
from policies.usage import Usage
from tests.policies.audit.worlds import (
    NOW,
    URL,
    ZONE,
    book,
    context,
    disk,
    everywhere,
    instance,
    node,
    regional,
    zonal,
)
from tests.policies.readers.documents import record, state

DISK, TPU = "gcp:compute/disk:Disk", "gcp:tpu/v2Vm:V2Vm"
ML = {"type": "hyperdisk-ml", "zone": ZONE}
POOL = {
    "poolProvisionedCapacityGb": "10240",
    "poolProvisionedIops": "10000",
    "poolProvisionedThroughput": "1024",
    "capacityProvisioningType": "ADVANCED",
    "performanceProvisioningType": "STANDARD",
}


def of_state(*records: Mapping[str, Any], **usage: str) -> Estimate:
    """The estimate of a stack whose state is read as a user's is; keyword arguments are usage of all resources."""
    content = json.dumps(state(*records)).encode()
    reading = read_source("reef.json", io.BytesIO(content))
    entries = {"*": {name: Decimal(value) for name, value in usage.items()}}
    return estimate(reading.after, Usage(entries=entries), book(), NOW.date())


def state_of(token: str, name: str = "coral", **inputs: Any) -> Mapping[str, Any]:
    return record(name, {"name": name, **inputs}, token)


SAME: Mapping[str, tuple[Part, dict[str, Any], Mapping[str, Any], dict[str, str]]] = {
    "volume": (
        Part.DISKS,
        disk(provisionedThroughput="2400", accessMode="READ_ONLY_MANY"),
        state_of(DISK, **ML, size=100, provisionedThroughput=2400),
        {},
    ),
    "volume without a throughput": (Part.DISKS, disk(gib=500), state_of(DISK, **ML, size=500), {}),
    "balanced": (
        Part.DISKS,
        disk(type="hyperdisk-balanced", gib=200, provisionedIops="6000", provisionedThroughput="300"),
        state_of(DISK, type="hyperdisk-balanced", zone=ZONE, size=200, provisionedIops=6000, provisionedThroughput=300),
        {},
    ),
    "regional disk": (
        Part.DISKS,
        regional(
            "disks", "coral", type=f"{URL}/regions/us-central1/diskTypes/pd-balanced", sizeGb="200", replicaZones=["a"]
        ),
        state_of("gcp:compute/regionDisk:RegionDisk", type="pd-balanced", region="us-central1", size=200),
        {},
    ),
    "spot node": (
        Part.NODES,
        node(),
        state_of(TPU, acceleratorType="v6e-8", zone=ZONE, schedulingConfig={"spot": True}),
        {},
    ),
    "node on demand": (
        Part.NODES,
        node(acceleratorType="v6e-64", acceleratorConfig={"type": "V6E", "topology": "8x8"}, schedulingConfig={}),
        state_of(TPU, acceleratorType="v6e-64", zone=ZONE),
        {},
    ),
    "unused address": (
        Part.ADDRESSES,
        regional("addresses", "coral", status="RESERVED", addressType="EXTERNAL"),
        state_of("gcp:compute/address:Address", region="us-central1"),
        {},
    ),
    "unused global address": (
        Part.ADDRESSES,
        everywhere("addresses", "coral", status="RESERVED", addressType="EXTERNAL"),
        state_of("gcp:compute/globalAddress:GlobalAddress"),
        {},
    ),
    "internal address": (
        Part.ADDRESSES,
        regional("addresses", "coral", status="RESERVED", addressType="INTERNAL"),
        state_of("gcp:compute/address:Address", region="us-central1", addressType="INTERNAL"),
        {},
    ),
    "snapshot": (
        Part.SNAPSHOTS,
        everywhere(
            "snapshots", "coral", storageBytes=str(37 * GIB + 1), diskSizeGb="500", storageLocations=["us-central1"]
        ),
        state_of("gcp:compute/snapshot:Snapshot", storageLocations=["us-central1"], sourceDisk="gone"),
        {"gib": "37.000000000931322574615478515625"},
    ),
    "image": (
        Part.IMAGES,
        everywhere("images", "coral", archiveSizeBytes=str(8 * GIB), diskSizeGb="50", storageLocations=["us-central1"]),
        state_of("gcp:compute/image:Image", storageLocations=["us-central1"], sourceDisk="gone"),
        {"gib": "8"},
    ),
    "instance": (
        Part.INSTANCES,
        instance(
            scheduling={"provisioningModel": "STANDARD", "preemptible": False},
            networkInterfaces=[{"name": "nic0", "accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}],
            disks=[{"type": "SCRATCH", "boot": False}],
        ),
        state_of(
            "gcp:compute/instance:Instance",
            machineType="e2-standard-4",
            zone=ZONE,
            bootDisk={"source": "other"},
            networkInterfaces=[{"accessConfigs": [{}]}],
            scratchDisks=[{"interface": "NVME"}],
        ),
        {},
    ),
    "TPU host": (
        Part.INSTANCES,
        instance(machine="ct6e-standard-8t", scheduling={"provisioningModel": "SPOT", "preemptible": True}),
        state_of(
            "gcp:compute/instance:Instance",
            machineType="ct6e-standard-8t",
            zone=ZONE,
            bootDisk={"source": "other"},
            scheduling={"provisioningModel": "SPOT", "preemptible": True},
        ),
        {},
    ),
    "pool": (
        Part.STORAGE_POOLS,
        zonal("storagePools", "coral", storagePoolType=f"{URL}/zones/{ZONE}/storagePoolTypes/hyperdisk-balanced")
        | POOL,
        state_of("gcp:compute/storagePool:StoragePool", storagePoolType="hyperdisk-balanced", zone=ZONE, **POOL),
        {},
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_an_answer_costs_what_the_state_costs(case: str) -> None:
    part, item, recorded, usage = SAME[case]
    live = context({part: [item]}).pricing.estimate(part, item)
    expected = of_state(recorded, **usage).resources[0]
    assert (live.amount, live.unpriced, live.unknown) == (expected.amount, expected.unpriced, expected.unknown)
    assert live.complete
    assert bool(live.free) == bool(expected.free)
    assert bool(live.amount) or live.free


@pytest.mark.parametrize(
    ("case", "monthly"),
    [
        ("volume", "296"),  # 100 x 0.08 + 2400 x 0.12
        ("volume without a throughput", "1480"),  # 500 x 0.08 + 24 x 500 x 0.12
        ("regional disk", "40"),
        ("spot node", "3504"),  # 8 x 0.60 x 730
        ("unused address", "7.30"),
        ("image", "0.40"),
        ("TPU host", "3504"),
        ("pool", "1299.52"),  # 10240 x 0.12 + 10000 x 0.004 + 1024 x 0.03
    ],
)
def test_the_price_by_hand(case: str, monthly: str) -> None:
    part, item, *_ = SAME[case]
    assert context({part: [item]}).pricing.estimate(part, item).amount == Amount.by_month(Decimal(monthly))


def test_a_bucket_bills_the_bytes_that_it_holds() -> None:
    bucket = {"name": "reef-dev", "location": "US-CENTRAL1", "storageClass": "STANDARD"}
    pricing = context({Part.BUCKETS: [bucket]}).pricing
    recorded = state_of(
        "gcp:storage/bucket:Bucket", location="US-CENTRAL1", softDeletePolicy={"retentionDurationSeconds": 0}
    )
    assert pricing.bytes_of(bucket, 50 * GIB).amount == of_state(recorded, gib="50").amount == Amount.by_month(1)
    assert pricing.bytes_of(bucket, 50 * GIB, "NEARLINE").amount == Amount.by_month(Decimal("0.5"))


def test_a_machine_and_its_disk_cost_what_the_program_asked_for_together() -> None:
    head, boot = instance(), disk("head", "pd-balanced", 50)
    pricing = context({Part.INSTANCES: [head], Part.DISKS: [boot]}).pricing
    together = state_of(
        "gcp:compute/instance:Instance",
        machineType="e2-standard-4",
        zone=ZONE,
        bootDisk={"initializeParams": {"size": 50, "type": "pd-balanced"}},
    )
    live = pricing.estimate(Part.INSTANCES, head).amount + pricing.estimate(Part.DISKS, boot).amount
    assert live == of_state(together).amount


@pytest.mark.parametrize(("preemptible", "hourly"), [(True, "0.0025"), (False, "0.005")])
def test_a_reserved_address_bills_once_and_on_the_terms_of_its_user(preemptible: bool, hourly: str) -> None:
    head = instance(
        scheduling={"preemptible": preemptible}, networkInterfaces=[{"accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}]
    )
    address = regional("addresses", "coral", status="IN_USE", addressType="EXTERNAL", users=[head["selfLink"]])
    pricing = context({Part.INSTANCES: [head], Part.ADDRESSES: [address]}).pricing
    without = context({Part.INSTANCES: [head], Part.ADDRESSES: []}).pricing
    used = pricing.estimate(Part.ADDRESSES, address).amount
    assert used == Amount.by_hour(Decimal(hourly))
    machine = pricing.estimate(Part.INSTANCES, head).amount
    assert machine + used == without.estimate(Part.INSTANCES, head).amount


@pytest.mark.parametrize("users", [None, [f"{URL}/regions/us-central1/forwardingRules/f"]])
def test_an_address_in_use_by_something_else_bills_as_used(users: list[str] | None) -> None:
    address = regional("addresses", "coral", status="IN_USE", addressType="EXTERNAL", users=users)
    pricing = context({Part.ADDRESSES: [address]}).pricing
    assert pricing.estimate(Part.ADDRESSES, address).amount == Amount.by_hour(Decimal("0.005"))


def test_a_disk_in_a_pool_bills_with_its_pool() -> None:
    item = disk(type="hyperdisk-balanced", storagePool=f"{URL}/zones/{ZONE}/storagePools/lagoon")
    found = context({Part.DISKS: [item]}).pricing.estimate(Part.DISKS, item)
    assert found.free == "its storage pool bills for it"
    assert not found.amount


@pytest.mark.parametrize("state", ["CREATING", "PREEMPTED", "STOPPED", "TERMINATED", "REPAIRING"])
def test_only_a_ready_node_bills(state: str) -> None:
    item = node(state=state)
    pricing = context({Part.NODES: [item]}).pricing
    assert pricing.estimate(Part.NODES, item).free == "its chips bill while it is READY"
    assert pricing.node(item).amount == Amount.by_hour(Decimal("4.80"))


def test_a_state_that_nobody_knows_has_no_price() -> None:
    item = node(state="HIBERNATING")
    found = context({Part.NODES: [item]}).pricing.estimate(Part.NODES, item)
    assert not found.complete
    assert found.unknown[0].reason.startswith('"HIBERNATING" is no state that spotrail knows')


def test_bytes_that_the_record_does_not_say_are_unknown_and_none_are_free() -> None:
    pricing = context({}).pricing
    silent = everywhere("snapshots", "s", diskSizeGb="500", storageLocations=["us-central1"])
    found = pricing.estimate(Part.SNAPSHOTS, silent)
    assert (found.nothing_known, found.unknown[0].path) == (True, "storageBytes")
    empty = pricing.estimate(Part.SNAPSHOTS, silent | {"storageBytes": "0"})
    assert (empty.complete, empty.amount) == (True, Amount())


def test_the_rate_of_one_mib_a_second_makes_exact_products() -> None:
    pricing = context({}).pricing
    assert pricing.throughput_rate(disk()) == Amount.by_month(Decimal("0.12"))
    assert pricing.throughput_rate(regional("disks", "d", type="hyperdisk-ml")) == Amount.by_month(Decimal("0.12"))
