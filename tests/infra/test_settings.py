"""The settings of a stack: what a right file becomes, and the message for each way in which a file is wrong."""

from __future__ import annotations

import contextlib
import copy
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import hypothesis
import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime import set_all_config

from infra.plan.capacity import Backend, Capacity
from infra.settings import Settings, read_settings
from infra.settings.config import parse
from infra.settings.mistakes import SettingsError
from policies.hardware.slices import shapes

DIGEST = "3f9a6c0be1d2758b94c7f02a6d8e513f7b0c94a2d6e85f1370b9c2a4e6d81f35"
TEXTS = ("owner", "ttl", "zone", "slack_token")
REMOVED = object()
LEAST: Mapping[str, Any] = {
    "owner": "ml-infra",
    "ttl": "3d",
    "zone": "us-central1-b",
    "slices": {"trainer": {"shape": "v6e-8"}},
    "model": {"name": "llama", "manifest_sha256": DIGEST, "path": "llama/v1", "size_gib": 200, "throughput": 1200},
    "budget": {"monthly": 4000, "billing_account": "01A2B3-4C5D6E-7F8091"},
    "alerts": {"emails": ["ml-infra@acme.example"]},
}


def changed(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The least file, with some dotted paths set, or removed."""
    values: dict[str, Any] = copy.deepcopy(dict(LEAST))
    for path, value in changes.items():
        place, (*parents, last) = values, path.split(".")
        for key in parents:
            place = place.setdefault(key, {})
        if value is REMOVED:
            del place[last]
        else:
            place[last] = value
    return values


def handed_over(values: Mapping[str, Any]) -> dict[str, str]:
    """As Pulumi hands values to a program: text as it is, everything else as JSON."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}


def settings(changes: Mapping[str, Any] = {}, *, env: str = "dev", project: str = "acme-tpu-dev") -> Settings:
    found, warnings = parse(handed_over(changed(changes)), env=env, project=project)
    assert warnings == ()
    return found


def refusal(changes: Mapping[str, Any], *, env: str = "dev", project: str | None = "acme-tpu-dev") -> str:
    with pytest.raises(SettingsError) as caught:
        parse(handed_over(changed(changes)), env=env, project=project)
    return str(caught.value)


def doubts(changes: Mapping[str, Any]) -> tuple[str, ...]:
    return parse(handed_over(changed(changes)), env="dev", project="acme-tpu-dev")[1]


def test_the_least_file_gets_every_default() -> None:
    found = settings()
    (trainer,) = found.slices
    assert (trainer.name, trainer.zone, trainer.count) == ("trainer", "us-central1-b", 1)
    assert (trainer.backend, trainer.capacity) == (Backend.GCE, Capacity.SPOT)
    assert (trainer.boot_disk_type, trainer.boot_disk_gib) == ("hyperdisk-balanced", 100)
    assert (found.head.machine, found.head.boot_disk_gib, found.head.zone) == ("e2-standard-4", 50, "us-central1-b")
    assert (found.serving.hosts, found.serving.zones) == (0, ("us-central1-b",))
    assert found.network.nat is False
    assert found.budget.quota_project == "acme-tpu-dev"
    assert found.budget.current_thresholds == (Decimal("0.5"), Decimal("0.9"), Decimal(1))
    assert found.ci is None
    assert (found.guard.enabled, found.guard.apply, found.guard.every_hours) == (True, False, 1)
    assert (found.guard.image, found.guard.webhook, found.guard.window_days) == ("guard:latest", "", 7)
    assert (found.env, found.project, found.region) == ("dev", "acme-tpu-dev", "us-central1")


def test_labels_are_those_of_everything_that_bills() -> None:
    assert settings({"labels.team": "a_b"}).labels == {
        "team": "a_b",
        "owner": "ml-infra",
        "env": "dev",
        "ttl": "3d",
        "managed-by": "spotrail",
    }


def test_everything_can_be_said() -> None:
    found = settings(
        {
            "extra_zones": ["us-central1-z"],
            "slices": {
                "b": {
                    "shape": "v6e-64",
                    "zone": "us-east5-b",
                    "count": 2,
                    "capacity": "reserved",
                    "reservation": "block-1",
                    "mount_model": True,
                    "image": "",
                },
                "a": {"shape": "v6e-16", "backend": "tpu-vm", "runtime": "v2-alpha-tpuv6e", "zone": "us-central1-z"},
            },
            "serving": {
                "hosts": 2,
                "zones": ["us-central1-b", "us-east5-b"],
                "capacity": "on-demand",
                "max_run_hours": 2880,
            },
            "head": {"machine": "c4-standard-4", "boot_disk_type": "hyperdisk-balanced", "boot_disk_gib": 60},
            "budget.current_thresholds": [1, 0.25],
            "alerts.slack_channel": "#ml",
            "slack_token": "xoxb",
            "ci": {"repository": "acme/tpu.stacks"},
            "waivers": [{"rule": "TPU-ON-DEMAND", "urn": "*serve*", "reason": "launch", "until": "2026-12-15"}],
        }
    )
    assert [one.name for one in found.slices] == ["a", "b"]
    assert found.slices[0].backend is Backend.TPU_VM
    assert (found.slices[1].reservation, found.slices[1].image) == ("block-1", "")
    assert found.model_zones == ("us-central1-b", "us-east5-b")
    assert found.regions == ("us-central1", "us-east5")
    assert found.budget.current_thresholds == (Decimal("0.25"), Decimal(1))
    assert found.has_slack_token


def test_a_volume_is_needed_where_somebody_reads_it() -> None:
    assert settings().model_zones == ("us-central1-b",), "nobody reads: the stack's own zone"
    elsewhere = {"slices.trainer.zone": "us-east5-b", "slices.trainer.mount_model": True}
    assert settings(elsewhere).model_zones == ("us-east5-b",)
    assert settings({**elsewhere, "serving.hosts": 1}).model_zones == ("us-central1-b", "us-east5-b")


@pytest.mark.parametrize("name", list(shapes()))
def test_every_shape_trains(name: str) -> None:
    assert settings({"slices.trainer.shape": name}).slices[0].shape == name


def test_a_mistake_reads_like_this() -> None:
    said = refusal({"slices.trainer.zone": "us-central1-a"})
    lines = said.splitlines()
    assert lines[0] == 'Pulumi.dev.yaml: spotrail:slices.trainer.zone is "us-central1-a"'
    assert re.fullmatch(
        r"  v6e is not listed in us-central1-a \(table of \d{4}-\d\d, policies/hardware/zones.csv\)\.", lines[1]
    )
    assert lines[2].startswith("  Zones with v6e: us-central1-b, us-east1-d")
    assert lines[3] == (
        "  Did you mean us-central1-b? To allow a zone that is newer than the table: spotrail:extra_zones."
    )
    assert len(lines) == 4


# path -> value in the file, and what the message says about it.
WRONG: list[tuple[str, Any, str]] = [
    # keys
    ("slcies", {}, r"spotrail:slcies is \{\}\n  There is no such key\. Keys: .*Did you mean slices\?"),
    ("slices.trainer.shap", "v6e-8", r"slices\.trainer\.shap is \"v6e-8\"\n  .*Did you mean shape\?"),
    ("model.throughputt", 1, r"model\.throughputt is 1\n  .*Did you mean throughput\?"),
    ("slices.trainer.spot", True, r"spot is true\n  There is no such key.*one word: capacity: spot\."),
    ("slices.trainer.reserved", True, r"one word: capacity: reserved, with the name of the reservation"),
    ("slices.trainer.preemptible", False, r"one word: capacity: spot"),
    ("slices.trainer.queued", True, r"cannot ask for spot: V2QueuedResource has no such field, and the full price"),
    ("serving.zone", "us-east5-b", r"It is a list: zones"),
    ("slices.trainer.hosts", 4, r"The shape decides the number of hosts"),
    # missing
    ("owner", REMOVED, r"spotrail:owner is not set\n  It is needed and has no default"),
    ("model", REMOVED, r"spotrail:model\.name is not set"),
    ("model.throughput", REMOVED, r"spotrail:model\.throughput is not set"),
    ("slices.trainer.shape", REMOVED, r"spotrail:slices\.trainer\.shape is not set"),
    ("budget.billing_account", REMOVED, r"spotrail:budget\.billing_account is not set"),
    ("model.name", None, r"model\.name is null\n  Give it a value, or leave the key out"),
    # types
    ("model.size_gib", "200", r"model\.size_gib is \"200\"\n  It must be a whole number, 4 to 65,536 GiB"),
    ("model.size_gib", True, r"model\.size_gib is true\n  It must be a whole number"),
    ("model.throughput", 1200.5, r"model\.throughput is 1200\.5\n  It must be a whole number, 400 to 1,200,000 MiB/s"),
    ("slices.trainer.mount_model", "yes", r"mount_model is \"yes\"\n  It must be true or false, without quotes"),
    ("slices.trainer.mount_model", 1, r"mount_model is 1\n  It must be true or false"),
    ("slices.trainer.image", 5, r"image is 5\n  It must be text; put it between quotes"),
    ("slices", ["trainer"], r"spotrail:slices is \[\"trainer\"\]\n  It must be a mapping: the name of each slice"),
    ("slices.trainer", "v6e-8", r"slices\.trainer is \"v6e-8\"\n  It must be a mapping with the keys shape, backend"),
    ("model", "llama", r"spotrail:model is \"llama\"\n  It must be a mapping with the keys name, manifest_sha256"),
    ("serving.zones", "us-east5-b", r"serving\.zones is \"us-east5-b\"\n  It must be a list: \[a, b\]"),
    ("serving.zones", ["us-central1-b", "us-central1-b"], r"zones\[1\] is .*\n  It stands in the list twice"),
    ("serving.zones", [5], r"serving\.zones\[0\] is 5\n  It must be text"),
    ("budget.current_thresholds", [0], r"It must be a list of numbers from 0\.01 to 10, each once"),
    ("budget.current_thresholds", [0.5, 0.5], r"each once"),
    ("budget.current_thresholds", 1, r"It must be a list of numbers"),
    ("labels", ["a"], r"spotrail:labels is \[\"a\"\]\n  It must be a mapping of label to value"),
    ("labels", {"a": 1}, r"spotrail:labels\.a is 1\n  It must be text"),
    ("waivers", {}, r"spotrail:waivers is \{\}\n  It must be a list of mappings with rule, urn, reason and until"),
    ("labels", {"role": "x"}, r"spotrail sets this label itself, from spotrail:owner, spotrail:ttl and what a thing"),
    ("slices.trainer.shape", ["v6e-8"], r"shape is \[\"v6e-8\"\]\n  It must be text\.$"),
    ("slices.trainer", None, r"^Pulumi\.dev\.yaml: spotrail:slices\.trainer is null\n  It must be a mapping.*$"),
    ("serving.zones", [], r"serving\.zones is \[\]\n  At least one zone, or leave the key out"),
    ("budget", {"monthly": 1, "billing_account": "01A2B3-4C5D6E-7F8091", "current_thresholds": [],
                "forecast_thresholds": []}, r"A budget without a threshold tells nobody anything"),
    ("head.machine", "", r"head\.machine is \"\"\n  It must be a machine type: e2-standard-4"),
    ("head.boot_disk_type", "sdd", r"head\.boot_disk_type is \"sdd\"\n  disk type \"sdd\" is not known"),
    ("registry.name", "pypi", r"registry\.python_mirror is \"pypi\"\n  It is the repository of spotrail:registry"),
    ("registry.name", "x" * 60, r"It makes the repository \"dev-x+\" has 64 characters; at most 63\. 1 fewer"),
    ("serving.hosts", 400, r"model\.throughput is 1200\n  llama-3f9a6c0b: 1,200 MiB/s is too little for 400 readers"),
    ("severity", ["off"], r"spotrail:severity is \[\"off\"\]\n  It must be a mapping of rule ids to error, warning"),
    ("waivers", "none", r"spotrail:waivers is \"none\"\n  It must be a list"),
    # shapes, zones, runtimes, capacity
    ("slices.trainer.shape", "v6e-2", r"\"v6e-2\" is not a v6e shape .*Valid: v6e-1, v6e-4, v6e-8, v6e-16"),
    ("slices.trainer.shape", "v6e-3", r"\"v6e-3\" is not a v6e shape"),
    ("slices.trainer.shape", "v6e-512", r"\"v6e-512\" is not a v6e shape"),
    ("slices.trainer.shape", "v6e-08", r"\"v6e-08\" is not a v6e shape"),
    ("slices.trainer.shape", "V6E-8", r"\"V6E-8\" is not a v6e shape.*Did you mean v6e-8\?"),
    ("slices.trainer.shape", "v5p-8", r"\"v5p-8\" is not a v6e shape"),
    ("slices.trainer.count", 0, r"count is 0\n  It must be 1 to 26"),
    ("slices.trainer.count", 27, r"count is 27\n  It must be 1 to 26"),
    ("zone", "mars-1", r"spotrail:zone is \"mars-1\"\n  v6e is not listed in mars-1"),
    ("extra_zones", ["us-central1"], r"extra_zones\[0\] is \"us-central1\"\n  \"us-central1\" is not a zone"),
    ("serving.zones", ["us-west4-a"], r"serving\.zones\[0\] is \"us-west4-a\"\n  v6e is not listed"),
    ("head.zone", "us-central1", r"head\.zone is \"us-central1\"\n  .*is not a zone"),
    ("slices.trainer.capacity", "sopt", r"It must be one of spot, on-demand, reserved\. Did you mean spot\?"),
    ("slices.trainer.capacity", "preemptible", r"It must be one of spot, on-demand, reserved"),
    ("slices.trainer.capacity", "reserved", r"slices\.trainer\.reservation is not set\n  .*needs the name"),
    ("slices.trainer.reservation", "r1", r"capacity is spot: a reservation would not be used"),
    ("slices.trainer.backend", "gke", r"backend is \"gke\"\n  It must be one of gce, tpu-vm"),
    ("slices.trainer.runtime", "tpu-ubuntu2204-base", r"no driver binds the v6e chips; use v2-alpha-tpuv6e"),
    ("slices.trainer.runtime", "v2-alpha-tpuv5-lite", r"the runtime of v5e; use v2-alpha-tpuv6e"),
    ("slices.trainer.runtime", "v2-alpha-tpuv5", r"the runtime of v5p; use v2-alpha-tpuv6e"),
    ("slices.trainer.runtime", "", r"runtime is \"\"\n  The runtime version is not set; use v2-alpha-tpuv6e"),
    ("slices.trainer.max_run_hours", 0, r"It must be 1 to 2,880 hours"),
    ("slices.trainer.max_run_hours", 2881, r"It must be 1 to 2,880 hours"),
    ("slices.trainer.boot_disk_gib", 9, r"boot_disk_gib is 9\n  It must be 10 to 65,536 GiB"),
    ("slices.trainer.boot_disk_type", "pd-balanced", r"ct6e-standard-8t does not boot from pd-balanced"),
    ("slices.trainer.boot_disk_type", "hyperdisk-ml", r"hyperdisk-ml is not bootable"),
    ("slices.trainer.boot_disk_type", "hyperdisk", r"disk type \"hyperdisk\" is not known.*Did you mean"),
    ("slices.trainer.boot_image", "debian-12", r"It must be projects/<project>/global/images/<name>"),
    ("slices.trainer.image", "train", r"It must say which version: train:latest"),
    ("slices.trainer.image", "a b:1", r"It must be a container image"),
    ("serving.shape", "v6e-16", r"A serving host is one VM; v6e-16 has 4\. At most v6e-8"),
    ("serving.hosts", -1, r"hosts is -1\n  It must be 0 to 500"),
    ("serving.image", "", r"A serving host runs an image"),
    ("serving.port", 80, r"It must be 1,024 to 65,535"),
    # model and hydration
    ("model.size_gib", 3, r"model\.size_gib is 3\n  It must be 4 to 65,536 GiB"),
    ("model.size_gib", 65537, r"It must be 4 to 65,536 GiB"),
    ("model.throughput", 399, r"model\.throughput is 399\n  It must be 400 to 1,200,000 MiB/s"),
    ("model.throughput", 1_200_001, r"It must be 400 to 1,200,000 MiB/s"),
    ("model.throughput", 320_001, r"Throughput 320,001 MiB/s: hyperdisk-ml of 200 GiB takes 400 to 320,000 MiB/s"),
    ("model.name", "Llama", r"\"Llama\" is not a name that Google takes"),
    ("model.manifest_sha256", "3F" * 32, r"It must be the SHA-256 of the model's MANIFEST.json: 64 digits"),
    ("model.path", "gs://b/llama", r"without gs:// and the bucket"),
    ("model.path", "../llama", r"It must be a folder such as llama/v1"),
    ("model.path", "/llama", r"It must be a folder such as llama/v1"),
    ("model.path", "llama/", r"It must be a folder such as llama/v1"),
    ("hydration.machine", "e2-standard-8", r"It cannot take the staging disk, which is hyperdisk-balanced"),
    ("hydration.staging_iops", 100_001, r"IOPS 100,001: hyperdisk-balanced of 200 GiB takes 3,000 to 100,000"),
    ("hydration.staging_throughput", 139, r"It must be 140 to 2,400 MiB/s"),
    ("hydration.timeout_minutes", 5, r"It must be 10 to 1,440 minutes"),
    ("hydration.image", "fill:1", r"It must be a full reference, since it runs before the stack has images"),
    # machines
    ("head.machine", "c4-standard-8", r"head\.boot_disk_type is \"pd-balanced\"\n  .*does not boot from pd-balanced"),
    ("head.machine", "ct6e-standard-4t", r"head\.machine is \"ct6e-standard-4t\"\n  It is a TPU host"),
    ("head.machine", "e2-standrd-4", r"Did you mean e2-standard-4\?"),
    ("head.boot_disk_type", "hyperdisk-balanced", r"e2-standard-4 does not boot from hyperdisk-balanced"),
    ("head.ray_version", "latest", r"It must be an exact version: 2\.60\.0"),
    # network
    ("network.cidr", "8.8.0.0/16", r"network\.cidr is \"8\.8\.0\.0/16\"\n  It must lie in a private range"),
    ("network.cidr", "10.0.0.0/28", r"It must be /8 to /27: each region gets a quarter of it"),
    ("network.cidr", "10.0.0.0/8x", r"It must be an IPv4 range such as 10\.64\.0\.0/20"),
    ("network.nat", "false", r"network\.nat is \"false\"\n  It must be true or false, without quotes"),
    # labels and texts
    ("owner", "gs://b/run-1", r"\"gs://b/run-1\"\n  .*not \"/\", \":\"\. Legal would be \"gs-b-run-1-e22050ec\""),
    ("owner", "Alice", r"not \"A\"\. Legal would be \"alice-3bc51062\""),
    ("owner", "x" * 64, r"It has 64 characters; a label value has at most 63"),
    ("owner", "", r"It must not be empty"),
    ("labels", {"9k": ""}, r"labels\.9k is \"\"\n  A label key starts with a lower-case letter"),
    ("labels", {"Key": ""}, r"labels\.Key is \"\"\n  A label key has lower-case letters"),
    ("labels", {f"k{n}": "" for n in range(57)}, r"At most 56 labels: a resource has 64, and 8 are ours"),
    ("labels", {"env": "x"}, r"spotrail sets this label itself"),
    ("ttl", "7", r"spotrail:ttl is \"7\"\n  It must be a number of hours or days: 12h, 7d"),
    ("ttl", "0d", r"It must be a number of hours or days"),
    ("ttl", "1w", r"It must be a number of hours or days"),
    # money and people
    ("budget.monthly", 0, r"budget\.monthly is 0\n  It must be 1 to"),
    ("budget.monthly", 3999.99, r"budget\.monthly is 3999\.99\n  It must be a whole number"),
    ("budget.billing_account", "billingAccounts/01A2B3-4C5D6E-7F8091", r"It must be XXXXXX-XXXXXX-XXXXXX"),
    ("budget.billing_account", "01a2b3-4c5d6e-7f8091", r"It must be XXXXXX-XXXXXX-XXXXXX"),
    ("budget.currency", "usd", r"It must be a currency code: USD, EUR"),
    ("budget.quota_project", "A", r"It must be the id of a Google project"),
    ("alerts.emails", [], r"An alert that reaches nobody is none"),
    ("alerts.emails", ["nobody"], r"alerts\.emails\[0\] is \"nobody\"\n  It must be an e-mail address"),
    ("alerts.emails", [f"a{n}@b.example" for n in range(6)], r"A budget takes 5 channels, Slack among them"),
    ("alerts.slack_channel", "#ml", r"It needs the token of a Slack app"),
    ("slack_token", "xoxb", r"alerts\.slack_channel is \"\"\n  spotrail:slack_token is set, and no channel"),
    ("ci", {"repository": "acme"}, r"ci\.repository is \"acme\"\n  It must be a GitHub repository: owner/name"),
    ("ci", {"repository": "acme/x", "branch": "main"}, r"ci\.branch is \"main\"\n  There is no such key"),
    ("model.schedule", "office hours", r"model\.schedule is \"office hours\"\n  schedule .*: it has four parts"),
    ("model.schedule", "mon-fri 08:00-12:00 UTC 1200", r"once in 6 hours"),
    ("model.schedule", "mon-fri 08:00-18:00 UTC 1200", r"The guard keeps it, every hour: set spotrail:guard\.enabled"),
    ("guard.idle_percent", 51, r"It must be 1 to 50 %"),
    ("guard.every_hours", 5, r"guard\.every_hours is 5\n  It must be one of 1, 2, 3, 4, 6\."),
    ("guard.every_hours", "1h", r"It must be one of 1, 2, 3, 4, 6\."),
    ("guard.every_hours", True, r"It must be one of 1, 2, 3, 4, 6\."),
    ("guard.enabled", "yes", r"guard\.enabled is \"yes\"\n  It must be true or false"),
    ("guard.schedule", "0 * * * *", r"There is no such key\. Keys: enabled, apply, every_hours"),
    ("guard.image", "", r"The job runs an image"),
    ("guard.image", "guard", r"It must say which version: guard:latest"),
    ("guard.window_days", 0, r"It must be 1 to 42 days"),
    ("guard.webhook", "https://hooks.example/x", r"It must be the name of a secret of this project, not the URL"),
    ("guard.idle_dollars", 0, r"It must be 1 to 1,000,000"),
    ("guard", {"enabled": False, "apply": True}, r"guard\.apply is true\n  There is no guard that could apply"),
    ("guard", {"enabled": False, "webhook": "x"}, r"guard\.webhook is \"x\"\n  There is no guard that could tell"),
    ("buckets.temporary_prefix", "tmp", r"It must be a prefix that ends in /"),
    ("registry.name", "Images", r"It must be a repository id"),
    # secrets
    ("model.size_gib", "[secret]", r"model\.size_gib is \"\[secret\]\"\n  It is encrypted\. spotrail has to know it"),
    ("model", "[secret]", r"spotrail:model is \"\[secret\]\"\n  It is encrypted"),
    ("owner", "[secret]", r"It is encrypted"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value", "message"),
    WRONG,
    ids=[f"{path}={'removed' if value is REMOVED else str(value)[:24]}" for path, value, _ in WRONG],
)
def test_a_wrong_setting_is_refused(path: str, value: Any, message: str) -> None:
    said = refusal({path: value})
    assert re.search(message, said, re.DOTALL), said
    assert said.startswith("Pulumi.dev.yaml: spotrail:")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slices.trainer.max_run_hours": 72}, r"max_run_hours is 72\n  The Cloud TPU API has no bound"),
        ({"slices.trainer.boot_disk_gib": 100}, r"boot_disk_gib is 100\n  The Cloud TPU API fixes the boot disk"),
        ({"slices.trainer.boot_image": "x"}, r"boots the runtime version: set runtime"),
        (
            {"slices.trainer.capacity": "reserved", "slices.trainer.reservation": "r1"},
            r"reservation is \"r1\"\n  The Cloud TPU API takes a reserved node from the project's own reservation",
        ),
    ],
)
def test_what_the_cloud_tpu_api_has_nothing_for_is_refused(changes: dict[str, Any], message: str) -> None:
    assert re.search(message, refusal({**changes, "slices.trainer.backend": "tpu-vm"}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slices": {"Trainer": {"shape": "v6e-8"}}}, r"slices\.Trainer is \"Trainer\"\n  \"Trainer\" is not a name"),
        ({"slices": {"head": {"shape": "v6e-8"}}}, r"\"head\" is a name of the stack already"),
        ({"slices": {"models": {"shape": "v6e-8"}}}, r"\"models\" is a name of the stack already"),
        ({"slices": {"serve-0": {"shape": "v6e-8"}}}, r"\"serve-0\" is a name of the serving hosts already"),
        (
            {"slices": {"a": {"shape": "v6e-8", "count": 2}, "a-b": {"shape": "v6e-8"}}},
            r"slices\.a-b is \"a-b\"\n  \"a-b\" is a name of spotrail:slices\.a already",
        ),
        (
            {"slices": {"llama-3f9a6c0b-hydrator": {"shape": "v6e-8"}}},
            r"Names that start with \"llama-3f9a6c0b\" belong to the model volume and what fills it; choose another",
        ),
        ({"slices": {"x" * 64: {"shape": "v6e-8"}}}, r"has 64 characters; at most 63"),
    ],
)
def test_names_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    assert re.search(message, refusal(changes))


