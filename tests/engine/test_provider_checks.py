"""The stand-in provider over its protocol: what Check refuses and fills in, what a preview knows, what Diff says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.engine.wire import UNKNOWN_TEXT, Wire, secret
from tests.engine.provider.client import EXECUTABLE, Client, Made, running

DISK = "gcp:compute/disk:Disk"
INSTANCE = "gcp:compute/instance:Instance"
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
GROUP = "gcp:compute/instanceGroupManager:InstanceGroupManager"
NODE = "gcp:tpu/v2Vm:V2Vm"
BUCKET = "gcp:storage/bucket:Bucket"
SNAPSHOT = "gcp:compute/snapshot:Snapshot"
NETWORK = "gcp:compute/network:Network"
ACCOUNT = "gcp:serviceaccount/account:Account"
ALERT = "gcp:monitoring/alertPolicy:AlertPolicy"
ML: dict[str, Wire] = {"name": "llama", "zone": "us-central1-b", "type": "hyperdisk-ml", "size": 200}
BOOT: dict[str, Wire] = {"initializeParams": {"image": "debian-cloud/debian-12", "size": 50, "type": "pd-balanced"}}
MACHINE: dict[str, Wire] = {
    "name": "head",
    "zone": "us-central1-b",
    "machineType": "e2-standard-4",
    "bootDisk": BOOT,
    "networkInterfaces": [{"network": "default"}],
    "labels": {"owner": "ml"},
    "scheduling": {"provisioningModel": "SPOT", "automaticRestart": False},
    "metadata": {"enable-oslogin": "TRUE"},
}
POD: dict[str, Wire] = {
    "name": "pod",
    "zone": "us-central1-b",
    "acceleratorType": "v6e-8",
    "runtimeVersion": "v2-alpha-tpuv6e",
    "schedulingConfig": {"spot": True},
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A provider without a cloud: nothing here may ask one."""
    with running("") as found:
        yield found


@pytest.mark.parametrize(
    ("token", "inputs", "said"),
    [
        (NODE, {**POD, "schedulingConfig": {"sopt": True}}, "scheduling_config.sopt .* Did you mean spot"),
        (NODE, {**POD, "schedulingConfig": {"spot": "yes"}}, 'scheduling_config.spot .* is "yes"; it must be true or'),
        (NODE, {**POD, "dataDisks": [{"source": "d"}]}, "source .* Did you mean source_disk"),
        (NODE, {**POD, "runtimeVersion": None}, "runtime_version is not set"),
        (NODE, {**POD, "acceleratorConfig": {"type": "V6E", "topology": "2x4"}}, '"acceleratorType": conflicts with'),
        (NODE, {**POD, "dataDisks": [{"sourceDisk": "d", "mode": "READ_ONLY_MANY"}]}, "Did you mean READ_ONLY"),
        (DISK, {**ML, "size": "lots"}, 'size of gcp.compute.Disk is "lots"; it must be a whole number'),
        (DISK, {**ML, "accessMode": "READ_ONLY_SINGLE"}, "expected accessMode to be one of READ_ONLY_MANY, READ_W"),
        (DISK, {**ML, "size": 100_000}, "size 100,000 GiB"),
        (DISK, {**ML, "provisionedThroughput": 399}, "throughput 399"),
        (DISK, {**ML, "provisionedIops": 3000}, "(?i)iops"),
        (DISK, {**ML, "type": "hyperdisk-mll"}, "hyperdisk-ml"),
        (DISK, {**ML, "snapshot": "s", "image": "i"}, '"snapshot": conflicts with image'),
        (INSTANCE, {**MACHINE, "scheduling": {"provisioningModel": "SPOTTY"}}, "Did you mean SPOT"),
        (TEMPLATE, {"machineType": "m", "disks": [], "scheduling": {"onHostMaintenance": "STOP"}}, "TERMINATE"),
        (BUCKET, {"location": "us", "publicAccessPrevention": "on"}, "to be one of enforced, inherited"),
        (BUCKET, {"location": "us", "lifecycleRules": [{"action": {"type": "Delete"}}]}, "condition is not set"),
        (BUCKET, {}, "location is not set"),
        (BUCKET, {"location": "us", "softDeletePolicy": {"retentionDurationSeconds": 3600}}, "604800 to 7776000 or 0"),
        (NETWORK, {"mtu": 9000}, "expected mtu to be 1300 to 8896, got 9000"),
        (ALERT, {"combiner": "OR", "displayName": "a", "conditions": []}, "length of conditions to be 1 to 6, got 0"),
        (ALERT, {"combiner": "XOR", "displayName": "a", "conditions": []}, "to be one of AND, AND_WITH"),
        ("gcp:compute/diskk:Diskk", {}, "is not a type of the gcp provider"),
    ],
)
def test_check_names_what_is_wrong(client: Client, token: str, inputs: dict[str, Wire], said: str) -> None:
    given = {key: value for key, value in inputs.items() if value is not None}
    assert re.search(said, "\n".join(client.failures(token, given)))


