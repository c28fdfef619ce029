"""What the Google provider fills in, by its documentation; names by its rules."""

from __future__ import annotations

import re

import pulumi_gcp
import pytest

from infra.engine.provider import AUTONAMES, DEFAULTS, FILLED, Autoname, answer, autoname
from infra.engine.schema import input_class
from infra.engine.wire import UNKNOWN_TEXT, Wire, decode
from policies.resources import dig

# Importing pulumi_gcp.compute warns of the aliases that it keeps itself.
pytestmark = pytest.mark.filterwarnings("ignore:gcp.* has been deprecated:DeprecationWarning")

URN = "urn:pulumi:dev::shop::{type}::{name}"
CONFIG: dict[str, Wire] = {"project": "acme", "zone": "us-central1-b"}


def outputs(token: str, inputs: dict[str, Wire], name: str = "thing", config: dict[str, Wire] | None = None) -> Wire:
    """What the provider answers for a resource of a type that has everything that it fills in."""
    return answer(token, URN.format(type=token, name=name), inputs, CONFIG if config is None else config, FILLED)


VM, QUEUED = "gcp:tpu/v2Vm:V2Vm", "gcp:tpu/v2QueuedResource:V2QueuedResource"
INSTANCE, TEMPLATE = "gcp:compute/instance:Instance", "gcp:compute/instanceTemplate:InstanceTemplate"
DISK, GROUP = "gcp:compute/disk:Disk", "gcp:compute/instanceGroupManager:InstanceGroupManager"


@pytest.mark.parametrize(
    ("token", "inputs", "path", "value"),
    [
        (VM, {}, ("acceleratorType",), "v2-8"),
        (VM, {"acceleratorType": "v6e-8"}, ("acceleratorType",), "v6e-8"),
        (VM, {"acceleratorConfig": {"type": "V6E", "topology": "2x4"}}, ("acceleratorType",), None),
        (QUEUED, {"tpu": {"nodeSpecs": [{"node": {}}]}}, ("tpu", "nodeSpecs", 0, "node", "acceleratorType"), "v2-8"),
        (QUEUED, {"tpu": UNKNOWN_TEXT}, ("tpu",), UNKNOWN_TEXT),
        (DISK, {}, ("type",), "pd-standard"),
        (DISK, {"type": "hyperdisk-ml"}, ("type",), "hyperdisk-ml"),
        (DISK, {"type": UNKNOWN_TEXT}, ("type",), UNKNOWN_TEXT),
        ("gcp:compute/regionDisk:RegionDisk", {}, ("type",), "pd-standard"),
        ("gcp:storage/bucket:Bucket", {}, ("storageClass",), "STANDARD"),
        ("gcp:storage/anywhereCache:AnywhereCache", {}, ("ttl",), "86400s"),
        ("gcp:compute/address:Address", {}, ("addressType",), "EXTERNAL"),
        (GROUP, {}, ("targetSize",), 0),
        (GROUP, {"targetSize": 4}, ("targetSize",), 4),
        (
            INSTANCE,
            {"machineType": "e2-small", "bootDisk": {"initializeParams": {"size": 50}}},
            ("bootDisk", "initializeParams", "type"),
            "pd-standard",
        ),
        (
            INSTANCE,
            {"machineType": "ct6e-standard-8t", "bootDisk": {"initializeParams": {}}},
            ("bootDisk", "initializeParams", "type"),
            None,
        ),
        (
            INSTANCE,
            {"machineType": UNKNOWN_TEXT, "bootDisk": {"initializeParams": {}}},
            ("bootDisk", "initializeParams", "type"),
            None,
        ),
        (TEMPLATE, {"machineType": "n2-standard-4", "disks": [{}]}, ("disks", 0, "diskType"), "pd-standard"),
        (TEMPLATE, {"machineType": "n2-standard-4", "disks": [{"source": "x"}]}, ("disks", 0, "diskType"), None),
        (TEMPLATE, {"machineType": "n2-standard-4", "disks": [{"type": "SCRATCH"}]}, ("disks", 0, "diskType"), None),
        (TEMPLATE, {"machineType": "c4-standard-8", "disks": [{}]}, ("disks", 0, "diskType"), None),
        ("random:index/id:Id", {}, ("name",), None),
    ],
)
def test_a_default(token: str, inputs: dict[str, Wire], path: tuple[str | int, ...], value: Wire) -> None:
    before = repr(inputs)
    found = decode(outputs(token, inputs))
    assert dig(found, *path) == decode(value)
    assert repr(inputs) == before