def test_a_name_that_the_suffix_makes_too_long() -> None:
    # "dev-" and the 10 characters of an instance template's own suffix leave 49.
    assert settings({"slices": {"x" * 49: {"shape": "v6e-8"}}}).slices[0].name == "x" * 49
    said = refusal({"slices": {"x" * 50: {"shape": "v6e-8"}}})
    assert re.search(r"It makes the name \"dev-x+-0+\" has 64 characters; at most 63\. 1 fewer, please", said)
    # Several alike have two more.
    assert "1 fewer" in refusal({"slices": {"x" * 48: {"shape": "v6e-8", "count": 2}}})


def test_a_model_name_that_its_digest_and_zone_make_too_long() -> None:
    # "dev-", "-3f9a6c0b-clean-3f9a6c0b" of a job's execution: 28 characters around the name of the model.
    assert settings({"model.name": "x" * 35}).model.name == "x" * 35
    said = refusal({"model.name": "x" * 36})
    assert re.search(
        r"spotrail:model\.name is .*\n  It makes the name .* has 64 characters; at most 63\. 1 fewer", said
    )


@pytest.mark.parametrize(
    ("env", "project", "message"),
    [
        ("Dev", "acme-tpu-dev", r"Pulumi\.Dev\.yaml: stack name is \"Dev\"\n  \"Dev\" is not a name"),
        ("x" * 20, "acme-tpu-dev", r"It makes a service account .* has 31 characters; at most 30"),
        ("x" * 19, "p" * 30, None),
        ("dev", "acme-google-1", r"no bucket may start with \"goog\" or contain \"google\""),
        ("dev", None, r"Pulumi\.dev\.yaml: gcp:project is not set\n  It must be the id of a Google project"),
        ("dev", "Acme", r"gcp:project is \"Acme\"\n  It must be the id of a Google project"),
    ],
)
def test_the_stack_and_the_project_are_parts_of_names(env: str, project: str | None, message: str | None) -> None:
    if message is None:
        assert settings(env=env, project=str(project)).env == env
    else:
        assert re.search(message, refusal({}, env=env, project=project))


