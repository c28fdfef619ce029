"""Google's own clients list what a loopback world holds: whole, page by page, and in Google's shape."""

from __future__ import annotations

from typing import Any

import pytest

from policies.audit.record import Part
from tests.google_cloud.world import World
from tests.loopback.clients import compute, tpu

ZONE = "us-central1-b"


def disks(endpoint: str, size: int = 500) -> list[Any]:
    pages = compute(endpoint, "Disks").aggregated_list(request={"project": "acme-tpu-dev", "max_results": size})
    return [disk for _, scope in pages for disk in scope.disks]


def test_a_disk_comes_in_the_shape_of_google(world: World, endpoint: str) -> None:
    world.add(Part.DISKS, name="llama", zone=ZONE, sizeGb="500", provisionedThroughput="12000", users=["trainer-0"])
    (disk,) = disks(endpoint)
    base = f"https://www.googleapis.com/compute/v1/projects/acme-tpu-dev/zones/{ZONE}"
    assert (disk.self_link, disk.zone) == (f"{base}/disks/llama", base)
    assert (disk.type_, list(disk.users)) == (f"{base}/diskTypes/hyperdisk-ml", [f"{base}/instances/trainer-0"])
    assert (disk.size_gb, disk.provisioned_throughput, disk.status) == (500, 12000, "READY")


@pytest.mark.parametrize(("size", "pages"), [(500, 1), (3, 4), (10, 1), (9, 2)])
def test_pages_hold_every_disk_once(world: World, endpoint: str, size: int, pages: int) -> None:
    names = [f"disk-{index}" for index in range(8)]
    for index, name in enumerate(names):
        world.add(Part.DISKS, name=name, zone=("us-east1-d", ZONE)[index % 2], sizeGb="10")
    world.add(Part.DISKS, name="wide", region="us-central1", sizeGb="10", type="pd-ssd")
    world.add(Part.DISKS, name="zoned", zone="us-east5-a", sizeGb="10")
    assert sorted(disk.name for disk in disks(endpoint, size)) == [*names, "wide", "zoned"]
    assert world.counts() == {"compute.disks.aggregatedList": pages}


def test_a_page_of_more_than_500_is_refused(world: World, endpoint: str) -> None:
    from google.api_core.exceptions import BadRequest

    with pytest.raises(BadRequest, match="Must be less than or equal to 500"):
        disks(endpoint, 501)


def test_nodes_of_all_locations(world: World, endpoint: str) -> None:
    world.add(Part.NODES, name="us-east1-d/pod", state="PREEMPTED", acceleratorType="v6e-8")
    world.add(Part.NODES, name=f"{ZONE}/other", state="READY", acceleratorType="v6e-8", labels={"env": "dev"})
    found = list(tpu(endpoint).list_nodes(request={"parent": "projects/acme-tpu-dev/locations/-", "page_size": 1}))
    assert [(node.name.rsplit("/", 1)[-1], node.state.name) for node in found] == [
        ("other", "READY"),
        ("pod", "PREEMPTED"),
    ]
    one = list(tpu(endpoint).list_nodes(parent="projects/acme-tpu-dev/locations/us-east1-d"))
    assert [node.name for node in one] == ["projects/acme-tpu-dev/locations/us-east1-d/nodes/pod"]
    assert world.counts() == {"tpu.nodes.list": 3}


def test_queued_resources_keep_what_they_ask_for(world: World, endpoint: str) -> None:
    node = {"acceleratorType": "v6e-64", "runtimeVersion": "v2-alpha-tpuv6e"}
    world.add(
        Part.QUEUED_RESOURCES,
        name=f"{ZONE}/q1",
        state={"state": "SUSPENDED"},
        spot={},
        tpu={"nodeSpec": [{"nodeId": "pod-q1", "node": node}]},
    )
    (queued,) = tpu(endpoint).list_queued_resources(parent="projects/acme-tpu-dev/locations/-")
    assert (queued.state.state.name, "spot" in queued) == ("SUSPENDED", True)
    assert queued.tpu.node_spec[0].node.accelerator_type == "v6e-64"
    assert queued.tpu.node_spec[0].parent == f"projects/481516234210/locations/{ZONE}"


