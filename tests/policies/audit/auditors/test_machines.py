"""Machines without chips, what a slice that is gone left behind, terms of slices, volumes of many readers."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from policies.audit.context import Context
from policies.audit.model import AuditFinding, VerdictKind
from policies.audit.record import Item, Metric, Missing, Part, Series
from policies.money import Amount
from policies.rules.model import Severity
from tests.policies.audit.worlds import (
    END,
    NOW,
    PROJECT,
    URL,
    ZONE,
    context,
    disk,
    findings,
    gauge,
    instance,
    node,
    regional,
    told,
    verdict,
    zonal,
)

HEAD = Amount.by_hour(Decimal("0.128"))
"""4 vCPUs at 0.02 and 16 GiB at 0.003."""
GAPS = (Missing(part="compute.instances us-east1-d", why="503"), Missing(part=Metric.CPU.value, why="429"))


def cpu(item: Item, *values: float, step: int = 3600, end: datetime.datetime = END) -> Series:
    where = {"project_id": PROJECT, "instance_id": str(item["id"]), "zone": ZONE}
    return gauge({"instance_name": str(item["name"])}, where, values, step=step, end=end, resource_type="gce_instance")


def machines(*items: Item, series: tuple[Series, ...] = (), disks: tuple[Item, ...] = (), **more: Any) -> Context:
    return context({Part.INSTANCES: items, Part.DISKS: disks}, {Metric.CPU: series}, **more)


def test_a_head_that_does_nothing_all_week_is_found() -> None:
    item = instance()
    (found,) = findings("instances", machines(item, series=(cpu(item, *[0.9] * 8, *[0.012] * 160),)))
    assert (found.rule, found.severity, found.monthly) == ("VM-IDLE", Severity.WARNING, HEAD)
    assert found.message == "e2-standard-4, CPU p95 1.2 % over 7 days: 93.44 /month"


def test_an_idle_node_of_a_cluster_is_found_with_its_pool() -> None:
    """Stopped by hand, it would be made again."""
    item = instance(labels={"goog-gke-node": "", "goog-k8s-cluster-name": "bay"})
    (found,) = findings("instances", machines(item, series=(cpu(item, *[0.01] * 168),)))
    assert found.message.endswith("; a node of the cluster bay: its node pool is what to make smaller")


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([0.049] * 168, 1),
        ([0.05] * 168, 0),
        ([0.9] * 9 + [0.0] * 159, 0),  # 9 of 168 are more than one in twenty
        ([0.0] * 152, 1),  # 90.5 % of the window
        ([0.0] * 151, 0),  # 89.9 %
        ([], 0),
    ],
)
def test_one_point_in_twenty_may_be_busy_and_nine_tenths_must_be_there(values: list[float], count: int) -> None:
    item = instance()
    assert len(findings("instances", machines(item, series=(cpu(item, *values),)))) == count


@pytest.mark.parametrize("missing", GAPS)
def test_a_half_seen_world_has_no_idle_machine(missing: Missing) -> None:
    item = instance()
    assert told("instances", machines(item, series=(cpu(item, *[0.0] * 168),), missing=(missing,))) == []


def test_a_machine_that_started_within_the_window_is_not_judged() -> None:
    item = instance(lastStartTimestamp=(NOW - datetime.timedelta(days=6)).isoformat())
    assert told("instances", machines(item, series=(cpu(item, *[0.0] * 168),))) == []


def test_tpu_hosts_are_judged_by_their_chips() -> None:
    item = instance(machine="ct6e-standard-8t")
    assert told("instances", machines(item, series=(cpu(item, *[0.0] * 168),))) == []


def test_a_status_of_the_future_is_unknown() -> None:
    assert verdict("instances", machines(instance(status="DREAMING"))).kind is VerdictKind.UNKNOWN_STATE


def stopped(**fields: Any) -> Item:
    disks = [{"source": f"{URL}/zones/{ZONE}/disks/{name}"} for name in ("boot", "shared", "elsewhere")]
    return instance(status="TERMINATED", disks=disks, lastStopTimestamp="2026-11-03T08:00:00-08:00") | fields


def test_a_stopped_machine_keeps_the_disks_that_only_it_uses() -> None:
    me, other = f"{URL}/zones/{ZONE}/instances/head", f"{URL}/zones/{ZONE}/instances/two"
    disks = (disk("boot", "pd-balanced", 50, users=[me]), disk("shared", "pd-balanced", 100, users=[me, other]))
    (found,) = findings("instances", machines(stopped(), disks=disks))
    assert (found.rule, found.monthly) == ("VM-STOPPED", Amount.by_month(5))
    assert found.message == "TERMINATED since 11-03; 1 disk of it bills 5.00 /month"
    assert not findings("instances", machines(stopped(lastStopTimestamp=NOW.isoformat()), disks=disks))
    assert not findings("instances", machines(stopped()))


def gone(state: str = "PREEMPTED", **fields: Any) -> Item:
    return node(state=state, dataDisks=[{"sourceDisk": f"projects/reef/zones/{ZONE}/disks/llama"}]) | fields


def left(
    *nodes: Item, disks: tuple[Item, ...] = (), addresses: tuple[Item, ...] = (), **more: Any
) -> list[AuditFinding]:
    world = {Part.NODES: nodes, Part.DISKS: disks, Part.ADDRESSES: addresses}
    return findings("leftovers", context(world, **more))


VOLUME = disk("llama", gib=200, provisionedThroughput="400")


@pytest.mark.parametrize("state", ["PREEMPTED", "STOPPED", "TERMINATED"])
def test_a_node_that_is_gone_leaves_its_disk_and_address_behind(state: str) -> None:
    address = regional("addresses", "pod-ip", status="RESERVED", addressType="EXTERNAL")
    (found,) = left(gone(state), disks=(VOLUME,), addresses=(address,))
    assert (found.rule, found.monthly) == ("TPU-LEFTOVER", Amount.by_month(Decimal("71.30")))  # 16 + 48 + 7.30
    assert found.message == f"{state}, and its 1 disk and 1 address (llama, pod-ip) still bill 71.30 /month"


@pytest.mark.parametrize(
    ("nodes", "disks"),
    [
        ((gone("READY"),), (VOLUME,)),
        ((gone(), gone("READY", name=f"projects/reef/locations/{ZONE}/nodes/two")), (VOLUME,)),
        ((gone(),), (VOLUME | {"users": [f"{URL}/zones/{ZONE}/instances/reader"]},)),
        ((gone(),), ()),
        ((gone("MYSTERY"),), (VOLUME,)),
    ],
    ids=["ready", "another node reads it", "a machine reads it", "gone too", "state of the future"],
)
def test_what_is_still_used_is_not_left_behind(nodes: tuple[Item, ...], disks: tuple[Item, ...]) -> None:
    assert left(*nodes, disks=disks) == []


def test_a_half_seen_world_has_no_leftovers() -> None:
    assert left(gone(), disks=(VOLUME,), missing=(Missing(part="compute.disks us-east1-d", why="503"),)) == []


def terms(*nodes: Item, hosts: tuple[Item, ...] = (), groups: tuple[Item, ...] = ()) -> dict[str, AuditFinding]:
    world = {Part.NODES: nodes, Part.INSTANCES: hosts, Part.GROUPS: groups}
    return {found.rule: found for found in findings("on_demand", context(world))}


def test_a_live_slice_on_demand_says_what_spot_would_save() -> None:
    found = terms(node(schedulingConfig={}, labels={"ttl": "7d"}))
    assert list(found) == ["TPU-ON-DEMAND"]
    assert found["TPU-ON-DEMAND"].severity is Severity.ERROR
    assert found["TPU-ON-DEMAND"].monthly == Amount.by_hour(Decimal("16.80"))  # 8 x (2.70 - 0.60)
    message = "its chips run on demand: 15,768.00 /month, 12,264.00 /month more than spot"
    assert found["TPU-ON-DEMAND"].message == message
    lenient = terms(node(schedulingConfig={"spot": False}, labels={"ttl": "7d", "env": "prod"}))
    assert lenient["TPU-ON-DEMAND"].severity is Severity.WARNING


@pytest.mark.parametrize(
    "config", [{"spot": True}, {"preemptible": True}, {"reserved": True}, {"spot": True, "preemptible": True}]
)
def test_spot_and_reserved_slices_are_fine(config: Item) -> None:
    assert terms(node(schedulingConfig=config, labels={"ttl": "7d"})) == {}


@pytest.mark.parametrize("state", ["PREEMPTED", "CREATING", "STOPPED"])
def test_only_slices_that_bill_are_looked_at(state: str) -> None:
    assert terms(node(state=state, schedulingConfig={})) == {}


def test_the_hosts_of_a_group_are_one_finding() -> None:
    group = zonal("instanceGroupManagers", "trainer", baseInstanceName="trainer", targetSize=2)
    hosts = tuple(instance(f"trainer-{name}", "ct6e-standard-4t", scheduling={}) for name in ("aaaa", "bbbb"))
    found = terms(hosts=hosts, groups=(group,))
    assert sorted(found) == ["TPU-NO-TTL", "TPU-ON-DEMAND"]
    assert found["TPU-ON-DEMAND"].resource.endswith("instanceGroupManagers/trainer")
    assert found["TPU-ON-DEMAND"].monthly == Amount.by_hour(Decimal("16.80"))
    assert found["TPU-NO-TTL"].monthly == Amount.by_hour(Decimal("21.60"))


@pytest.mark.parametrize(
    "bound",
    [{"labels": {"ttl": "7d"}}, {"scheduling": {"provisioningModel": "SPOT", "maxRunDuration": {"seconds": "9"}}}],
)
def test_a_label_or_a_run_duration_bounds_a_slice(bound: Item) -> None:
    spot = {"scheduling": {"provisioningModel": "SPOT"}}
    assert terms(hosts=(instance("solo", "ct6e-standard-8t", **spot) | bound,)) == {}
    assert list(terms(hosts=(instance("solo", "ct6e-standard-8t", **spot),))) == ["TPU-NO-TTL"]


@pytest.mark.parametrize(
    ("readers", "throughput", "monthly"),
    [
        (60, 6000, "576"),  # 60 hosts: the floor is 1,200 today
        (21, 2100, "201.6"),  # the floor is 420
        (21, 2099, None),
        (20, 2400, None),
    ],
)
def test_many_readers_at_the_old_floor(readers: int, throughput: int, monthly: str | None) -> None:
    users = [f"{URL}/zones/{ZONE}/instances/serve-{number}" for number in range(readers)]
    item = disk(gib=512, provisionedThroughput=str(throughput), users=users)
    found = findings("fan_out", context({Part.DISKS: [item]}))
    assert [each.monthly for each in found] == ([] if monthly is None else [Amount.by_month(Decimal(monthly))])
    assert all(each.rule == "DISK-FANOUT" for each in found)
    assert not findings("fan_out", context({Part.DISKS: [item | {"type": "hyperdisk-balanced"}]}))