def test_contradictory_words_are_both_refused() -> None:
    said = refusal({"slices.trainer.spot": True, "slices.trainer.reserved": True})
    assert "spotrail:slices.trainer.spot is true" in said
    assert "spotrail:slices.trainer.reserved is true" in said


@pytest.mark.parametrize(("size", "throughput"), [(140, 400), (140, 12_000), (1000, 1_200_000), (65_536, 7865)])
def test_sizes_and_throughputs_at_their_limits(size: int, throughput: int) -> None:
    found = settings({"model.size_gib": size, "model.throughput": throughput})
    assert (found.model.size_gib, found.model.throughput) == (size, throughput)


def test_the_smallest_volume_cannot_be_staged_with_the_iops_that_are_included() -> None:
    said = refusal({"model.size_gib": 4, "model.throughput": 400})
    assert re.search(r"hydration\.staging_iops is 3000\n  IOPS 3,000: hyperdisk-balanced of 4 GiB takes 2,000 to", said)
    fewer = {"model.size_gib": 4, "model.throughput": 400, "hydration.staging_iops": 2000}
    assert settings(fewer).hydration.staging_iops == 2000


BY_CLOCK = {"model.schedule": "mon-fri 08:00-18:00 Europe/Berlin 1200", "guard.apply": True}


