"""The stand-in provider before a loopback world: what its creations, changes, deletions and reads do there."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from infra.engine.wire import Wire, secret
from policies.audit.record import Part
from tests.engine.provider.client import Client, Made, half_made, running
from tests.engine.provider.faults import faults_of
from tests.google_cloud.server import served
from tests.google_cloud.world import World

ZONE = "projects/acme-tpu-dev/zones/us-central1-b"
REGION = "projects/acme-tpu-dev/regions/us-central1"
DISK = "gcp:compute/disk:Disk"
SNAPSHOT = "gcp:compute/snapshot:Snapshot"
INSTANCE = "gcp:compute/instance:Instance"
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
GROUP = "gcp:compute/instanceGroupManager:InstanceGroupManager"
ADDRESS = "gcp:compute/address:Address"
ROUTER = "gcp:compute/router:Router"
NAT = "gcp:compute/routerNat:RouterNat"
NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
BUCKET = "gcp:storage/bucket:Bucket"
NODE = "gcp:tpu/v2Vm:V2Vm"
QUEUED = "gcp:tpu/v2QueuedResource:V2QueuedResource"
JOB = "gcp:cloudrunv2/job:Job"
ACCOUNT = "gcp:serviceaccount/account:Account"
MEMBER = "gcp:projects/iAMMember:IAMMember"
CHANNEL = "gcp:monitoring/notificationChannel:NotificationChannel"
ML: dict[str, Wire] = {
    "name": "llama",
    "zone": "us-central1-b",
    "type": "hyperdisk-ml",
    "size": 200,
    "provisionedThroughput": 2400,
    "labels": {"owner": "ml"},
}
BOOT: dict[str, Wire] = {"initializeParams": {"image": "debian-cloud/debian-12", "size": 50, "type": "pd-balanced"}}
VM: dict[str, Wire] = {
    "name": "vm",
    "zone": "us-central1-b",
    "machineType": "e2-standard-4",
    "bootDisk": BOOT,
    "networkInterfaces": [{"network": "default"}],
}
POD: dict[str, Wire] = {
    "name": "pod",
    "zone": "us-central1-b",
    "acceleratorType": "v6e-8",
    "runtimeVersion": "v2-alpha-tpuv6e",
    "schedulingConfig": {"spot": True},
}


@pytest.fixture(scope="module")
def loopback() -> Iterator[tuple[dict[str, World], str]]:
    """One server and one provider for all; each test has the world to itself, since it empties it first."""
    world = World(now=datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC))
    with served(world) as endpoint:
        yield {"world": world}, endpoint


@pytest.fixture
def world(loopback: tuple[dict[str, World], str]) -> World:
    found = loopback[0]["world"]
    for part in Part:
        found.inventory[part].clear()
    found.records.clear()
    found.throughput_changed.clear()
    found.exhausted.clear()
    return found


@pytest.fixture(scope="module")
def provider(loopback: tuple[dict[str, World], str]) -> Iterator[Client]:
    with running(loopback[1]) as client:
        yield client


@pytest.fixture
def client(world: World, provider: Client) -> Client:
    return provider


@pytest.fixture
def faulty(world: World, loopback: tuple[dict[str, World], str]) -> Callable[..., Any]:
    """A provider with faults."""
    return lambda *faults: running(loopback[1], faults)


def refused(match: str) -> Any:
    return pytest.raises(grpc.RpcError, match=match)


def test_a_disk_is_there_as_google_has_it(client: Client, world: World) -> None:
    disk = client.create(DISK, ML)
    assert disk.id == f"{ZONE}/disks/llama"
    assert disk.outputs["selfLink"] == f"https://www.googleapis.com/compute/v1/{ZONE}/disks/llama"
    item = world.get(Part.DISKS, disk.id)
    assert (item["sizeGb"], item["provisionedThroughput"], item["accessMode"]) == ("200", "2400", "READ_WRITE_SINGLE")
    assert (item["status"], item["labels"]) == ("READY", {"owner": "ml"})
    assert item["creationTimestamp"] == "2026-11-29T12:00:00.000Z"


def test_the_label_of_the_provider_shows_in_outputs_only(client: Client, world: World) -> None:
    disk = client.create(DISK, ML)
    added = {"goog-pulumi-provisioned": "true", "owner": "ml"}
    assert (disk.outputs["labels"], disk.outputs["effectiveLabels"]) == ({"owner": "ml"}, added)
    again = client.refresh(disk)
    assert again is not None
    assert client.diff(again, {}).changes == 1


def test_a_name_is_given_once(client: Client) -> None:
    client.create(DISK, ML)
    with refused("Error 409: The resource 'projects/.*/disks/llama' already exists, alreadyExists"):
        client.create(DISK, ML)


def test_the_project_is_the_one_that_is_there(client: Client) -> None:
    with refused("Error 404: The resource 'projects/another' was not found"):
        client.create(DISK, {**ML, "project": "another"})


def test_throughput_changes_in_place_and_not_twice_in_a_row(client: Client, world: World) -> None:
    disk = client.update(client.create(DISK, ML), {"provisionedThroughput": 4800})
    assert world.get(Part.DISKS, disk.id)["provisionedThroughput"] == "4800"
    assert disk.outputs["provisionedThroughput"] == 4800
    with refused("resourceOperationRateExceeded"):
        client.update(disk, {"provisionedThroughput": 5000})


def test_access_mode_never_flows_backwards(client: Client) -> None:
    disk = client.update(client.create(DISK, ML), {"accessMode": "READ_ONLY_MANY"})
    with refused("READ_ONLY_MANY is final"):
        client.update(disk, {"accessMode": "READ_WRITE_SINGLE"})


def test_a_snapshot_needs_its_disk_and_a_disk_a_snapshot_that_is_ready(client: Client, world: World) -> None:
    with refused("Error 404: The resource '.*/disks/llama' was not found"):
        client.create(SNAPSHOT, {"name": "s", "sourceDisk": "llama", "zone": "us-central1-b"})
    client.create(DISK, ML)
    snapshot = client.create(SNAPSHOT, {"name": "s", "sourceDisk": "llama", "zone": "us-central1-b"})
    assert (snapshot.outputs["diskSizeGb"], snapshot.outputs["storageBytes"]) == (200, 200 * 2**30)
    world.get(Part.SNAPSHOTS, snapshot.id)["status"] = "CREATING"
    copy = {**ML, "name": "copy", "snapshot": snapshot.id, "size": 250}
    with refused("Error 400: The resource '.*/snapshots/s' is not ready, resourceNotReady"):
        client.create(DISK, copy)
    world.get(Part.SNAPSHOTS, snapshot.id)["status"] = "READY"
    with refused("cannot be smaller than the snapshot size"):
        client.create(DISK, {**copy, "size": 100})
    assert world.get(Part.DISKS, client.create(DISK, copy).id)["sourceSnapshot"].endswith("snapshots/s")


def reader(client: Client, name: str, mode: str = "READ_ONLY") -> Made:
    attached: list[Wire] = [{"source": f"{ZONE}/disks/llama", "mode": mode}]
    return client.create(INSTANCE, {**VM, "name": name, "attachedDisks": attached})


def test_a_disk_that_a_node_writes_has_one_user(client: Client) -> None:
    disk = client.create(DISK, ML)
    client.create(NODE, {**POD, "dataDisks": [{"sourceDisk": disk.id, "mode": "READ_WRITE"}]})
    with refused("is already being used by 'projects/tenant-of-tpus"):
        reader(client, "one")


def test_many_read_what_one_alone_may_write(client: Client, world: World) -> None:
    disk = client.create(DISK, {**ML, "accessMode": "READ_ONLY_MANY"})
    first, _ = reader(client, "one"), reader(client, "two")
    assert len(world.get(Part.DISKS, disk.id)["users"]) == 2
    with refused("is READ_ONLY_MANY and cannot be written to"):
        reader(client, "three", "READ_WRITE")
    assert f"{ZONE}/disks/three" not in world.inventory[Part.DISKS]
    client.delete(first)
    assert len(world.get(Part.DISKS, disk.id)["users"]) == 1
    assert sorted(world.inventory[Part.DISKS]) == [f"{ZONE}/disks/llama", f"{ZONE}/disks/two"]


def test_a_disk_that_is_written_has_one_user(client: Client) -> None:
    client.create(DISK, ML)
    reader(client, "one", "READ_WRITE")
    with refused("is already being used by '.*/instances/one', resourceInUseByAnotherResource"):
        reader(client, "two", "READ_WRITE")


def test_a_disk_is_detached_before_it_goes(client: Client, world: World) -> None:
    disk = client.create(DISK, {**ML, "accessMode": "READ_ONLY_MANY"})
    vm = reader(client, "one")
    client.delete(disk)
    assert disk.id not in world.inventory[Part.DISKS]
    assert [each["boot"] for each in world.get(Part.INSTANCES, vm.id)["disks"]] == [True]


def test_a_disk_of_a_tpu_node_cannot_be_detached_by_the_provider(client: Client, world: World) -> None:
    disk = client.create(DISK, {**ML, "accessMode": "READ_ONLY_MANY"})
    pod = client.create(NODE, {**POD, "dataDisks": [{"sourceDisk": disk.id, "mode": "READ_ONLY"}]})
    with refused("is already being used by 'projects/tenant-of-tpus/.*/pod-w-0'"):
        client.delete(disk)
    client.update(pod, {"dataDisks": []})
    client.delete(disk)
    assert disk.id not in world.inventory[Part.DISKS]


def test_a_snapshot_is_taken_before_a_disk_goes_where_that_is_asked_for(client: Client, world: World) -> None:
    client.delete(client.create(DISK, {**ML, "createSnapshotBeforeDestroy": True}))
    assert [item["name"][:6] for item in world.items(Part.SNAPSHOTS)] == ["llama-"]


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        ({"deletionPolicy": "PREVENT"}, "deletion_policy"),
        ({"deletionProtection": True}, "deletion_protection=false"),
    ],
)
def test_what_is_protected_does_not_go(client: Client, world: World, inputs: dict[str, Wire], match: str) -> None:
    vm = client.create(INSTANCE, {**VM, **inputs})
    with refused(match):
        client.delete(vm)
    assert vm.id in world.inventory[Part.INSTANCES]


def test_what_is_abandoned_stays(client: Client, world: World) -> None:
    vm = client.create(INSTANCE, {**VM, "deletionPolicy": "ABANDON"})
    client.delete(vm)
    assert vm.id in world.inventory[Part.INSTANCES]


@pytest.mark.parametrize("terms", [{"automaticRestart": True}, {"onHostMaintenance": "MIGRATE"}])
def test_a_spot_machine_is_neither_restarted_nor_moved(client: Client, terms: dict[str, Wire]) -> None:
    with refused("Error 400: .*A spot machine cannot have it"):
        client.create(INSTANCE, {**VM, "scheduling": {"provisioningModel": "SPOT", **terms}})


def test_another_machine_type_needs_a_stop(client: Client, world: World) -> None:
    vm = client.create(INSTANCE, VM)
    with refused("allow_stopping_for_update = true"):
        client.update(vm, {"machineType": "e2-standard-8"})
    client.update(vm, {"machineType": "e2-standard-8", "allowStoppingForUpdate": True})
    assert world.get(Part.INSTANCES, vm.id)["machineType"].endswith("/machineTypes/e2-standard-8")


def test_an_address_is_in_use_until_its_machine_goes(client: Client, world: World) -> None:
    given = {"name": "a", "region": "us-central1", "addressType": "INTERNAL", "address": "10.64.0.9"}
    address = client.create(ADDRESS, given)
    vm = client.create(INSTANCE, {**VM, "networkInterfaces": [{"subnetwork": "s", "networkIp": "10.64.0.9"}]})
    with refused("address resource '.*/addresses/a' is already being used"):
        client.delete(address)
    assert vm.outputs["networkInterfaces"] == [{"subnetwork": "s", "networkIp": "10.64.0.9", "name": "nic0"}]
    client.delete(vm)
    client.delete(address)
    assert not world.inventory[Part.ADDRESSES]


def group(client: Client, size: int) -> Made:
    disks: list[Wire] = [{"boot": True, "diskSizeGb": 100, "diskType": "hyperdisk-balanced", "sourceImage": "i"}]
    template = client.create(
        TEMPLATE,
        {
            "namePrefix": "pod-",
            "machineType": "ct6e-standard-4t",
            "disks": disks,
            "networkInterfaces": [{"network": "default"}],
            "labels": {"owner": "ml"},
            "scheduling": {"provisioningModel": "SPOT"},
        },
    )
    return client.create(
        GROUP,
        {
            "name": "pod",
            "zone": "us-central1-b",
            "baseInstanceName": "pod",
            "targetSize": size,
            "versions": [{"instanceTemplate": template.outputs["selfLink"]}],
        },
    )


def test_a_group_has_machines_with_disks_and_takes_them_along(client: Client, world: World) -> None:
    made = group(client, 4)
    machines = world.items(Part.INSTANCES)
    assert (len(machines), len(world.items(Part.DISKS))) == (4, 4)
    assert {machine["scheduling"]["provisioningModel"] for machine in machines} == {"SPOT"}
    assert len({machine["networkInterfaces"][0]["networkIP"] for machine in machines}) == 4
    smaller = client.update(made, {"targetSize": 1})
    assert len(world.items(Part.INSTANCES)) == 1
    client.delete(smaller)
    assert not world.items(Part.INSTANCES)
    assert not world.items(Part.DISKS)


def test_a_template_stays_while_a_group_names_it(client: Client, world: World) -> None:
    made = group(client, 1)
    path = next(key for key in world.records if "instanceTemplates" in key)
    template = client.adopt(TEMPLATE, path)
    assert template is not None
    with refused("is already being used by '.*/instanceGroupManagers/pod'"):
        client.delete(template)
    client.delete(made)
    client.delete(template)


def test_a_network_stays_while_a_subnetwork_names_it(client: Client) -> None:
    network = client.create(NETWORK, {"name": "vpc"})
    inputs: dict[str, Wire] = {
        "name": "s",
        "region": "us-central1",
        "network": network.id,
        "ipCidrRange": "10.0.0.0/20",
    }
    subnetwork = client.create(SUBNETWORK, inputs)
    with refused("networks/vpc' is already being used by"):
        client.delete(network)
    client.delete(subnetwork)
    client.delete(network)


def test_a_gateway_is_seen_on_its_router(client: Client, world: World) -> None:
    client.create(ROUTER, {"name": "r", "region": "us-central1", "network": "default"})
    inputs: dict[str, Wire] = {
        "name": "n",
        "router": "r",
        "region": "us-central1",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    }
    nat = client.create(NAT, inputs)
    assert nat.id == "acme-tpu-dev/us-central1/r/n"
    assert [each["name"] for each in world.get(Part.ROUTERS, f"{REGION}/routers/r")["nats"]] == ["n"]
    client.delete(nat)
    assert world.get(Part.ROUTERS, f"{REGION}/routers/r")["nats"] == []


@pytest.mark.parametrize("forced", [False, True])
def test_a_bucket_goes_when_it_is_empty_or_forced(client: Client, world: World, forced: bool) -> None:
    bucket = client.create(BUCKET, {"name": "ckpt", "location": "us-central1", "forceDestroy": forced})
    assert bucket.outputs["projectNumber"] == int(world.number)
    world.add(Part.HEARTBEATS, bucket="ckpt", name="run/heartbeat.json", content={})
    if not forced:
        with refused("Error 409: The bucket you tried to delete is not empty., conflict"):
            client.delete(bucket)
        world.inventory[Part.HEARTBEATS].clear()
    client.delete(bucket)
    assert not world.inventory[Part.BUCKETS]


def test_a_queued_resource_brings_its_node(client: Client, world: World) -> None:
    node: dict[str, Wire] = {"acceleratorType": "v6e-8", "runtimeVersion": "v2-alpha-tpuv6e"}
    spec: Wire = {"parent": "projects/1/locations/us-central1-b", "nodeId": "pod", "node": node}
    queued = client.create(QUEUED, {"name": "q", "zone": "us-central1-b", "tpu": {"nodeSpecs": [spec]}})
    assert [item["state"] for item in world.items(Part.NODES)] == ["READY"]
    client.delete(queued)
    assert not world.items(Part.NODES)


def test_what_is_gone_already_goes_without_a_word(client: Client, world: World) -> None:
    disk = client.create(DISK, ML)
    world.inventory[Part.DISKS].clear()
    assert client.refresh(disk) is None
    client.delete(disk)


def test_a_refresh_brings_home_what_others_changed(client: Client, world: World) -> None:
    disk = client.create(DISK, ML)
    world.get(Part.DISKS, disk.id).update(
        provisionedThroughput="9600", labels={"owner": "another", "team": "x"}, sizeGb="300"
    )
    found = client.refresh(disk)
    assert found is not None
    assert (found.inputs["provisionedThroughput"], found.inputs["size"]) == (9600, 300)
    # A label that the program does not set is not its own: it shows in the outputs only.
    assert found.inputs["labels"] == {"owner": "another"}
    assert found.outputs["effectiveLabels"] == {"goog-pulumi-provisioned": "true", "owner": "another", "team": "x"}
    wanted = {key: disk.inputs[key] for key in ("provisionedThroughput", "size", "labels")}
    assert list(client.diff(found, wanted).diffs) == ["labels", "provisionedThroughput", "size"]


def test_a_secret_stays_one_and_google_gets_it_in_clear(client: Client, world: World) -> None:
    inputs: dict[str, Wire] = {"type": "slack", "sensitiveLabels": secret({"authToken": "xoxb"})}
    channel = client.create(CHANNEL, inputs)
    assert channel.outputs["sensitiveLabels"] == secret({"authToken": "xoxb"})
    (record,) = world.records.values()
    assert record["sensitiveLabels"] == {"authToken": "xoxb"}
    record["sensitiveLabels"] = {"authToken": "stolen"}
    found = client.refresh(channel)
    assert found is not None
    assert found.inputs["sensitiveLabels"] == secret({"authToken": "stolen"})


def job(script: str, retries: int = 0, token: str | None = "once") -> dict[str, Wire]:
    """A job that runs `script` as soon as it exists, unless it has no token."""
    container: Wire = {"image": "gcloud", "commands": ["bash", "-c"], "args": [script]}
    template: Wire = {"template": {"containers": [container], "maxRetries": retries}}
    given: dict[str, Wire] = {"name": "j", "location": "us-central1", "template": template, "deletionProtection": False}
    return given if token is None else {**given, "runExecutionToken": token}


MAKE_DISK = "gcloud compute disks create d --project=acme-tpu-dev --zone=us-central1-b --type=pd-ssd --size=10GB"


def test_a_job_with_a_token_runs_once_when_it_is_made(client: Client, world: World) -> None:
    made = client.create(JOB, job(MAKE_DISK))
    assert (made.outputs["executionCount"], len(world.items(Part.DISKS))) == (1, 1)
    client.update(made, {"labels": {"a": "b"}})
    assert len(world.items(Part.DISKS)) == 1
    with refused(r"(?s)has failed: exit code 1\. .*disks/d' already exists"):
        client.update(made, {"runExecutionToken": "twice"})
    client.delete(made)
    with refused("executions/j-once' already exists"):
        client.create(JOB, job(MAKE_DISK))


def test_a_job_without_a_token_does_not_run(client: Client, world: World) -> None:
    assert client.create(JOB, job(MAKE_DISK, token=None)).outputs["executionCount"] == 0
    assert not world.items(Part.DISKS)


def test_a_job_that_fails_is_there_all_the_same(client: Client, world: World) -> None:
    with pytest.raises(grpc.RpcError, match=r"exit code 3\. Its log ends with: no model") as raised:
        client.create(JOB, job("echo no model >&2; exit 3"))
    assert half_made(raised.value).id == "projects/acme-tpu-dev/locations/us-central1/jobs/j"
    path = "projects/acme-tpu-dev/locations/us-central1/jobs/j"
    assert list(world.records) == [path, f"{path}/executions/j-once"]


def test_a_job_tries_again_as_often_as_it_may(client: Client, world: World) -> None:
    # The second attempt finds the disk of the first.
    client.create(JOB, job(f"{MAKE_DISK} && exit 3 || exit 0", retries=1))
    assert len(world.items(Part.DISKS)) == 1


def test_an_account_and_what_it_may_do(client: Client) -> None:
    account = client.create(ACCOUNT, {"accountId": "worker"})
    email = "worker@acme-tpu-dev.iam.gserviceaccount.com"
    assert (account.outputs["email"], account.outputs["member"]) == (email, f"serviceAccount:{email}")
    inputs: dict[str, Wire] = {"project": "acme-tpu-dev", "role": "roles/viewer", "member": f"serviceAccount:{email}"}
    member = client.create(MEMBER, inputs)
    assert member.id == f"acme-tpu-dev/roles/viewer/serviceAccount:{email}"
    assert client.refresh(member) is not None
    client.delete(member)
    assert client.refresh(member) is None


def test_what_is_there_can_be_adopted(client: Client, world: World) -> None:
    world.add(Part.DISKS, name="old", zone="us-central1-b", sizeGb="100", provisionedThroughput="2400")
    found = client.adopt(DISK, f"{ZONE}/disks/old")
    assert found is not None
    expected = {"name": "old", "zone": "us-central1-b", "project": "acme-tpu-dev", "size": 100, "type": "hyperdisk-ml"}
    assert found.inputs.items() >= {**expected, "provisionedThroughput": 2400}.items()
    assert client.adopt(DISK, f"{ZONE}/disks/never") is None
    with refused('"old" is no id of gcp:compute/disk:Disk; it has the form projects/'):
        client.adopt(DISK, "old")


def test_functions_are_answered(client: Client, world: World) -> None:
    found = client.invoke("gcp:organizations/getProject:getProject", {"projectId": "acme-tpu-dev"})
    assert (found["projectId"], found["number"]) == ("acme-tpu-dev", world.number)
    with refused("a function that only Google can answer"):
        client.invoke("gcp:compute/getZones:getZones", {})


def test_a_slice_that_was_taken_back_says_so(faulty: Callable[..., Any], world: World) -> None:
    with faulty({"on": "read", "type": NODE, "kind": "preempted"}) as client:
        pod = client.create(NODE, POD)
        assert pod.outputs["state"] == "READY"
        found = client.refresh(pod)
        assert found.outputs["state"] == "PREEMPTED"
        # Nothing in the inputs has changed: Pulumi alone does not heal it.
        assert client.diff(found, {}).changes == 1
        with refused("already exists"):
            client.create(NODE, POD)
        client.delete(found)
        assert client.create(NODE, POD).outputs["state"] == "READY"


FAULTS = [
    ("no-capacity", "ZONE_RESOURCE_POOL_EXHAUSTED"),
    ("quota", "Error 403: Quota .* exceeded"),
    ("not-ready", "resourceNotReady"),
]


@pytest.mark.parametrize(("kind", "match"), FAULTS)
def test_a_fault_strikes_as_often_as_it_says(faulty: Any, world: World, kind: str, match: str) -> None:
    with faulty({"on": "create", "type": "gcp:compute/*", "name": "i*", "kind": kind, "times": 1}) as client:
        client.create(NODE, POD)
        client.create(INSTANCE, {**VM, "name": "other"}, name="other")
        with refused(match):
            client.create(INSTANCE, VM)
        assert f"{ZONE}/instances/vm" not in world.inventory[Part.INSTANCES]
        client.create(INSTANCE, VM)


def test_a_zone_without_room_refuses_machines_and_leaves_no_disk(client: Client, world: World) -> None:
    world.exhausted.add("us-central1-b")
    for token, inputs in ((INSTANCE, VM), (NODE, POD)):
        with refused("ZONE_RESOURCE_POOL_EXHAUSTED"):
            client.create(token, inputs)
    assert not world.items(Part.DISKS)
    assert world.get(Part.GROUPS, group(client, 4).id)["targetSize"] == 4
    assert not world.items(Part.INSTANCES)


def test_a_group_without_capacity_is_there_without_machines(faulty: Any, world: World) -> None:
    with faulty({"on": "create", "type": GROUP, "kind": "no-capacity"}) as client:
        made = group(client, 4)
        assert made.id in world.inventory[Part.GROUPS]
        assert not world.items(Part.INSTANCES)
        assert not world.exhausted


def test_what_is_half_made_is_kept_with_its_id(faulty: Any, world: World) -> None:
    with faulty({"on": "create", "kind": "half-created", "times": 1}) as client:
        with pytest.raises(grpc.RpcError, match="timeout while waiting") as raised:
            client.create(DISK, ML)
        detail = half_made(raised.value)
        assert detail.id == f"{ZONE}/disks/llama"
        assert detail.id in world.inventory[Part.DISKS]
        assert dict(detail.properties)["provisionedThroughput"] == 2400


@pytest.mark.parametrize("on", ["update", "delete"])
def test_updates_and_deletions_fail_too(faulty: Any, on: str) -> None:
    with faulty({"on": on, "kind": "quota"}) as client:
        disk = client.create(DISK, ML)
        with refused("quotaExceeded"):
            client.update(disk, {"size": 300}) if on == "update" else client.delete(disk)


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        ({"on": "create", "kind": "no"}, "SPOTRAIL_FAULTS\\[0\\].kind is 'no'; known are no-capacity"),
        ({"on": "make", "kind": "quota"}, "on is 'make'; known are create"),
        ({"on": "create", "kind": "quota", "tipe": "x"}, "has tipe; its keys are"),
    ],
)
def test_a_fault_that_is_none_is_refused(fault: dict[str, str], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        faults_of(json.dumps([fault]))
