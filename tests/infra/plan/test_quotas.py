"""The quotas of a stack, counted from its resources."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from infra.plan.quotas import WORDS, quota_needs
from policies.hardware.quotas import quotas
from policies.resources import SECRET, UNKNOWN, Resource, ResourceOptions, ResourceSet, Value

ZONE = "us-central1-b"


def resource(token: str, name: str, inputs: Mapping[str, Value], **joins: tuple[str, ...]) -> Resource:
    options = ResourceOptions(property_dependencies=joins)
    return Resource(
        urn=f"urn:pulumi:dev::spotrail::{token}::{name}", type=token, name=name, inputs=inputs, options=options
    )


def needs(*resources: Resource) -> dict[tuple[str, str], tuple[int, int | None]]:
    return {
        (need.note.split(";")[0], need.location): (need.needed, need.default)
        for need in quota_needs(ResourceSet(resources))
    }


def instance(machine: str, **more: Value) -> Resource:
    return resource("gcp:compute/instance:Instance", machine, {"zone": ZONE, "machineType": machine, **more})


def spot(machine: str) -> Resource:
    boot = {"initializeParams": {"type": "hyperdisk-balanced", "size": 100}}
    return instance(machine, scheduling={"provisioningModel": "SPOT"}, bootDisk=boot)


def group(size: Value) -> tuple[Resource, Resource]:
    disks = ({"boot": True, "diskType": "hyperdisk-balanced", "diskSizeGb": 100}, {"source": "llama"})
    template = resource(
        "gcp:compute/instanceTemplate:InstanceTemplate",
        "pod",
        {"machineType": "ct6e-standard-4t", "disks": disks, "scheduling": {"provisioningModel": "SPOT"}},
    )
    manager = resource(
        "gcp:compute/instanceGroupManager:InstanceGroupManager",
        "pod",
        {"zone": ZONE, "targetSize": size},
        versions=(template.urn,),
    )
    return template, manager


SPOT_CHIPS = ("PREEMPTIBLE-TPU-V6E-per-project-zone", ZONE)
FAMILY_CHIPS = ("TPUS-PER-TPU-FAMILY-per-project-region", "us-central1")


def test_spot_chips_of_instances_and_groups_are_one_pool_of_the_zone() -> None:
    found = needs(spot("ct6e-standard-8t"), *group(4))
    assert found[SPOT_CHIPS] == (24, 0)
    assert found["HDB-TOTAL-GB-per-project-region", "us-central1"] == (500, None)
    assert found["IN-USE-ADDRESSES-per-project-region", "us-central1"] == (0, 8)


@pytest.mark.parametrize("size", [UNKNOWN, None])
def test_a_group_of_unknown_size_is_not_counted(size: Value) -> None:
    assert needs(*group(size)) == {}


def test_chips_on_demand_are_a_pool_of_the_region() -> None:
    assert needs(instance("ct6e-standard-4t"))[FAMILY_CHIPS] == (4, 0)
    assert SPOT_CHIPS not in needs(instance("ct6e-standard-4t"))


@pytest.mark.parametrize(
    ("terms", "metric", "default"),
    [
        ({"spot": True}, "TPUV6EPreemptiblePerProjectPerZoneForTPUAPI", 64),
        ({"preemptible": True}, "TPUV6EPreemptiblePerProjectPerZoneForTPUAPI", 64),
        ({"spot": False}, "TPUV6EPerProjectPerZoneForTPUAPI", None),
        ({"reserved": True}, "TPUV6EPerProjectPerZoneForTPUAPI", None),
    ],
)
def test_the_cloud_tpu_api_has_pools_of_its_own(terms: Value, metric: str, default: int | None) -> None:
    node = resource("gcp:tpu/v2Vm:V2Vm", "n", {"zone": ZONE, "acceleratorType": "v6e-16", "schedulingConfig": terms})
    assert needs(node) == {(metric, ZONE): (16, default)}


def test_a_topology_counts_and_a_default_tpu_does_not() -> None:
    grid = resource("gcp:tpu/v2Vm:V2Vm", "a", {"zone": ZONE, "acceleratorConfig": {"type": "V6E", "topology": "2x4"}})
    bare = resource("gcp:tpu/v2Vm:V2Vm", "b", {"zone": ZONE})
    assert needs(grid, bare) == {("TPUV6EPerProjectPerZoneForTPUAPI", ZONE): (8, None)}


def test_a_queued_resource_draws_for_all_of_its_nodes() -> None:
    spec = {"node": {"acceleratorType": "v6e-16"}}
    queued = resource(
        "gcp:tpu/v2QueuedResource:V2QueuedResource", "q", {"zone": ZONE, "tpu": {"nodeSpecs": (spec, spec)}}
    )
    assert needs(queued) == {("TPUV6EPerProjectPerZoneForTPUAPI", ZONE): (32, None)}


def test_disks_draw_capacity_and_throughput() -> None:
    volume = resource(
        "gcp:compute/disk:Disk", "v", {"zone": ZONE, "type": "hyperdisk-ml", "size": 200, "provisionedThroughput": 1200}
    )
    unset = resource("gcp:compute/disk:Disk", "u", {"zone": ZONE, "type": "hyperdisk-ml", "size": 500})
    found = needs(volume, unset)
    assert found["HDML-TOTAL-GB-per-project-region", "us-central1"] == (700, None)
    # Unset is what Google provisions by default: 24 x 500.
    assert found["HDML-TOTAL-THROUGHPUT-per-project-region", "us-central1"] == (13_200, None)


def test_a_head_draws_cpus_and_its_disk() -> None:
    boot = {"initializeParams": {"type": "pd-balanced", "size": 50}}
    card = {"accessConfigs": ({},)}
    found = needs(instance("e2-standard-4", bootDisk=boot, networkInterfaces=(card,)))
    assert found["CPUS-per-project-region", "us-central1"] == (4, 24)
    assert found["SSD-TOTAL-GB-per-project-region", "us-central1"] == (50, 500)
    assert found["IN-USE-ADDRESSES-per-project-region", "us-central1"] == (1, 8)


def job(name: str) -> Resource:
    said = {
        "SPOTRAIL_ZONE": ZONE,
        "SPOTRAIL_STAGING_TYPE": "hyperdisk-balanced",
        "SPOTRAIL_STAGING_GIB": "200",
        "SPOTRAIL_STAGING_THROUGHPUT": "600",
        "SPOTRAIL_STAGING_IOPS": "4000",
        "SPOTRAIL_HYDRATOR_MACHINE": "n4-standard-8",
        "SPOTRAIL_HYDRATOR_BOOT_TYPE": "hyperdisk-balanced",
        "SPOTRAIL_HYDRATOR_BOOT_GIB": "20",
    }
    envs = tuple({"name": key, "value": value} for key, value in said.items())
    return resource("gcp:cloudrunv2/job:Job", name, {"template": {"template": {"containers": ({"envs": envs},)}}})


def test_filling_draws_once_although_two_jobs_speak_of_it() -> None:
    found = needs(job("fill"), job("clean"))
    assert found["HDB-TOTAL-GB-per-project-region", "us-central1"] == (220, None)
    # 600 of the staging disk, and 140 + 1.5 x 20 of the boot disk, whose throughput is left to Google.
    assert found["HDB-TOTAL-THROUGHPUT-per-project-region", "us-central1"] == (770, None)
    # And 3,000 + 6 x 20 IOPS of the boot disk.
    assert found["HDB-TOTAL-IOPS-per-project-region", "us-central1"] == (7120, None)
    assert found["CPUS-per-project-region", "us-central1"] == (8, 24)
    (note,) = {need.note for need in quota_needs(ResourceSet((job("fill"),))) if need.metric == "vCPUs"}
    assert note == "CPUS-per-project-region; with what filling a model version takes for a while"


@pytest.mark.parametrize("opaque", [UNKNOWN, SECRET])
def test_what_nobody_knows_is_not_counted(opaque: Value) -> None:
    volume = {"zone": ZONE, "type": "hyperdisk-ml", "size": opaque, "provisionedThroughput": opaque}
    assert needs(resource("gcp:compute/disk:Disk", "v", volume)) == {}
    assert needs(resource("gcp:compute/disk:Disk", "w", {**volume, "zone": opaque})) == {}


def test_chips_come_first() -> None:
    volume = resource("gcp:compute/disk:Disk", "v", {"zone": ZONE, "type": "hyperdisk-ml", "size": 200})
    found = quota_needs(ResourceSet((volume, instance("e2-standard-4"), spot("ct6e-standard-8t"))))
    assert [need.metric for need in found][:3] == [
        "v6e spot chips",
        "GiB of hyperdisk-ml",
        "MiB/s of hyperdisk-ml",
    ]


def test_every_pool_of_the_table_has_words() -> None:
    assert {(pool.resource, pool.backend, pool.capacity) for pool in quotas()} == set(WORDS)