def test_throughput_by_the_clock_has_the_price_of_the_high_hours() -> None:
    assert settings(BY_CLOCK).model.schedule == "mon-fri 08:00-18:00 Europe/Berlin 1200"
    said = refusal({**BY_CLOCK, "model.throughput": 800})
    assert "Its high hours have 1200 MiB/s and spotrail:model.throughput is 800: write the same in both" in said


@pytest.mark.parametrize("changes", [{"guard.apply": False}, {"guard.every_hours": 2}, {"guard": {"enabled": False}}])
def test_a_schedule_needs_a_guard_that_keeps_it_every_hour(changes: dict[str, Any]) -> None:
    assert "model.schedule" in refusal({**BY_CLOCK, **changes})


def test_a_whole_number_may_be_written_with_a_point() -> None:
    text = handed_over(changed({})) | {"budget": '{"monthly": 4000.0, "billing_account": "01A2B3-4C5D6E-7F8091"}'}
    found, _ = parse(text, env="dev", project="acme-tpu-dev")
    assert found.budget.monthly == 4000
    assert isinstance(found.budget.monthly, int)


def test_zero_is_a_value() -> None:
    assert settings({"serving.hosts": 0}).serving.hosts == 0


def test_many_readers_need_their_share_of_throughput() -> None:
    assert settings({"serving.hosts": 20, "model.throughput": 400}).serving.hosts == 20
    said = refusal({"serving.hosts": 21, "model.throughput": 400})
    assert re.search(r"model\.throughput is 400\n  .*too little for 21 readers of 200 GiB; at least 420", said)
    mounted = {"slices.trainer.shape": "v6e-256", "slices.trainer.mount_model": True, "model.throughput": 400}
    assert "too little for 64 readers of 200 GiB; at least 1,280" in refusal(mounted)


