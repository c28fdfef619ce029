"""Every shape on both backends, and the three kinds of capacity. The table of shapes is written out here on purpose."""

from __future__ import annotations

import json
import shlex

import pytest

# accelerator type: hosts, machine type of each on Compute Engine, topology, chips that each host tells Ray
SHAPES = {
    "v6e-1": (1, "ct6e-standard-1t", "1x1", 1),
    "v6e-4": (1, "ct6e-standard-4t", "2x2", 4),
    "v6e-8": (1, "ct6e-standard-8t", "2x4", 8),
    "v6e-16": (4, "ct6e-standard-4t", "4x4", 4),
    "v6e-32": (8, "ct6e-standard-4t", "4x8", 4),
    "v6e-64": (16, "ct6e-standard-4t", "8x8", 4),
    "v6e-128": (32, "ct6e-standard-4t", "8x16", 4),
    "v6e-256": (64, "ct6e-standard-4t", "16x16", 4),
}
ONE_HOST = [name for name, (hosts, *_) in SHAPES.items() if hosts == 1]
MANY_HOSTS = [name for name, (hosts, *_) in SHAPES.items() if hosts > 1]
DISK = "dev-llama-3f9a6c0b-us-central1-b"
SPOT = {
    "provisioningModel": "SPOT",
    "preemptible": True,
    "automaticRestart": False,
    "onHostMaintenance": "TERMINATE",
    "instanceTerminationAction": "DELETE",
}
BOOT = {"type": "hyperdisk-balanced", "size": 100, "provisionedIops": 3000, "provisionedThroughput": 140}


def chips(shape: str) -> str:
    return shape.removeprefix("v6e-")


def script_of(resource) -> str:
    return str(resource.value("metadata", "startup-script"))


def told(script: str, variable: str) -> object:
    (line,) = [line for line in script.splitlines() if line.startswith(f"{variable}=")]
    (word,) = shlex.split(line.partition("=")[2])
    return json.loads(word)


@pytest.mark.parametrize("shape", ONE_HOST)
def test_one_host_is_an_instance(zoo, shape: str) -> None:
    name = f"gce{chips(shape)}"
    instance = zoo.one("Instance", name)
    assert zoo.parent(instance) == zoo.component("TpuSlice", name)
    assert [one.name for one in zoo.preview.resources.children(zoo.parent(instance).urn)] == [name]
    assert instance.inputs["machineType"] == SHAPES[shape][1]
    assert instance.inputs["name"] == f"dev-{name}"
    assert instance.inputs["zone"] == "us-central1-b"
    assert instance.inputs["scheduling"] == {**SPOT, "maxRunDuration": {"seconds": 72 * 3600}}
    params = instance.value("bootDisk", "initializeParams")
    assert {key: value for key, value in params.items() if key not in ("image", "labels")} == BOOT
    assert instance.value("bootDisk", "autoDelete") is True
    assert "accessConfigs" not in instance.value("networkInterfaces", 0)


