"""Inputs against the SDK's own classes. These tests are what pins the private parts of the SDK that the check uses."""

from __future__ import annotations

import pulumi_gcp
import pytest

from infra.engine.schema import check, input_class, inputs_among, problems_of
from infra.engine.wire import UNFORESEEN_TEXT, UNKNOWN_TEXT, Wire, secret

# Importing pulumi_gcp.compute warns of the aliases that it keeps itself.
pytestmark = pytest.mark.filterwarnings("ignore:gcp.* has been deprecated:DeprecationWarning")

DISK, VM = "gcp:compute/disk:Disk", "gcp:tpu/v2Vm:V2Vm"
INSTANCE, BUCKET = "gcp:compute/instance:Instance", "gcp:storage/bucket:Bucket"
NETWORKED: dict[str, Wire] = {"machineType": "e2-small", "bootDisk": {}, "networkInterfaces": [{}]}


def problems(token: str, inputs: dict[str, Wire]) -> list[str]:
    """What is wrong with the inputs of a resource of that type."""
    expected = input_class(token)
    assert expected is not None
    return list(problems_of(inputs, expected, "it"))


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (DISK, {}),
        (DISK, {"size": 10.0, "labels": {"any-Key": "x"}, "guestOsFeatures": [{"type": "UEFI_COMPATIBLE"}]}),
        (DISK, {"size": UNKNOWN_TEXT, "labels": UNKNOWN_TEXT, "guestOsFeatures": [UNKNOWN_TEXT]}),
        (DISK, {"size": secret("x"), "labels": {"a": secret(1.0)}, "snapshot": f"snapshots/{UNFORESEEN_TEXT}"}),
        (DISK, {"size": None}),
        (VM, {"runtimeVersion": "x", "schedulingConfig": {"spot": True}, "dataDisks": [{"sourceDisk": "x"}]}),
        (VM, {"runtimeVersion": UNKNOWN_TEXT, "schedulingConfig": UNKNOWN_TEXT}),
        (INSTANCE, {**NETWORKED, "scheduling": {"maxRunDuration": {"seconds": 3600.0}}}),
        (BUCKET, {"location": "US", "softDeletePolicy": {"retentionDurationSeconds": 0.0}}),
        (
            "gcp:storage/bucketObject:BucketObject",
            {"bucket": "b", "source": {"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17"}},
        ),
        (
            "gcp:billing/budget:Budget",
            {"billingAccount": "0", "amount": {}, "thresholdRules": [{"thresholdPercent": 1.0}]},
        ),
    ],
)
def test_what_fits(token: str, inputs: dict[str, Wire]) -> None:
    assert problems(token, inputs) == []