def test_addresses_run_out() -> None:
    changes = {"network.cidr": "10.0.0.0/27", "slices.trainer.shape": "v6e-16"}
    said = refusal(changes)
    assert "us-central1 gets 10.0.0.0/29, which has room for 4 machines; the stack has 6 there." in said
    assert settings({**changes, "network.cidr": "10.0.0.0/26"}).network.cidr == "10.0.0.0/26"


@pytest.mark.parametrize(
    ("changes", "doubt"),
    [
        ({"slices.trainer.runtime": "tpu-vm-tf-2.16.1-pjrt"}, r"TensorFlow runtime"),
        ({"slices.trainer.runtime": "v2-alpha-tpuv6e"}, r"It is not used: on gce, boot_image decides"),
        ({"labels": {"goog-x": ""}}, r"labels\.goog-x is \"\"\n  Keys that start with \"goog-\" are Google's own"),
        (
            {"slices.trainer": {"shape": "v6e-8", "capacity": "reserved", "reservation": "r", "max_run_hours": 5}},
            r"max_run_hours is 5\n  It is not used: what is bound to a reservation ends with the reservation",
        ),
        ({"registry.apt_mirror": ""}, r"registry\.apt_mirror is \"\"\n  Machines have no way out: packages come from"),
        ({"head.machine": "z9-standard-4"}, r"The series \"z9\" is not in policies/hardware/machine_types.csv"),
    ],
)
def test_a_doubt_is_told_and_refuses_nothing(changes: dict[str, Any], doubt: str) -> None:
    assert re.search(doubt, "\n".join(doubts(changes)))