def test_a_bucket_without_soft_delete_is_fine(client: Client) -> None:
    assert client.failures(BUCKET, {"location": "us", "softDeletePolicy": {"retentionDurationSeconds": 0}}) == []


@pytest.mark.parametrize("unforeseen", [UNKNOWN_TEXT, secret("READ_WRITE_SINGLE")])
def test_what_is_unknown_or_secret_passes(client: Client, unforeseen: Wire) -> None:
    assert client.failures(DISK, {**ML, "accessMode": unforeseen, "size": UNKNOWN_TEXT, "labels": UNKNOWN_TEXT}) == []


@pytest.mark.parametrize(
    ("token", "inputs", "key", "limit"),
    [
        (DISK, {"zone": "us-central1-b"}, "name", "it-"),
        (TEMPLATE, {"machineType": "m", "disks": [], "namePrefix": "dev-trainer-"}, "name", "dev-trainer-"),
        (ACCOUNT, {}, "accountId", "it-"),
        (NETWORK, {}, "name", "it-"),
    ],
)
def test_a_name_is_made_up_once(client: Client, token: str, inputs: dict[str, Wire], key: str, limit: str) -> None:
    first = client.checked(token, inputs)
    assert isinstance(name := first[key], str)
    assert name.startswith(limit)
    assert len(name) == len(limit) + 7
    assert key in first["__defaults"]  # type: ignore[operator]
    assert client.check(token, inputs, seed=b"another").inputs[key] != name


def test_a_name_that_is_too_long_is_not_made_up(client: Client) -> None:
    answer = client.check(ACCOUNT, {}, name="a" * 23)
    assert answer.failures[0].reason.endswith("is longer than 30 characters; set accountId")
    assert "accountId" not in client.checked(ACCOUNT, {"accountId": "short"})["__defaults"]  # type: ignore[operator]


def test_networks_are_named_in_lower_case(client: Client) -> None:
    assert str(client.check(NETWORK, {}, name="VPC").inputs["name"]).startswith("vpc-")


def test_defaults_of_the_schemas_are_filled_in_and_noted(client: Client) -> None:
    found = client.checked(BUCKET, {"name": "b", "location": "us"})
    assert (found["storageClass"], found["forceDestroy"]) == ("STANDARD", False)
    assert found["__defaults"] == ["forceDestroy", "storageClass"]


def test_a_preview_knows_the_inputs_and_nothing_of_what_google_says(client: Client) -> None:
    found = client.foreseen(NODE, {**POD, "metadata": secret({"k": "v"})})
    assert found["project"] == "acme-tpu-dev"
    assert (found["name"], found["metadata"]) == ("pod", secret({"k": "v"}))
    assert {found[key] == UNKNOWN_TEXT for key in ("state", "health", "effectiveLabels", "networkEndpoints")} == {True}
    assert "__defaults" not in found


def made(token: str, inputs: dict[str, Wire], client: Client) -> Made:
    """A resource as a state without a cloud has it."""
    checked = client.checked(token, inputs)
    return Made(token=token, name="it", id="an-id", inputs=checked, outputs={**checked, "project": "acme-tpu-dev"})