@pytest.mark.parametrize("shape", MANY_HOSTS)
def test_many_hosts_are_a_group_with_a_topology(zoo, shape: str) -> None:
    name = f"gce{chips(shape)}"
    hosts, machine, topology, _ = SHAPES[shape]
    group, policy = zoo.one("InstanceGroupManager", name), zoo.one("ResourcePolicy", f"{name}-topology")
    template = zoo.one("InstanceTemplate", f"{name}-template")
    assert {zoo.parent(one).name for one in (group, policy, template)} == {name}
    assert group.inputs["targetSize"] == hosts
    assert template.inputs["machineType"] == machine
    assert policy.inputs["workloadPolicy"] == {"type": "HIGH_THROUGHPUT", "acceleratorTopology": topology}
    assert policy.inputs["region"] == "us-central1"
    assert zoo.sources(group, "resourcePolicies") == {f"ResourcePolicy {name}-topology"}
    assert zoo.sources(group, "versions") == {f"InstanceTemplate {name}-template"}
    assert template.inputs["scheduling"] == {**SPOT, "maxRunDuration": {"seconds": 72 * 3600}}
    assert "accessConfigs" not in template.value("networkInterfaces", 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_any_shape_is_one_node_of_the_tpu_api(zoo, shape: str) -> None:
    node = zoo.one("V2Vm", f"node{chips(shape)}")
    assert node.inputs["acceleratorType"] == shape
    assert "acceleratorConfig" not in node.inputs
    assert node.inputs["runtimeVersion"] == "v2-alpha-tpuv6e"
    assert node.inputs["schedulingConfig"] == {"spot": True}
    assert node.value("networkConfig", "enableExternalIps") is False
    assert node.inputs["zone"] == "us-central1-b"


@pytest.mark.parametrize("backend", ["gce", "node"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_host_tells_ray_its_own_chips(zoo, shape: str, backend: str) -> None:
    name = f"{backend}{chips(shape)}"
    tokens = {"gce": ("Instance", name), "node": ("V2Vm", name)}
    if backend == "gce" and shape in MANY_HOSTS:
        tokens["gce"] = ("InstanceTemplate", f"{name}-template")
    script = script_of(zoo.one(*tokens[backend]))
    hosts, _, _, own = SHAPES[shape]
    assert f"HOSTS={hosts}\n" in script
    assert told(script, "RESOURCES_FIRST") == {"TPU": own, f"dev-{name}": 1, f"TPU-{shape}-head": 1}
    assert told(script, "RESOURCES_OTHER") == {"TPU": own, f"dev-{name}": 1}


def test_a_queued_resource_is_never_made(zoo, prod) -> None:
    assert zoo.of("V2QueuedResource") == prod.of("V2QueuedResource") == ()


def test_a_group_asks_for_all_hosts_or_none_and_brings_none_back(zoo) -> None:
    for group in zoo.of("InstanceGroupManager"):
        hosts = group.inputs["targetSize"]
        assert group.items("targetSizePolicies") == ({"mode": "BULK"},)
        assert group.value("instanceLifecyclePolicy", "defaultActionOnFailure") == "DO_NOTHING"
        assert group.inputs["waitForInstances"] is False
        assert "autoHealingPolicies" not in group.inputs
        assert group.inputs["updatePolicy"] == {
            "type": "OPPORTUNISTIC",
            "minimalAction": "REPLACE",
            "replacementMethod": "RECREATE",
            "maxSurgeFixed": 0,
            "maxUnavailableFixed": hosts,
        }


def test_a_template_gets_a_new_name_and_stands_before_the_old_one_goes(zoo) -> None:
    for template in zoo.of("InstanceTemplate"):
        assert "name" not in template.inputs
        assert template.inputs["namePrefix"] == f"dev-{template.name.removesuffix('-template')}-"
        assert not template.options.delete_before_replace


@pytest.mark.parametrize(
    ("token", "replaced_by"),
    [
        ("Instance", ("attachedDisks",)),
        ("InstanceGroupManager", ("versions", "resourcePolicies", "targetSize")),
        ("V2Vm", ("dataDisks",)),
    ],
)
def test_a_slice_changes_as_a_whole_and_frees_its_name_first(zoo, token: str, replaced_by: tuple[str, ...]) -> None:
    for one in zoo.of(token):
        if one.name != "head":
            assert one.options.replace_on_changes == replaced_by, one.urn
            assert one.options.delete_before_replace, one.urn


def test_no_label_is_worth_a_machine(zoo) -> None:
    for instance in zoo.of("Instance"):
        assert instance.options.ignore_changes == ("bootDisk.initializeParams.labels",), instance.urn
    for template in zoo.of("InstanceTemplate"):
        assert template.options.ignore_changes == ("labels", "disks[0].labels"), template.urn
        group = zoo.one("InstanceGroupManager", template.name.removesuffix("-template"))
        assert group.value("allInstancesConfig", "labels") == template.inputs["labels"]


def test_the_model_is_attached_read_only_by_every_form(zoo) -> None:
    instance, node = zoo.one("Instance", "gce8"), zoo.one("V2Vm", "node256")
    template = zoo.one("InstanceTemplate", "gce256-template")
    (disk,) = instance.items("attachedDisks")
    assert {key: disk[key] for key in ("mode", "deviceName")} == {"mode": "READ_ONLY", "deviceName": DISK}
    assert zoo.sources(instance, "attachedDisks") == {"Disk llama-3f9a6c0b-us-central1-b"}
    boot, data = template.items("disks")
    assert boot["boot"] is True
    assert data == {"source": DISK, "deviceName": DISK, "mode": "READ_ONLY", "boot": False, "autoDelete": False}
    assert [one["mode"] for one in node.items("dataDisks")] == ["READ_ONLY"]
    assert zoo.sources(node, "dataDisks") == {"Disk llama-3f9a6c0b-us-central1-b"}


def test_the_hosts_of_a_template_boot_from_a_disk_of_a_chosen_size(zoo) -> None:
    boot = zoo.one("InstanceTemplate", "gce16-template").value("disks", 0)
    assert (boot["diskType"], boot["diskSizeGb"]) == ("hyperdisk-balanced", 100)
    assert (boot["provisionedIops"], boot["provisionedThroughput"]) == (3000, 140)
    assert "ubuntu-accel-2204" in boot["sourceImage"]


def test_the_script_mounts_the_device_that_is_attached(zoo) -> None:
    mounted, bare = script_of(zoo.one("Instance", "gce8")), script_of(zoo.one("Instance", "paid-gce"))
    assert f"MODEL_DEVICE={DISK}\n" in mounted
    assert "MODEL_SHA256=3f9a6c0be1d2758b94c7f02a6d8e513f7b0c94a2d6e85f1370b9c2a4e6d81f35\n" in mounted
    assert "MODEL_DEVICE=''\n" in bare
    assert DISK not in bare


def test_a_slice_without_the_model_attaches_nothing(zoo) -> None:
    assert zoo.one("Instance", "paid-gce").items("attachedDisks") == ()
    assert zoo.one("V2Vm", "paid-tpu-vm").items("dataDisks") == ()


def test_on_demand_is_asked_for_in_so_many_words(zoo) -> None:
    scheduling = zoo.one("Instance", "paid-gce").inputs["scheduling"]
    assert scheduling == {
        "provisioningModel": "STANDARD",
        "preemptible": False,
        "automaticRestart": True,
        "onHostMaintenance": "TERMINATE",
        "instanceTerminationAction": "DELETE",
        "maxRunDuration": {"seconds": 72 * 3600},
    }
    assert zoo.one("V2Vm", "paid-tpu-vm").inputs["schedulingConfig"] == {"spot": False}


def test_reserved_names_its_reservation_and_is_not_spot(zoo) -> None:
    affinity = {
        "type": "SPECIFIC_RESERVATION",
        "specificReservation": {"key": "compute.googleapis.com/reservation-name", "values": ("half-a-pod",)},
    }
    for kept in (zoo.one("Instance", "kept-gce"), zoo.one("InstanceTemplate", "kept-group-template")):
        assert kept.inputs["reservationAffinity"] == affinity
        assert kept.value("scheduling", "provisioningModel") == "RESERVATION_BOUND"
        assert kept.value("scheduling", "preemptible") is False
        assert kept.value("scheduling", "maxRunDuration") is None
    assert zoo.one("V2Vm", "kept-tpu-vm").inputs["schedulingConfig"] == {"reserved": True}
    assert "reservationAffinity" not in zoo.one("Instance", "gce8").inputs


def test_every_slice_is_bounded(zoo) -> None:
    """By its run time, by its reservation, or, where the backend has neither, by the label that the guard acts on."""
    for one in (*zoo.of("Instance"), *zoo.of("InstanceTemplate"), *zoo.of("V2Vm")):
        if one.name == "head":
            continue
        assert one.value("labels", "ttl") == "3d", one.urn
        timed = one.value("scheduling", "maxRunDuration") is not None
        reserved = one.value("scheduling", "provisioningModel") == "RESERVATION_BOUND"
        assert timed or reserved or one.type.endswith("V2Vm"), one.urn


def test_trainers_and_servers_run_as_different_accounts(prod) -> None:
    assert prod.sources(prod.one("InstanceTemplate", "trainer-a-template"), "serviceAccount") == {"Account worker"}
    assert prod.sources(prod.one("Instance", "serve-1"), "serviceAccount") == {"Account server"}


def test_chips_wait_for_all_that_they_need_to_be_of_use(dev) -> None:
    needs = dev.needs(dev.component("TpuSlice", "trainer"))
    assert {"Instance head", "RepositoryIamMember worker-reads-images", "Service compute"} <= needs
    assert "BucketIAMMember worker-checkpoints-storage.objectUser" in needs


def test_the_component_says_what_it_is(zoo) -> None:
    outputs = zoo.component("TpuSlice", "gce64").outputs
    assert (outputs["name"], outputs["chips"]) == ("dev-gce64", 64)
