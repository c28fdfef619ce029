"""The program as a whole, by what its three stacks register.

`components/golden/*.txt` are the tables of the stacks: one line a resource, with what decides its price or its
safety. After a change that is meant: UPDATE_GOLDEN=1 pytest tests/infra/test_program.py, and read the difference.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from policies.resources import PROVIDER_PREFIX, STACK_TYPE, Resource, Value

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "components" / "golden"
PROGRAM = HERE.parents[1] / "infra" / "__main__.py"
STACKS = ("dev", "staging", "prod")
VARIANTS = ("two_zones", "zoo", "extras")

SHOWN: Mapping[str, tuple[tuple[str | int, ...], ...]] = {
    "Address": (("addressType",), ("address",), ("region",)),
    "AlertPolicy": (("conditions", 0, "conditionPrometheusQueryLanguage", "query"),),
    "Bucket": (("location",), ("softDeletePolicy", "retentionDurationSeconds"), ("versioning", "enabled")),
    "BucketIAMMember": (("bucket",), ("role",)),
    "Budget": (("amount", "specifiedAmount", "units"),),
    "Disk": (("type",), ("size",), ("provisionedThroughput",), ("accessMode",), ("zone",)),
    "Firewall": (("sourceRanges",), ("allows", 0, "ports")),
    "IAMMember": (("role",),),
    "Instance": (
        ("machineType",),
        ("scheduling", "provisioningModel"),
        ("scheduling", "maxRunDuration", "seconds"),
        ("bootDisk", "initializeParams", "type"),
        ("bootDisk", "initializeParams", "size"),
        ("attachedDisks", 0, "deviceName"),
        ("attachedDisks", 0, "mode"),
        ("zone",),
    ),
    "InstanceGroupManager": (("targetSize",), ("instanceLifecyclePolicy", "defaultActionOnFailure"), ("zone",)),
    "InstanceTemplate": (
        ("machineType",),
        ("scheduling", "provisioningModel"),
        ("scheduling", "maxRunDuration", "seconds"),
        ("disks", 0, "diskType"),
        ("disks", 0, "diskSizeGb"),
        ("disks", 1, "deviceName"),
        ("disks", 1, "mode"),
    ),
    "Job": (("location",), ("runExecutionToken",), ("template", "template", "timeout"), ("schedule",)),
    "JobIamMember": (("role",),),
    "NotificationChannel": (("type",),),
    "Repository": (("format",), ("mode",), ("location",)),
    "RepositoryIamMember": (("repository",), ("role",)),
    "ResourcePolicy": (("workloadPolicy", "acceleratorTopology"),),
    "Service": (("service",),),
    "Snapshot": (("sourceDisk",), ("storageLocations", 0)),
    "TopicIAMMember": (("topic",), ("role",)),
    "Subnetwork": (("ipCidrRange",), ("privateIpGoogleAccess",)),
    "WorkloadIdentityPoolProvider": (("attributeCondition",),),
}
BILLS = ("Address", "Bucket", "Disk", "Instance", "InstanceTemplate", "Job", "Repository", "Snapshot", "Topic", "V2Vm")
SCHEDULE = "gcp:cloudscheduler/job:Job"
"""Bills, and has no labels."""
LABELS = {"owner": "ml-infra", "managed-by": "spotrail"}


def short(one: Resource) -> str:
    return one.type.rpartition(":")[2]


def table(graph) -> str:
    """One line a resource: where it stands, what it is, and the inputs of `SHOWN`."""
    lines = []
    for one in graph:
        if one.type == STACK_TYPE:
            continue
        place = one.name if not one.custom else f"  {one.name}"
        facts = "  ".join(
            f"{key_of(path)}={found}" for path in SHOWN.get(short(one), ()) if (found := fact(graph, one, path))
        )
        lines.append(f"{place:<44}{short(one):<30}{facts}".rstrip())
    return "\n".join(lines) + "\n"


def key_of(path: tuple[str | int, ...]) -> str:
    return str([key for key in path if isinstance(key, str)][-1])


def fact(graph, one: Resource, path: tuple[str | int, ...]) -> str:
    """The input at `path`; for a whole input that comes from another resource, which one that is."""
    sources = graph.sources(one, str(path[0])) if len(path) == 1 else ()
    found = one.value(*path)
    return f"<{', '.join(sorted(sources))}>" if sources else "" if found is None else text(found)


def text(value: Value) -> str:
    if isinstance(value, tuple):
        return ",".join(map(text, value))
    return str(value)


@pytest.mark.parametrize("name", STACKS)
def test_the_stack_registers_exactly_this(request: pytest.FixtureRequest, name: str) -> None:
    file, found = GOLDEN / f"{name}.txt", table(request.getfixturevalue(name))
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(found, "utf-8")
    assert found == file.read_text("utf-8")


@pytest.fixture(params=[*STACKS, *VARIANTS])
def graph(request: pytest.FixtureRequest):
    return request.getfixturevalue(request.param)


def test_everything_in_the_cloud_belongs_to_a_component_and_has_the_explicit_provider(graph) -> None:
    (provider,) = (one for one in graph if one.type.startswith(PROVIDER_PREFIX))
    assert provider.name == "google"
    for one in graph:
        if one.type == STACK_TYPE or one is provider:
            continue
        parent = graph.parent(one)
        assert parent.type.startswith("spotrail:infra:") if one.custom else parent.type == STACK_TYPE, one.urn
        if one.custom:
            assert graph.preview.resources.provider_of(one) == provider, one.urn


def test_what_bills_says_whose_it_is_and_until_when(graph) -> None:
    seen = set()
    for one in graph:
        if one.custom and short(one) in BILLS and one.type != SCHEDULE:
            seen.add(short(one))
            labels = one.value("labels")
            assert LABELS.items() <= labels.items(), one.urn
            assert labels["env"] == graph.preview.stack
            assert labels["ttl"] in {"3d", "14d", "365d"}
    assert {"Address", "Bucket", "Disk", "Instance", "Job", "Repository", "Snapshot", "Topic"} <= seen


def test_the_boot_disks_do_so_too(graph) -> None:
    for labels in boot_disk_labels(graph):
        assert LABELS.items() <= labels.items()


def boot_disk_labels(graph) -> Iterator[Mapping[str, Value]]:
    for one in graph.of("Instance"):
        yield one.value("bootDisk", "initializeParams", "labels")
    for one in graph.of("InstanceTemplate"):
        yield one.value("disks", 0, "labels")


TAKES_LABELS = """
import json, sys
import pulumi_gcp
from pulumi._types import input_type_types
from infra.engine.schema import input_class
inputs = {token: input_type_types(input_class(token)) for token in sys.argv[1:]}
# The `labels` of a notification channel are its address.
keys = ("userLabels", "labels")
print(json.dumps({token: next((key for key in keys if key in found), "") for token, found in inputs.items()}))
"""


@pytest.fixture(scope="module")
def label_key(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """By type token, the input that takes labels, by the provider's own classes; empty where there is none."""
    graphs = [request.getfixturevalue(name) for name in (*STACKS, *VARIANTS)]
    tokens = {one.type for graph in graphs for one in graph if one.custom and one.type.startswith("gcp:")}
    # In a process of its own: the SDK warns of a class of its own when it is loaded.
    asked = [sys.executable, "-W", "ignore", "-c", TAKES_LABELS, *sorted(tokens)]
    return json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)