def test_the_tables_name_inputs_that_the_sdk_has() -> None:
    pulumi_gcp.compute  # noqa: B018 - registers the types
    from pulumi import _types

    for token, key in [(default.type, default.key) for default in DEFAULTS] + [
        (token, how.key) for token, how in AUTONAMES.items()
    ]:
        found = input_class(token)
        assert found is not None, token
        assert key in _types.input_type_types(found), f"{token} {key}"


@pytest.mark.parametrize(
    ("inputs", "config", "place"),
    [
        ({}, {"project": "p", "zone": "us-east5-b", "region": "us-west1"}, ("p", "us-east5-b", "us-west1")),
        ({}, {"project": "p", "zone": "us-east5-b"}, ("p", "us-east5-b", "us-east5")),
        ({"zone": "us-east1-d"}, {"zone": "us-east5-b"}, (None, "us-east1-d", "us-east1")),
        ({"zone": UNKNOWN_TEXT, "project": "q"}, {"project": "p"}, ("q", UNKNOWN_TEXT, None)),
        ({}, {}, (None, None, None)),
    ],
)
def test_the_place(inputs: dict[str, Wire], config: dict[str, Wire], place: tuple[Wire, ...]) -> None:
    found = outputs(DISK, inputs, config=config)
    assert isinstance(found, dict)
    assert (found.get("project"), found.get("zone"), found.get("region")) == place


def test_what_the_type_has_not_is_not_filled_in() -> None:
    assert answer(DISK, URN.format(type=DISK, name="a"), {"type": "pd-ssd"}, CONFIG, ["zone"]) == {
        "type": "pd-ssd",
        "zone": "us-central1-b",
    }


def test_a_name_that_is_made_up() -> None:
    found = outputs(DISK, {}, "Data")
    assert isinstance(found, dict)
    assert re.fullmatch(r"Data-[0-9a-f]{7}", str(found["name"]))
    assert outputs(DISK, {}, "Data") == found
    assert outputs(DISK, {}, "Other") != found
    assert outputs(DISK, {"name": "data"}, "Data") == {**found, "name": "data"}


@pytest.mark.parametrize(
    ("token", "inputs", "key", "form"),
    [
        ("gcp:compute/network:Network", {}, "name", r"upper-[0-9a-f]{7}"),
        ("gcp:storage/bucket:Bucket", {}, "name", r"Upper-[0-9a-f]{7}"),
        ("gcp:serviceaccount/account:Account", {}, "accountId", r"Upper-[0-9a-f]{7}"),
        (TEMPLATE, {"namePrefix": "x"}, "name", "None"),
    ],
)
def test_how_types_are_named(token: str, inputs: dict[str, Wire], key: str, form: str) -> None:
    found = outputs(token, inputs, "Upper")
    assert isinstance(found, dict)
    assert re.fullmatch(form, str(found.get(key)))


@pytest.mark.parametrize(("length", "limit"), [(55, 63), (22, 30)])
def test_the_longest_name(length: int, limit: int) -> None:
    how = Autoname(limit=limit)
    assert len(autoname(URN.format(type=DISK, name="a" * length), how)) == limit
    with pytest.raises(ValueError, match=rf"with the suffix of 8 characters it has {limit + 1}, the limit is {limit}"):
        autoname(URN.format(type=DISK, name="a" * (length + 1)), how)


def test_every_default_says_where_it_is_written() -> None:
    assert all(default.source for default in DEFAULTS)
    assert len({(default.type, default.key) for default in DEFAULTS}) == len(DEFAULTS)
