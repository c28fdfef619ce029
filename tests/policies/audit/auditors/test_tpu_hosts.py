"""Slices of Compute Engine: which machines belong together, and what ends them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from policies.audit.model import RemedyKind, Verdict, VerdictKind
from policies.audit.record import Item, Metric, Missing, Part, Series
from policies.money import Amount
from tests.policies.audit.worlds import NOW, ZONE, context, duty, instance, told, verdict, zonal

FOUR = Amount.by_hour(Decimal("2.40"))
"""Four spot chips at 0.60."""
SPOT = {"scheduling": {"provisioningModel": "SPOT", "preemptible": True}}
GROUP = zonal("instanceGroupManagers", "trainer", targetSize=4, baseInstanceName="trainer", status={"isStable": True})
CREATOR = {"items": [{"key": "created-by", "value": f"projects/77/zones/{ZONE}/instanceGroupManagers/trainer"}]}
MADE, STARTED = "creationTimestamp", "lastStartTimestamp"


def host(name: str, **fields: Any) -> Item:
    return instance(name, "ct6e-standard-4t", **SPOT) | fields


def quiet(*hosts: Item, percent: float = 0.0) -> list[Series]:
    return [duty(str(item["id"]), *[percent] * 168) for item in hosts]


def judged(hosts: list[Item], series: list[Series], *groups: Item, **more: Any) -> list[Verdict]:
    seen = context({Part.INSTANCES: hosts, Part.GROUPS: groups}, {Metric.DUTY_CYCLE: series}, **more)
    return [found for found in told("tpu_hosts", seen) if isinstance(found, Verdict)]


def test_the_hosts_of_a_group_are_one_slice_that_ends_with_the_group() -> None:
    hosts = [host(f"trainer-{suffix}", metadata=CREATOR) for suffix in ("a1b2", "c3d4", "e5f6", "g7h8")]
    (found,) = judged(hosts, quiet(*hosts), GROUP)
    assert found.resource == f"projects/reef/zones/{ZONE}/instanceGroupManagers/trainer"
    assert (found.type, found.kind) == ("compute.instanceGroupManager", VerdictKind.IDLE_SLICE)
    assert found.waste == FOUR * 4
    assert found.remedy is not None
    assert (found.remedy.kind, found.remedy.monthly_saving) == (RemedyKind.RESIZE_GROUP, FOUR * 4)


@pytest.mark.parametrize("groups", [(GROUP,), ()])
def test_a_node_pool_is_not_resized_behind_the_back_of_its_cluster(groups: tuple[Item, ...]) -> None:
    hosts = [host(f"trainer-{end}", labels={"goog-gke-node": ""}) for end in ("a1b2", "c3d4")]
    found = judged(hosts, quiet(*hosts), *groups)
    assert [(each.kind, each.remedy) for each in found] == [(VerdictKind.IDLE_SLICE, None)] * (1 if groups else 2)


def test_without_metadata_the_base_name_of_the_group_tells_its_hosts() -> None:
    hosts = [host("trainer-a1b2"), host("trainer-c3d4"), host("trainer-eval-e5f6")]
    found = judged(hosts, quiet(*hosts), GROUP)
    assert [(each.name, each.waste) for each in found] == [("trainer", FOUR * 2), ("trainer-eval-e5f6", FOUR)]


def test_one_busy_host_keeps_its_whole_slice_in_use() -> None:
    hosts = [host(f"trainer-{suffix}", metadata=CREATOR) for suffix in ("a1b2", "c3d4")]
    (found,) = judged(hosts, [*quiet(hosts[0]), *quiet(hosts[1], percent=60.0)], GROUP)
    assert found.kind is VerdictKind.IN_USE


def test_hosts_of_the_same_labels_are_judged_together_and_stopped_one_by_one() -> None:
    labels = {"env": "dev", "slice": "trainer"}
    hosts = [host("one", labels=labels), host("two", labels=labels), host("other", labels={"env": "dev", "slice": "x"})]
    idle = judged(hosts[:2], quiet(*hosts[:2]))
    assert [(each.name, each.kind, each.waste) for each in idle] == [
        ("one", VerdictKind.IDLE_SLICE, FOUR),
        ("two", VerdictKind.IDLE_SLICE, FOUR),
    ]
    assert {each.remedy.kind for each in idle if each.remedy} == {RemedyKind.STOP_INSTANCE}
    mixed = judged(hosts, [*quiet(hosts[0], hosts[2]), *quiet(hosts[1], percent=60.0)])
    assert [each.kind for each in mixed] == [VerdictKind.IN_USE, VerdictKind.IN_USE, VerdictKind.IDLE_SLICE]
    unseen = judged(hosts[:2], quiet(hosts[0]))
    assert [each.message for each in unseen] == ["READY, duty cycles of 1 of 2 workers only"] * 2


def test_hosts_of_a_group_that_was_not_seen_are_judged_and_left_alone() -> None:
    hosts = [host("trainer-a1b2", metadata=CREATOR)]
    (found,) = judged(hosts, quiet(*hosts))
    assert (found.name, found.kind, found.remedy) == ("trainer-a1b2", VerdictKind.IDLE_SLICE, None)
    gap = Missing(part="compute.instanceGroupManagers us-east1-d", why="503")
    (half,) = judged(hosts, quiet(*hosts), GROUP, missing=(gap,))
    assert (half.kind, half.waste, half.remedy) == (VerdictKind.UNKNOWN_STATE, None, None)


def test_its_ttl_counts_from_its_oldest_host_and_its_idleness_from_its_newest_start() -> None:
    old, young = NOW - datetime.timedelta(days=3), NOW - datetime.timedelta(hours=2)
    labels = {"ttl": "2d", "env": "dev", "slice": "trainer", "managed-by": "spotrail"}
    hosts = [
        host("trainer-a1b2", metadata=CREATOR, labels=labels) | {MADE: old.isoformat(), STARTED: old.isoformat()},
        host("trainer-c3d4", metadata=CREATOR, labels=labels) | {MADE: young.isoformat(), STARTED: young.isoformat()},
    ]
    (expired,) = judged(hosts, quiet(*hosts), GROUP)
    assert (expired.kind, expired.since) == (VerdictKind.EXPIRED, NOW - datetime.timedelta(days=1))
    assert expired.remedy is not None
    assert expired.remedy.kind is RemedyKind.RESIZE_GROUP
    assert dict(expired.labels) == labels
    bounded = [{**item, "labels": labels | {"ttl": "9d"}} for item in hosts]
    (idle,) = judged(bounded, quiet(*hosts), GROUP)
    assert (idle.kind, idle.since) == (VerdictKind.IDLE_SLICE, young)


def test_labels_on_which_the_hosts_disagree_say_nothing_of_their_slice() -> None:
    hosts = [
        host(f"trainer-{end}{end}{end}{end}", metadata=CREATOR, labels={"ttl": f"{end}h", "x": "1"}) for end in "12"
    ]
    (found,) = judged(hosts, quiet(*hosts), GROUP)
    assert (found.kind, found.labels) == (VerdictKind.IDLE_SLICE, (("x", "1"),))
    given = GROUP | {"allInstancesConfig": {"properties": {"labels": {"ttl": "3h"}}}}
    (ended,) = judged(hosts, quiet(*hosts), given)
    assert (ended.kind, ended.labels) == (VerdictKind.EXPIRED, (("ttl", "3h"), ("x", "1")))


def test_a_worker_may_go_by_the_name_of_its_machine() -> None:
    (found,) = judged([host("solo")], [duty("solo", *[0.0] * 168)])
    assert found.kind is VerdictKind.IDLE_SLICE


@pytest.mark.parametrize("status", ["TERMINATED", "STOPPED", "SUSPENDED", "PROVISIONING", "STAGING"])
def test_hosts_that_do_not_run_make_no_slice(status: str) -> None:
    assert judged([host("solo", status=status)], []) == []


def test_a_status_of_the_future_is_unknown_and_never_idle() -> None:
    (found,) = judged([host("solo", status="DREAMING")], [duty("solo", *[0.0] * 168)])
    assert (found.kind, found.remedy) == (VerdictKind.UNKNOWN_STATE, None)


def test_machines_without_chips_are_no_slice() -> None:
    seen = context({Part.INSTANCES: [instance()]}, {Metric.DUTY_CYCLE: []})
    assert told("tpu_hosts", seen) == []


def test_no_duty_cycle_is_unknown() -> None:
    seen = context({Part.INSTANCES: [host("solo")]}, {Metric.DUTY_CYCLE: []})
    found = verdict("tpu_hosts", seen)
    assert (found.kind, found.message) == (VerdictKind.UNKNOWN_TELEMETRY, "READY, no duty cycle in the window")