def test_a_tpu_vm_takes_the_right_runtime_without_a_word() -> None:
    assert doubts({"slices.trainer.backend": "tpu-vm", "slices.trainer.runtime": "v2-alpha-tpuv6e"}) == ()


def test_waivers_are_left_to_the_rules() -> None:
    waiver = {"rule": "TPU-ON-DEMAND", "urn": "*serve*", "reason": "launch", "until": "2026-12-15"}
    assert settings({"waivers": [waiver]}) == settings() == settings({"waivers": [{"rule": "no such rule"}]})
    assert settings({"severity": {"TPU-ON-DEMAND": "off"}}) == settings()


def test_all_mistakes_of_a_file_are_told_together_and_each_once() -> None:
    said = refusal(
        {
            "zone": "mars-1",
            "ownr": "x",
            "owner": REMOVED,
            "slices.trainer.shape": "v6e-9",
            "model.throughput": 1,
            "head.machine": "c4-standard-8",
        }
    )
    heads = [line.removeprefix("Pulumi.dev.yaml: ").split(" is ")[0] for line in said.splitlines() if line[0] == "P"]
    assert sorted(heads) == [
        "spotrail:head.boot_disk_type",
        "spotrail:model.throughput",
        "spotrail:owner",
        "spotrail:ownr",
        "spotrail:slices.trainer.shape",
        "spotrail:zone",
    ]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PATHS = sorted({path for path, _, _ in WRONG if "slcies" not in path} | {"slices.trainer.zone", "waivers", "hydration"})


