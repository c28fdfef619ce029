"""What the offline preview and the official engine make of the options of resources, on one small program.

Each line of the program stands for something on which the two differed once, or could.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pytest

from infra.preview import Preview, preview
from policies.resources import Resource, ResourceSet
from tests.engine.agreement import differences, missing, outputs
from tests.engine.conftest import Standing
from tests.engine.walk import reading, written

RECORDER = Path(__file__).parent / "recorder" / "analyzer"
PROGRAM = """
import pulumi
import pulumi_gcp as gcp

token = pulumi.Config("spotrail").require_secret("slack_token")


def disk(name, **options):
    return gcp.compute.Disk(
        name, name=name, size=10, type="pd-ssd", zone="us-central1-b", opts=pulumi.ResourceOptions(**options)
    )


class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("shop:store:Box", name, {"size": 5}, opts)
        self.disk = disk(f"{name}-disk", parent=self)
        self.below = disk(f"{name}-below", parent=self.disk)
        self.own = disk(f"{name}-own", parent=self, protect=False, retain_on_delete=False)
        self.register_outputs({"disk": self.disk.name})


def marked(args):
    opts = pulumi.ResourceOptions(protect=True, ignore_changes=["size"], retain_on_delete=True)
    props = {**args.props, "labels": {"transformed": "yes"}}
    return pulumi.ResourceTransformResult(props=props, opts=pulumi.ResourceOptions.merge(args.opts, opts))


anchor = gcp.compute.Network("anchor", name="anchor")
box = Box(
    "box",
    pulumi.ResourceOptions(
        protect=True,
        retain_on_delete=True,
        deleted_with=anchor,
        ignore_changes=["size"],
        delete_before_replace=True,
        aliases=[pulumi.Alias(name="crate")],
        custom_timeouts=pulumi.CustomTimeouts(create="10m"),
    ),
)
plain = Box("plain", pulumi.ResourceOptions(depends_on=[box, anchor]))
changed = Box("changed", pulumi.ResourceOptions(transforms=[marked]))
own = gcp.Provider("own", project="acme-tpu-dev", zone="us-central1-b", opts=pulumi.ResourceOptions(protect=True))
other = disk(
    "other",
    provider=own,
    depends_on=[plain],
    replace_on_changes=["zone"],
    additional_secret_outputs=["size", "description"],
    delete_before_replace=True,
    custom_timeouts=pulumi.CustomTimeouts(create="1h30m", update="90s", delete="1h0m0.5s"),
)
secret = gcp.compute.Disk(
    "secret",
    name="secret",
    zone="us-central1-b",
    size=anchor.self_link.apply(lambda link: 20),
    labels={"plain": "x", "token": token.apply(lambda text: "t" + str(len(text)))},
    opts=pulumi.ResourceOptions(parent=other),
)
pulumi.export("box", {"disk": box.disk.name, "link": anchor.self_link})
pulumi.export("token", token)
pulumi.export("numbers", [1, 0.5, True])
pulumi.export("empty", {})
"""


@final
@dataclass(frozen=True, kw_only=True)
class Seen:
    """The program, by each of those who ran it."""

    offline: Preview
    planned: ResourceSet
    state: ResourceSet
    told: Mapping[str, Mapping[str, Any]]
    """By URN, what the engine told its analyzer."""


@pytest.fixture(scope="module")
def seen(standing: Standing, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    stand = standing("dev", program=PROGRAM)
    record = tmp_path_factory.mktemp("record") / "resources.jsonl"
    stand.environment["SPOTRAIL_RECORD"] = str(record)
    planned = written(stand, "--policy-pack", str(RECORDER))
    stand.up()
    told = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    return Seen(
        offline=preview(stand.name, stand.folder),
        planned=reading(planned, "preview.json").after,
        state=reading(stand.export(), "state.json").after,
        told={line["urn"]: line for line in told},
    )


def test_the_preview_file_agrees(seen: Seen) -> None:
    # The default provider, which nobody named, is in no preview file.
    default = {one.urn for one in seen.offline.resources if one.name.startswith("default_")}
    assert len(default) == 1
    assert missing(seen.offline.resources, seen.planned) == default
    assert differences(seen.offline.resources, seen.planned, before=True) == []


def test_the_state_agrees(seen: Seen) -> None:
    assert missing(seen.offline.resources, seen.state) == set()
    assert differences(seen.offline.resources, seen.state, before=False) == []
    stack = seen.state.of_type("pulumi:pulumi:Stack")[0]
    assert list(outputs(seen.offline.outputs, stack.outputs)) == []


def test_what_files_do_not_keep_agrees_with_what_the_engine_tells_its_analyzers(seen: Seen) -> None:
    assert {one.urn for one in seen.offline.resources if one.type.startswith("gcp:")} <= seen.told.keys()
    for urn, told in seen.told.items():
        one = seen.offline.resources.get(urn)
        assert one is not None, urn
        assert {key: told[key] for key in options(one)} == options(one), urn


def test_children_inherit_retention_and_deletion(seen: Seen) -> None:
    anchor = named(seen.state, "anchor").urn
    for name in ("box-disk", "box-below"):
        one = named(seen.offline.resources, name).options
        assert (one.protect, one.retain_on_delete, one.deleted_with) == (True, True, anchor)
    own = named(seen.offline.resources, "box-own").options
    assert (own.protect, own.retain_on_delete, own.deleted_with) == (False, False, anchor)


def named(resources: ResourceSet, name: str) -> Resource:
    return next(one for one in resources if one.name == name)


def options(one: Resource) -> dict[str, Any]:
    """What an analyzer is told, in the form of the recorder. Aliases the engine keeps to itself."""
    seconds = dict.fromkeys(("create", "update", "delete"), 0.0)
    return {
        "protect": one.options.protect,
        "ignore_changes": sorted(one.options.ignore_changes),
        "delete_before_replace": one.options.delete_before_replace,
        "additional_secret_outputs": sorted(one.options.additional_secret_outputs),
        "custom_timeouts": seconds | {key: float(text[:-1]) for key, text in one.options.custom_timeouts.items()},
    }