def test_whatever_can_carry_labels_does(graph, label_key: Mapping[str, str]) -> None:
    """So that a new kind of resource is not forgotten."""
    assert label_key["gcp:compute/disk:Disk"] == "labels"
    assert label_key["gcp:monitoring/alertPolicy:AlertPolicy"] == "userLabels"
    assert label_key[SCHEDULE] == ""
    assert label_key["gcp:compute/network:Network"] == ""
    for one in graph:
        if key := label_key.get(one.type):
            assert LABELS.items() <= one.value(key).items(), one.urn


def test_no_machine_has_an_external_address(graph) -> None:
    for one in graph.of("Instance"):
        assert all("accessConfigs" not in card for card in one.items("networkInterfaces")), one.urn
    for one in graph.of("InstanceTemplate"):
        assert all("accessConfigs" not in card for card in one.items("networkInterfaces")), one.urn
    for one in graph.of("V2Vm"):
        assert one.value("networkConfig", "enableExternalIps") is False, one.urn
    assert {one.inputs["addressType"] for one in graph.of("Address")} == {"INTERNAL"}


def test_nothing_asks_for_chips_by_a_queued_resource(graph) -> None:
    assert graph.of("V2QueuedResource") == ()


def test_every_volume_is_for_many_readers_at_a_throughput_that_is_said(graph) -> None:
    assert graph.of("Disk")
    for disk in graph.of("Disk"):
        assert (disk.inputs["type"], disk.inputs["accessMode"]) == ("hyperdisk-ml", "READ_ONLY_MANY"), disk.urn
        assert isinstance(disk.inputs["provisionedThroughput"], int), disk.urn