@pytest.mark.parametrize(
    ("token", "inputs", "message"),
    [
        (DISK, {"sise": 1.0}, "sise (here 1) is not an input of it. Did you mean size?"),
        (DISK, {"size": "lots"}, 'size of it is "lots"; it must be a whole number'),
        (DISK, {"size": "100"}, 'size of it is "100"; it must be a whole number'),
        (DISK, {"size": 10.5}, "size of it is 10.5; it must be a whole number"),
        (DISK, {"size": True}, "size of it is true; it must be a whole number"),
        (DISK, {"size": [1.0]}, "size of it is a list; it must be a whole number"),
        (DISK, {"type": 1.0}, "type of it is 1; it must be text"),
        (DISK, {"type": 1_200_000.0}, "type of it is 1200000; it must be text"),
        (DISK, {"type": {"a": 1.0}}, "type of it is a mapping; it must be text"),
        (DISK, {"labels": ["x"]}, "labels of it is a list; it must be a mapping"),
        (DISK, {"labels": {"a": False}}, "labels.a of it is false; it must be text"),
        (DISK, {"labels": {"a-b": {"x": "{y}"}}}, "labels.a-b of it is a mapping; it must be text"),
        (DISK, {"guestOsFeatures": {"type": "x"}}, "guest_os_features of it is a mapping; it must be a list"),
        (
            VM,
            {"runtimeVersion": "x", "schedulingConfig": "spot"},
            'scheduling_config of it is "spot"; it must be a mapping',
        ),
        (
            VM,
            {"runtimeVersion": "x", "schedulingConfig": {"sopt": secret(True)}},
            "scheduling_config.sopt (here a mapping) is not an input of it. Did you mean spot?",
        ),
        (
            VM,
            {"runtimeVersion": "x", "dataDisks": [{"sourceDisk": "x"}, {"sourceDisk": "y", "xyz": 1.0}]},
            "data_disks[1].xyz (here 1) is not an input of it. Known there: mode, source_disk.",
        ),
        (VM, {}, "runtime_version is not set; it needs it"),
        (
            INSTANCE,
            {**NETWORKED, "scheduling": {"maxRunDuration": {"nanos": 1.0}}},
            "scheduling.max_run_duration.seconds is not set; it needs it",
        ),
        (
            "gcp:billing/budget:Budget",
            {"billingAccount": "0", "amount": {}, "thresholdRules": [{"thresholdPercent": "90%"}]},
            'threshold_rules[0].threshold_percent of it is "90%"; it must be a number',
        ),
    ],
)
def test_what_does_not(token: str, inputs: dict[str, Wire], message: str) -> None:
    assert problems(token, inputs) == [message]


def test_long_and_braced_text_is_shown_as_it_is() -> None:
    assert problems(DISK, {"size": "{a}" + "b" * 100}) == [
        f'size of it is "{{a}}{"b" * 54}..."; it must be a whole number'
    ]


def test_every_type_of_the_provider_has_inputs() -> None:
    from pulumi.runtime import rpc

    pulumi_gcp.compute  # noqa: B018 - registers the types
    tokens = [
        token
        for key, (module, *_) in rpc._RESOURCE_MODULES.items()
        if key.startswith(("gcp:compute/", "gcp:tpu/", "gcp:storage/", "gcp:monitoring/", "gcp:cloudrunv2/"))
        for token in module.mod_info["classes"]  # type: ignore[attr-defined]
    ]
    assert len(tokens) > 150
    assert [token for token in tokens if input_class(token) is None] == []


def test_the_answer_to_the_engine() -> None:
    found = check(
        [
            {"urn": "a", "type": DISK, "inputs": {"sise": 1.0}, "place": "x.py:3"},
            {"urn": "b", "type": "gcp:compute/disc:Disk", "inputs": {}, "place": ""},
            {"urn": "c", "type": "pulumi:providers:gcp", "inputs": {"any": 1.0}, "place": ""},
            {"urn": "d", "type": "pulumi-python:dynamic:Resource", "inputs": {"any": 1.0}, "place": ""},
            {"urn": "e", "type": "random:index/id:Id", "inputs": {}, "place": ""},
        ]
    )
    assert found == [
        "a: sise (here 1) is not an input of gcp.compute.Disk. Did you mean size?\n  at x.py:3",
        "b: gcp:compute/disc:Disk is not a type of the gcp provider. Did you mean gcp:compute/disk:Disk?",
        'e: there is no provider "random": no SDK that the program imports has the type random:index/id:Id',
    ]


@pytest.mark.parametrize(
    ("token", "names"),
    [
        (DISK, ["name", "project", "zone"]),
        ("gcp:compute/address:Address", ["name", "project", "region"]),
        ("gcp:monitoring/alertPolicy:AlertPolicy", ["project"]),
        ("gcp:monitoring/notificationChannel:NotificationChannel", ["project"]),
        ("gcp:billing/budget:Budget", []),
        ("random:index/id:Id", []),
    ],
)
def test_which_inputs_a_type_has(token: str, names: list[str]) -> None:
    assert inputs_among(token, {"name", "project", "zone", "region"}) == names
