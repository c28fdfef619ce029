"""What a record keeps of a resource: the fields that the audit reads, and nothing that is secret."""

import json
from typing import Any

import pytest

from policies.audit.live.fields import ALLOWED, allowed
from policies.audit.record import Part

SECRET = "hunter2-ya29.token-alice@example.com-10.0.0.7"


def hostile(found: Any) -> Any:
    """The resource with a secret in every place where an API could put one."""
    if isinstance(found, dict):
        dressed = {name: value if name == "labels" else hostile(value) for name, value in found.items()}
        return dressed | {
            "description": SECRET,
            "password": {"value": SECRET},
            "tokens": [SECRET, {"token": SECRET}, [[SECRET]]],
            SECRET: SECRET,
        }
    return [hostile(value) for value in found] if isinstance(found, list) else found


INSTANCE = {
    "id": "17",
    "name": "vm",
    "labels": {"owner": "ml-infra"},
    "machineType": "zones/z/machineTypes/ct6e-standard-8t",
    "disks": [{"source": "zones/z/disks/d", "deviceName": "d", "boot": False, "diskEncryptionKey": {"rawKey": "k"}}],
    "scheduling": {"provisioningModel": "SPOT", "maxRunDuration": {"seconds": "3600"}},
    "networkInterfaces": [
        {"name": "nic0", "networkIP": "10.0.0.7", "accessConfigs": [{"name": "NAT", "natIP": "34.1.2.3"}]},
    ],
    "serviceAccounts": [{"email": "alice@example.com", "scopes": ["x"]}],
    "hostname": "secret.example.com",
    "tags": {"items": ["secret"]},
}


@pytest.mark.parametrize("part", Part)
def test_nothing_that_is_not_named_is_kept(part: Part) -> None:
    kept = allowed(part, hostile({name: example(inner) for name, inner in ALLOWED[part].items()}))
    assert SECRET not in json.dumps(kept)
    assert set(kept) - {"metadata"} == set(ALLOWED[part])


def example(inner: Any) -> Any:
    """Something that a field with these inner fields may hold."""
    if inner is None:
        return "value"
    return {"owner": "x"} if "*" in inner else {name: example(deeper) for name, deeper in inner.items()}


def test_a_machine_keeps_what_the_audit_reads() -> None:
    assert allowed(Part.INSTANCES, hostile(INSTANCE)) == {
        "id": "17",
        "name": "vm",
        "labels": {"owner": "ml-infra"},
        "machineType": "zones/z/machineTypes/ct6e-standard-8t",
        "disks": [{"source": "zones/z/disks/d", "deviceName": "d", "boot": False}],
        "scheduling": {"provisioningModel": "SPOT", "maxRunDuration": {"seconds": "3600"}},
        "networkInterfaces": [{"name": "nic0", "accessConfigs": [{"name": "NAT"}]}],
    }


def test_of_metadata_the_keys_are_kept_and_the_group_that_made_the_machine() -> None:
    group = "projects/123/zones/us-central1-b/instanceGroupManagers/serving"
    entries = [{"key": "startup-script", "value": SECRET}, {"key": "created-by", "value": group}, {"value": SECRET}, 3]
    kept = allowed(Part.INSTANCES, {"name": "vm", "metadata": {"fingerprint": "x", "items": entries}})
    assert kept["metadata"] == {"items": [{"key": "startup-script"}, {"key": "created-by", "value": group}]}


@pytest.mark.parametrize("value", [SECRET, f"projects/1/zones/z/instanceGroupManagers/g\n{SECRET}", 3, None, [SECRET]])
def test_who_made_a_machine_may_be_anybody_and_is_then_left_out(value: Any) -> None:
    kept = allowed(Part.INSTANCES, {"metadata": {"items": [{"key": "created-by", "value": value}]}})
    assert kept["metadata"] == {"items": [{"key": "created-by"}]}


@pytest.mark.parametrize("metadata", [None, SECRET, [SECRET], {"items": SECRET}, {"items": {"key": SECRET}}])
def test_metadata_of_another_form_is_left_out(metadata: Any) -> None:
    assert allowed(Part.INSTANCES, {"metadata": metadata}) == {"metadata": {"items": []}}


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ({"zone": {"secret": SECRET}}, {}),
        ({"users": [{"secret": SECRET}, [SECRET]]}, {"users": []}),
        ({"labels": {"a": {"b": SECRET}, "c": [SECRET], "d": "e"}}, {"labels": {"d": "e"}}),
        ({"labels": SECRET}, {}),
        ({"users": None, "sizeGb": "5"}, {"sizeGb": "5"}),
    ],
)
def test_a_field_of_another_form_than_is_allowed_is_left_out(found: dict[str, Any], kept: dict[str, Any]) -> None:
    assert allowed(Part.DISKS, found) == kept


def test_an_object_that_says_something_by_being_there_stays() -> None:
    assert allowed(Part.QUEUED_RESOURCES, {"name": "q", "spot": {"x": SECRET}}) == {"name": "q", "spot": {}}