@hypothesis.settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(PATHS), PLAIN, min_size=1, max_size=4))
def test_whatever_a_file_holds_it_is_taken_or_refused_and_nothing_else(changes: dict[str, Any]) -> None:
    outer = {path: value for path, value in changes.items() if not any(path.startswith(f"{up}.") for up in changes)}
    with contextlib.suppress(SettingsError):
        found, _ = parse(handed_over(changed(outer)), env="dev", project="acme-tpu-dev")
        assert found.labels["env"] == "dev"


def test_long_values_are_cut() -> None:
    said = refusal({"slices": [{"shape": "v6e-8"}] * 50})
    assert len(said.splitlines()[0]) < 110
    assert said.splitlines()[0].endswith("...")


class TestThroughPulumi:
    """The same through pulumi.Config, as a program meets it."""

    @pytest.fixture(autouse=True)
    def _clean(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
        yield
        set_all_config({})

    @staticmethod
    def given(values: Mapping[str, Any], secret: list[str] | None = None) -> None:
        full = {f"spotrail:{key}": text for key, text in handed_over(values).items()}
        set_all_config({"gcp:project": "acme-tpu-dev", "other:key": "ignored", **full}, secret or [])

    def test_a_right_file(self) -> None:
        self.given(changed({}))
        assert read_settings(pulumi.Config("spotrail")) == settings()

    def test_from_the_environment_as_the_language_host_sets_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        full = {f"spotrail:{key}": text for key, text in handed_over(changed({"zoen": "x"})).items()}
        monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"gcp:project": "acme-tpu-dev", **full}))
        with pytest.raises(pulumi.RunError, match=r"spotrail:zoen is \"x\"\n  There is no such key.*Did you mean zone"):
            read_settings(pulumi.Config("spotrail"))

    def test_a_wrong_file_is_a_run_error_which_has_no_traceback(self) -> None:
        self.given(changed({"zone": "us-central1-a"}))
        with pytest.raises(pulumi.RunError, match=r'^Pulumi.dev.yaml: spotrail:zone is "us-central1-a"') as caught:
            read_settings(pulumi.Config("spotrail"))
        assert caught.value.__suppress_context__

    def test_a_decrypted_secret_is_refused_without_showing_it(self) -> None:
        self.given(changed({"owner": "hunter2"}), secret=["spotrail:owner"])
        with pytest.raises(pulumi.RunError, match=r"spotrail:owner is .*\n  It is encrypted") as caught:
            read_settings(pulumi.Config("spotrail"))
        assert "hunter2" not in str(caught.value)

    @pytest.mark.parametrize("token", ["xoxb-1", "[secret]"])
    def test_the_slack_token_may_be_a_secret(self, token: str) -> None:
        self.given(changed({"slack_token": token, "alerts.slack_channel": "#ml"}), secret=["spotrail:slack_token"])
        assert read_settings(pulumi.Config("spotrail")).has_slack_token

    def test_doubts_are_logged_as_warnings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        logged: list[str] = []
        monkeypatch.setattr(pulumi.log, "warn", logged.append)
        self.given(changed({"labels": {"goog-x": ""}}))
        read_settings(pulumi.Config("spotrail"))
        assert len(logged) == 1
        assert logged[0].startswith("Pulumi.dev.yaml: spotrail:labels.goog-x")
