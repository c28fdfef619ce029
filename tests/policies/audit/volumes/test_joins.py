"""Who reads a volume, in every form in which the APIs name it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policies.audit.record import Metric, Part
from policies.audit.volumes.joins import Joins, Standing
from tests.policies.audit.points import series
from tests.policies.audit.worlds import PROJECT, URL, ZONE, context, disk, instance, node

VM = f"projects/{PROJECT}/zones/{ZONE}/instances/head"
TENANT = "https://www.googleapis.com/compute/v1/projects/f00d-tp/zones/us-central1-b/instances/t1v-n-7-w-0"


def joins(disks: list[Any], instances: list[Any], nodes: list[Any] | None = None) -> Joins:
    parts = {Part.DISKS: disks, Part.INSTANCES: instances, Part.NODES: nodes or []}
    return Joins(context(parts).record)


def standings(found: Joins, volume: Any) -> list[tuple[str, Standing]]:
    return [(host.name, host.standing) for host in found.hosts(volume)]


@pytest.mark.parametrize(
    "user",
    [
        f"{URL}/zones/{ZONE}/instances/head",
        f"https://compute.googleapis.com/compute/beta/{VM}",
        f"http://127.0.0.1:9/compute/v1/{VM}",
        VM,
        f"zones/{ZONE}/instances/head",
        "head",
        f"projects/123456789/zones/{ZONE}/instances/head",
    ],
)
def test_a_user_in_every_form(user: str) -> None:
    volume = disk(users=[user])
    assert standings(joins([volume], [instance()]), volume) == [("head", Standing.RUNS)]


def test_a_user_named_twice_is_one() -> None:
    volume = disk(users=["head", VM])
    vm = instance(disks=[{"source": volume["selfLink"], "deviceName": "data"}])
    found = joins([volume], [vm]).hosts(volume)
    assert [(host.name, host.device) for host in found] == [("head", "data")]


@pytest.mark.parametrize(
    ("status", "standing"),
    [
        ("RUNNING", Standing.RUNS),
        ("STAGING", Standing.RUNS),
        ("SUSPENDING", Standing.RUNS),
        ("TERMINATED", Standing.OFF),
        ("STOPPED", Standing.OFF),
        ("SUSPENDED", Standing.OFF),
        ("LEVITATING", Standing.UNSURE),
        (None, Standing.UNSURE),
    ],
)
def test_states_of_an_instance(status: str | None, standing: Standing) -> None:
    volume = disk(users=[VM])
    assert standings(joins([volume], [instance(status=status)]), volume) == [("head", standing)]


def test_a_bare_name_is_looked_for_in_the_place_of_the_disk() -> None:
    """Two machines of one name in two zones: the one beside the volume is meant; of a disk without a zone, neither."""
    far = instance(zone=f"{URL}/zones/us-east1-d", selfLink=f"{URL}/zones/us-east1-d/instances/head", status="STOPPED")
    volume = disk(users=["head"])
    assert standings(joins([volume], [far, instance()]), volume) == [("head", Standing.RUNS)]
    nowhere = {"name": "coral", "users": ["head"]}
    assert standings(joins([nowhere], [far, instance()]), nowhere) == [("head", Standing.UNSURE)]
    alone = {"name": "head", "status": "RUNNING", "id": "1"}
    assert standings(joins([nowhere], [alone]), nowhere) == [("head", Standing.RUNS)]


def test_a_regional_disk_has_its_users_in_a_zone_of_the_region() -> None:
    regional = disk() | {
        "selfLink": f"{URL}/regions/us-central1/disks/coral",
        "zone": None,
        "region": f"{URL}/regions/us-central1",
        "users": [f"{URL}/zones/{ZONE}/instances/head"],
    }
    assert standings(joins([regional], [instance()]), regional) == [("head", Standing.RUNS)]
    assert standings(joins([regional | {"users": ["head"]}], [instance()]), regional) == [("head", Standing.RUNS)]


def test_a_user_that_is_nowhere() -> None:
    volume = disk(users=[f"{URL}/zones/{ZONE}/instances/gone"])
    host, *rest = joins([volume], [instance()]).hosts(volume)
    assert (host.name, host.standing, host.status, rest) == ("gone", Standing.UNSURE, "", [])


def test_an_instance_that_names_the_disk_is_a_user() -> None:
    """The list of disks may be older than the list of instances."""
    volume = disk(users=[])
    vm = instance(disks=[{"source": volume["selfLink"], "deviceName": "weights"}])
    assert [host.device for host in joins([volume], [vm]).hosts(volume)] == ["weights"]


def test_the_device_is_called_like_the_disk_where_nobody_says() -> None:
    volume = disk(users=[VM])
    other = {"source": f"{URL}/zones/{ZONE}/disks/other", "deviceName": "data"}
    assert [host.device for host in joins([volume], [instance(disks=[other])]).hosts(volume)] == ["coral"]


@pytest.mark.parametrize("users", [[], [TENANT], ["pod"], [TENANT, TENANT.replace("w-0", "w-1")]])
def test_a_node_stands_for_its_machines(users: list[str]) -> None:
    volume = disk(users=users)
    pod = node(accelerator="v6e-16", dataDisks=[{"sourceDisk": volume["selfLink"], "mode": "READ_ONLY"}])
    host, *rest = joins([volume], [], [pod]).hosts(volume)
    assert (host.name, host.tpu, host.machines, host.standing, rest) == ("pod", True, 4, Standing.RUNS, [])


@pytest.mark.parametrize(
    ("state", "standing"),
    [
        ("PREEMPTED", Standing.OFF),
        ("STOPPED", Standing.OFF),
        ("REPAIRING", Standing.RUNS),
        ("DREAMING", Standing.UNSURE),
    ],
)
def test_states_of_a_node(state: str, standing: Standing) -> None:
    volume = disk()
    pod = node(state=state, dataDisks=[{"sourceDisk": volume["selfLink"]}])
    assert standings(joins([volume], [], [pod]), volume) == [("pod", standing)]


def test_a_machine_of_another_project_is_a_tpu_host() -> None:
    volume = disk(users=[TENANT])
    host, *rest = joins([volume], []).hosts(volume)
    assert (host.name, host.tpu, host.standing, rest) == ("t1v-n-7-w-0", True, Standing.RUNS, [])


def test_series_are_of_a_pair() -> None:
    volume = disk(users=[VM])
    vm = instance(id="7", disks=[{"source": volume["selfLink"], "deviceName": "data"}])
    mine, other, elsewhere = (
        series([(0, 60, 1)], instance="7", device="data"),
        series([(0, 60, 2)], instance="7", device="boot"),
        series([(0, 60, 3)], instance="8", device="data"),
    )
    record = context({Part.INSTANCES: [vm]}, {Metric.READ_BYTES: [other, mine, elsewhere]}).record
    found = Joins(record)
    assert found.series(Metric.READ_BYTES, found.hosts(volume)[0]) == (mine,)
    assert found.series(Metric.WRITE_BYTES, found.hosts(volume)[0]) == ()


def test_series_of_machines_that_are_gone_go_by_name_and_place() -> None:
    volume = disk()
    attached = {"source": f"{URL}/zones/{ZONE}/disks/other", "deviceName": "coral"}
    ours = series([(0, 60, 1)], instance="99", device="coral", zone=ZONE)
    far = series([(0, 60, 1)], instance="98", device="coral", zone="us-east1-d")
    namesake = series([(0, 60, 1)], instance="7", device="coral", zone=ZONE)
    other = series([(0, 60, 1)], instance="97", device="boot", zone=ZONE)
    former = series([(0, 60, 1)], instance="8", device="coral", zone=ZONE)
    instances = [instance(id="7", disks=[attached]), instance("tail", id="8")]
    metrics = {Metric.READ_BYTES: [far, ours, namesake, other, former]}
    found = Joins(context({Part.INSTANCES: instances}, metrics).record)
    gone = {"99": (ours,), "8": (former,)}
    assert found.strangers(Metric.READ_BYTES, volume, ()) == gone
    everywhere = {"name": "coral", "region": f"{URL}/regions/us-central1"}
    assert found.strangers(Metric.READ_BYTES, everywhere, ()) == gone


def test_what_a_host_has_under_the_name_of_the_disk_is_its_own() -> None:
    """The list of instances may not say what they have attached."""
    volume = disk(users=[VM])
    mine = series([(0, 60, 1)], instance="7", device="coral", zone=ZONE)
    found = Joins(context({Part.INSTANCES: [instance(id="7")]}, {Metric.READ_BYTES: [mine]}).record)
    hosts = found.hosts(volume)
    assert found.series(Metric.READ_BYTES, hosts[0]) == (mine,)
    assert found.strangers(Metric.READ_BYTES, volume, hosts) == {}


@pytest.mark.parametrize(("mode", "seen"), [("READ_ONLY_MANY", True), ("READ_WRITE_SINGLE", False)])
def test_preempted_hosts_of_a_group_had_a_shared_volume_under_the_device_of_those_that_there_are(
    mode: str, seen: bool
) -> None:
    """A template gives all its machines one device name; a volume of one machine alone goes with it."""
    volume = disk(accessMode=mode)
    made = {"items": [{"key": "created-by", "value": f"projects/1/zones/{ZONE}/instanceGroupManagers/wave"}]}
    attached = {"source": volume["selfLink"], "deviceName": "persistent-disk-1"}
    vm = instance("wave-a1b2", id="7", disks=[attached], metadata=made)

    def reading(id: str, name: str) -> Any:
        found = series([(0, 60, 1)], instance=id, device="persistent-disk-1", zone=ZONE)
        return replace(found, metric_labels={**found.metric_labels, "instance_name": name})

    now, gone, other = reading("7", "wave-a1b2"), reading("98", "wave-c3d4"), reading("97", "tide-c3d4")
    found = Joins(context({Part.INSTANCES: [vm]}, {Metric.READ_BYTES: [now, gone, other]}).record)
    assert found.strangers(Metric.READ_BYTES, volume, found.hosts(volume)) == ({"98": (gone,)} if seen else {})


@pytest.mark.parametrize("users", [None, "head", [3, None, {}], {"a": 1}])
def test_users_that_are_no_links_are_none(users: Any) -> None:
    volume = disk(users=users)
    assert joins([volume], [instance()]).hosts(volume) == ()