def test_a_state_that_the_client_does_not_know_comes_through(world: World, endpoint: str) -> None:
    world.add(Part.NODES, name=f"{ZONE}/new", state=99)
    (node,) = tpu(endpoint).list_nodes(parent="projects/acme-tpu-dev/locations/-")
    assert type(node).pb(node).state == 99  # as a plain number: the typed form warns


GLOBAL = "https://www.googleapis.com/compute/v1/projects/acme-tpu-dev/global"
POOL = {"zone": ZONE, "poolProvisionedIops": "7"}
MANAGERS = ("InstanceGroupManagers", "instance_group_managers", Part.GROUPS)
COLLECTIONS: list[tuple[str, str, Part, dict[str, Any], dict[str, Any]]] = [
    ("Instances", "instances", Part.INSTANCES, {"zone": ZONE, "status": "SUSPENDED"}, {"status": "SUSPENDED"}),
    ("Addresses", "addresses", Part.ADDRESSES, {"region": "us-central1", "status": "RESERVED"}, {"status": "RESERVED"}),
    ("Addresses", "addresses", Part.ADDRESSES, {"addressType": "EXTERNAL"}, {"address_type": "EXTERNAL"}),
    (*MANAGERS, {"zone": ZONE, "targetSize": 3}, {"target_size": 3}),
    (*MANAGERS, {"region": "us-east1", "baseInstanceName": "pod"}, {"base_instance_name": "pod"}),
    ("StoragePools", "storage_pools", Part.STORAGE_POOLS, POOL, {"pool_provisioned_iops": 7}),
    ("Routers", "routers", Part.ROUTERS, {"region": "us-central1", "nats": [{"name": "egress"}]}, {}),
]


@pytest.mark.parametrize(("service", "field", "part", "given", "expected"), COLLECTIONS)
def test_every_aggregated_collection(
    world: World,
    endpoint: str,
    service: str,
    field: str,
    part: Part,
    given: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    item = world.add(part, name="one", labels={"env": "dev"} if part is Part.INSTANCES else {}, **given)
    world.add(part, name="two", **given)
    request = {"project": "acme-tpu-dev", "max_results": 1}
    pages = compute(endpoint, service).aggregated_list(request=request).pages
    found = [one for page in pages for scope in page.items.values() for one in getattr(scope, field)]
    assert [one.name for one in found] == ["one", "two"]
    assert (found[0].self_link, found[0].id) == (item["selfLink"], int(item["id"]))
    assert {name: getattr(found[0], name) for name in expected} == expected
    assert list(world.counts().values()) == [2]


@pytest.mark.parametrize(("service", "part"), [("Snapshots", Part.SNAPSHOTS), ("Images", Part.IMAGES)])
def test_every_global_collection(world: World, endpoint: str, service: str, part: Part) -> None:
    for name in ("a", "b", "c"):
        world.add(part, name=name, labels={"kept": name})
    client = compute(endpoint, service)
    found = list(client.list(request={"project": "acme-tpu-dev", "max_results": 2}))
    assert [(one.name, dict(one.labels)) for one in found] == [(name, {"kept": name}) for name in ("a", "b", "c")]
    assert found[0].self_link == f"{GLOBAL}/{service.lower()}/a"
    assert list(world.counts().values()) == [2]


def test_a_list_that_shrinks_between_pages_loses_nothing(world: World, endpoint: str) -> None:
    for name in "abcdef":
        world.add(Part.DISKS, name=name, zone=ZONE, sizeGb="10")
    pages = compute(endpoint, "Disks").aggregated_list(request={"project": "acme-tpu-dev", "max_results": 2}).pages
    seen = []
    for page in pages:
        seen += [disk.name for scope in page.items.values() for disk in scope.disks]
        world.inventory[Part.DISKS].pop(f"projects/acme-tpu-dev/zones/{ZONE}/disks/a", None)
    assert seen == [*"abcdef"]


def test_a_regional_disk_is_got_where_it_lies(world: World, endpoint: str) -> None:
    zones = [f"https://www.googleapis.com/compute/v1/projects/acme-tpu-dev/zones/us-central1-{zone}" for zone in "ab"]
    world.add(Part.DISKS, name="wide", region="us-central1", sizeGb="10", type="pd-ssd", replicaZones=zones)
    disk = compute(endpoint, "RegionDisks").get(project="acme-tpu-dev", region="us-central1", disk="wide")
    assert (list(disk.replica_zones), disk.zone) == (zones, "")
    assert disk.region.endswith("/regions/us-central1")