CHANGES: list[Any] = [
    (DISK, ML, {"size": 300}, "size", False),
    (DISK, ML, {"size": 100}, "size", True),
    (DISK, ML, {"provisionedThroughput": 4800}, "provisionedThroughput", False),
    (DISK, ML, {"accessMode": "READ_ONLY_MANY"}, "accessMode", False),
    (DISK, ML, {"labels": {"a": "b"}}, "labels", False),
    (DISK, ML, {"snapshot": "s2"}, "snapshot", True),
    (DISK, ML, {"type": "hyperdisk-balanced"}, "type", True),
    (DISK, ML, {"zone": "us-east5-a"}, "zone", True),
    (
        DISK,
        {**ML, "type": "pd-extreme", "size": 500, "provisionedIops": 10_000},
        {"provisionedIops": 20_000},
        "provisionedIops",
        True,
    ),
    (SNAPSHOT, {"name": "s", "sourceDisk": "d"}, {"labels": {"a": "b"}}, "labels", False),
    (SNAPSHOT, {"name": "s", "sourceDisk": "d"}, {"sourceDisk": "e"}, "sourceDisk", True),
    (SNAPSHOT, {"name": "s", "sourceDisk": "d"}, {"storageLocations": ["us"]}, "storageLocations", True),
    (INSTANCE, MACHINE, {"machineType": "e2-standard-8"}, "machineType", False),
    (INSTANCE, MACHINE, {"metadata": {"enable-oslogin": "FALSE"}}, "metadata", False),
    (INSTANCE, MACHINE, {"metadataStartupScript": "true"}, "metadataStartupScript", True),
    (
        INSTANCE,
        MACHINE,
        {"scheduling": {"provisioningModel": "STANDARD", "automaticRestart": False}},
        "scheduling",
        True,
    ),
    (INSTANCE, MACHINE, {"scheduling": {"provisioningModel": "SPOT", "automaticRestart": True}}, "scheduling", False),
    (INSTANCE, MACHINE, {"bootDisk": {**BOOT, "autoDelete": False}}, "bootDisk", False),
    (INSTANCE, MACHINE, {"bootDisk": {"initializeParams": {"size": 60}}}, "bootDisk", True),
    (INSTANCE, MACHINE, {"attachedDisks": [{"source": "d"}]}, "attachedDisks", False),
    (NODE, POD, {"dataDisks": [{"sourceDisk": "d"}]}, "dataDisks", False),
    (NODE, POD, {"labels": {"a": "b"}}, "labels", False),
    (NODE, POD, {"schedulingConfig": {"spot": False}}, "schedulingConfig", True),
    (NODE, POD, {"acceleratorType": "v6e-16"}, "acceleratorType", True),
    (NODE, POD, {"runtimeVersion": "v2-other"}, "runtimeVersion", True),
    (BUCKET, {"name": "b", "location": "us"}, {"location": "eu"}, "location", True),
    (
        BUCKET,
        {"name": "b", "location": "us"},
        {"softDeletePolicy": {"retentionDurationSeconds": 0}},
        "softDeletePolicy",
        False,
    ),
    (
        BUCKET,
        {"name": "b", "location": "us"},
        {"hierarchicalNamespace": {"enabled": True}},
        "hierarchicalNamespace",
        True,
    ),
]


@pytest.mark.parametrize(("token", "old", "new", "key", "replaces"), CHANGES)
def test_what_changes_in_place_and_what_replaces(
    client: Client, token: str, old: dict[str, Wire], new: dict[str, Wire], key: str, replaces: bool
) -> None:
    answer = client.diff(made(token, old, client), new)
    assert list(answer.diffs) == [key]
    assert list(answer.replaces) == ([key] if replaces else [])
    # The name is fixed: the old one has to go first.
    assert answer.deleteBeforeReplace is replaces


def test_a_replacement_with_a_name_of_its_own_comes_first(client: Client) -> None:
    unnamed = made(DISK, {key: value for key, value in ML.items() if key != "name"}, client)
    answer = client.diff(unnamed, {"zone": "us-east5-a"})
    assert (list(answer.replaces), answer.deleteBeforeReplace) == (["zone"], False)


def test_the_detailed_diff_names_the_very_place(client: Client) -> None:
    answer = client.diff(made(INSTANCE, MACHINE, client), {"bootDisk": {"initializeParams": {"size": 60}}})
    kinds = {path: diff.kind for path, diff in answer.detailedDiff.items()}
    at = "bootDisk.initializeParams"
    assert kinds == {f"{at}.size": 5, f"{at}.image": 3, f"{at}.type": 3}


@pytest.mark.parametrize(
    "form", ["https://www.googleapis.com/compute/v1/{}", "https://compute.googleapis.com/compute/v1/{}"]
)
def test_a_link_is_the_same_however_it_is_written(client: Client, form: str) -> None:
    path = "projects/acme-tpu-dev/global/snapshots/s"
    disk = made(DISK, {**ML, "snapshot": path}, client)
    assert client.diff(disk, {"snapshot": form.format(path)}).changes == 1


def test_what_is_not_known_yet_is_a_change(client: Client) -> None:
    answer = client.diff(made(DISK, {**ML, "snapshot": "s"}, client), {"snapshot": UNKNOWN_TEXT})
    assert list(answer.replaces) == ["snapshot"]


def test_nothing_changes_where_nothing_does(client: Client) -> None:
    for token, old, *_ in CHANGES:
        assert client.diff(made(token, old, client), {}).changes == 1


def test_the_provider_ends_when_its_engine_is_gone() -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    order = ["sh", "-c", f"{EXECUTABLE} 127.0.0.1:1 & wait"]
    with subprocess.Popen(order, stdout=subprocess.PIPE, text=True, env=environment) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline().strip().isdecimal()
        engine.kill()
        # The pipe ends when the last of those who hold it does: the provider.
        assert engine.communicate(timeout=20)[0] == ""