def test_names_in_the_cloud_start_with_the_stack(graph) -> None:
    stack, project = graph.preview.stack, graph.preview.config["gcp:project"]
    for one in graph:
        name = one.inputs.get("name")
        if one.custom and isinstance(name, str):
            start = f"{project}-{stack}-" if short(one) == "Bucket" else f"{stack}-"
            assert name.startswith(start), one.urn
            assert len(name) <= 63


def test_the_four_serving_hosts_of_prod_read_one_volume(prod) -> None:
    (disk,) = prod.of("Disk")
    hosts = [one for one in prod.of("Instance") if one.value("labels", "role") == "serve"]
    assert len(hosts) == 4
    for host in hosts:
        assert prod.sources(host, "attachedDisks") == {f"Disk {disk.name}"}
        (attached,) = host.items("attachedDisks")
        assert (attached["deviceName"], attached["mode"]) == (disk.inputs["name"], "READ_ONLY")
        assert host.inputs["machineType"] == "ct6e-standard-8t"
        assert host.inputs["zone"] == disk.inputs["zone"]


def test_prod_trains_on_two_slices_that_fail_apart(prod) -> None:
    groups = {one.name: one.inputs["targetSize"] for one in prod.of("InstanceGroupManager")}
    assert groups == {"trainer-a": 16, "trainer-b": 16}
    assert {one.value("workloadPolicy", "acceleratorTopology") for one in prod.of("ResourcePolicy")} == {"8x8"}


def test_staging_is_the_smallest_slice_with_many_hosts(staging) -> None:
    group = staging.one("InstanceGroupManager", "rehearsal")
    assert group.inputs["targetSize"] == 4
    assert staging.sources(staging.one("InstanceTemplate"), "disks") == {"Disk llama-a41d07e2-us-central1-b"}


def test_two_serving_zones_are_two_volumes_and_two_subnetworks(two_zones) -> None:
    assert {disk.inputs["zone"] for disk in two_zones.of("Disk")} == {"us-central1-b", "us-east5-b"}
    assert {one.inputs["region"] for one in two_zones.of("Subnetwork")} == {"us-central1", "us-east5"}
    east = two_zones.one("Instance", "serve-us-east5-b-0")
    assert two_zones.sources(east, "networkInterfaces") == {"Subnetwork subnet-us-east5"}


def test_the_outputs_are_what_people_ask_for(dev, prod) -> None:
    outputs = prod.preview.outputs
    assert outputs["slices"]["trainer-a"] == "prod-trainer-a"
    assert len(outputs["slices"]) == 6
    assert outputs["buckets"] == {
        purpose: f"gs://acme-tpu-prod-prod-{purpose}" for purpose in ("checkpoints", "datasets", "models")
    }
    common = {"head_address", "tunnel_command", "submit_address", "buckets", "registry", "volumes", "slices"}
    assert set(dev.preview.outputs) == common
    assert set(outputs) == common | {"ci_account", "ci_provider"}


def test_the_program_reads_builds_and_exports_and_nothing_else() -> None:
    lines = PROGRAM.read_text("utf-8").splitlines()
    assert len(lines) <= 40
    assert not [line for line in lines if " if " in line or any(character.isdigit() for character in line)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"slices": {"trainer": {"shape": "v6e-3"}}}, 'spotrail:slices.trainer.shape is "v6e-3"'),
        ({"slices": {"trainer": {"zone": "us-central1-a"}}}, 'spotrail:slices.trainer.zone is "us-central1-a"'),
        ({"slices": {"trainer": {"queued": True}}}, "V2QueuedResource"),
        ({"model": {"throughput": 399}}, "spotrail:model.throughput is 399"),
    ],
)
def test_a_wrong_stack_file_is_refused_before_anything_is_registered(variant, changes: object, said: str) -> None:
    with pytest.raises(Exception, match=r"Pulumi\.dev\.yaml") as refused:
        variant("dev", changes)
    assert said in str(refused.value)
    assert type(refused.value).__name__ == "ProgramRefused"
