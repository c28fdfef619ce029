"""The model of a resource: reading values, joins, and the cost of a join in a large stack."""

from __future__ import annotations

import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from policies.errors import InputError
from policies.resources import (
    SECRET,
    UNKNOWN,
    Resource,
    ResourceError,
    ResourceOptions,
    ResourceSet,
    Value,
    cloud_name,
    dig,
    dotted,
    has_opaque,
    texts,
)

DISK = "gcp:compute/disk:Disk"
VM = "gcp:compute/instance:Instance"


def disk(
    name: str,
    inputs: Mapping[str, Value] | None = None,
    outputs: Mapping[str, Value] | None = None,
    *,
    type: str = DISK,
    **options: Any,
) -> Resource:
    return Resource(
        urn=f"urn:pulumi:dev::p::{type}::{name}",
        type=type,
        name=name,
        inputs=inputs or {},
        outputs=outputs or {},
        options=ResourceOptions(**options),
    )


def test_inputs_come_before_outputs() -> None:
    found = disk("d", {"size": 10, "type": None}, {"size": 20, "type": "pd-ssd", "id": "x"})
    assert found.value("size") == 10
    assert found.value("type") == "pd-ssd"
    assert found.value("labels") is None


def test_below_an_opaque_value_everything_is_opaque() -> None:
    found = disk("d", {"tpu": UNKNOWN, "labels": {"token": SECRET}})
    assert found.value("tpu", "nodeSpecs", 0) is UNKNOWN
    assert found.text("labels", "token") is SECRET
    assert has_opaque(found.inputs)
    assert not has_opaque({"a": (1, "x", None)})


@pytest.mark.parametrize(
    ("method", "value", "rule"),
    [
        ("text", 5, r"size is 5; it must be text"),
        ("number", "ten", r"size is 'ten'; it must be a number"),
        ("number", True, r"size is True; it must be a number"),
        ("integer", Decimal("140.5"), r"size is 140.5; it must be a whole number of at least 0"),
        ("number", "²", "size is '²'; it must be a number"),
        ("number", "--5", "size is '--5'; it must be a number"),
        ("number", "9" * 5000, "it must be a number"),
        ("integer", -4, r"size is -4; it must be a whole number"),
        ("flag", "yes", r"size is 'yes'; it must be true or false"),
        ("items", {"a": 1}, r"size is \{'a': 1\}; it must be a list"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_urn(method: str, value: Value, rule: str) -> None:
    found = disk("d", {"size": value})
    with pytest.raises(ResourceError, match=rule) as refusal:
        getattr(found, method)("size")
    assert found.urn in str(refusal.value)
    assert isinstance(refusal.value, InputError)


def test_numbers_in_text_are_numbers() -> None:
    assert disk("d", {"size": "200"}).integer("size") == 200


def test_an_urn_is_unique() -> None:
    with pytest.raises(ResourceError, match="registered twice"):
        ResourceSet((disk("d"), disk("d")))


def test_a_reference_is_found_by_its_recorded_dependency() -> None:
    volume, other = disk("volume"), disk("other")
    vm = disk(
        "vm", {"attachedDisks": UNKNOWN}, type=VM, property_dependencies={"attachedDisks": (other.urn, volume.urn)}
    )
    stack = ResourceSet((volume, vm, other))
    assert stack.references(vm, "attachedDisks", DISK) == (other, volume)
    assert stack.dependents(volume, VM) == (vm,)
    assert stack.dependents(volume, DISK) == ()


@pytest.mark.parametrize("text", ["llama-1", "projects/p/zones/us-central1-b/disks/llama-1"])
def test_a_literal_reference_is_found_by_its_cloud_name(text: str) -> None:
    volume = disk("volume", {"name": "llama-1"})
    vm = disk("vm", {"attachedDisks": ({"source": text},)}, type=VM)
    stack = ResourceSet((vm, disk("other", {"name": "llama-2"}), volume))
    assert stack.references(vm, "attachedDisks", DISK) == (volume,)
    assert stack.references(vm, "attachedDisks", VM) == ()


def test_a_literal_reference_may_carry_a_query() -> None:
    template = disk("t", {"name": "host-1"})
    group = disk("g", {"versions": ({"instanceTemplate": "x/global/instanceTemplates/host-1?uniqueId=7"},)}, type=VM)
    assert ResourceSet((template, group)).references(group, "versions", DISK) == (template,)


def test_referrers_are_found_by_dependency_and_by_name() -> None:
    topic = disk("topic", {"name": "alerts"})
    literal = disk("a", {"topic": "projects/p/topics/alerts"}, type=VM)
    joined = disk("b", {"topic": UNKNOWN}, type=VM, property_dependencies={"topic": (topic.urn,)})
    other = disk("c", {"topic": "projects/p/topics/other"}, type=VM)
    stack = ResourceSet((literal, topic, joined, other))
    assert stack.referrers(topic, "topic", VM) == (literal, joined)
    assert stack.referrers(topic, "topic", DISK) == ()


def test_types_children_and_providers() -> None:
    provider = disk("gcp", {"zone": "us-central1-b"}, type="pulumi:providers:gcp")
    parent = disk("slice", type="spotrail:infra:TpuSlice")
    child = disk("vm", type=VM, parent=parent.urn, provider=f"{provider.urn}::uuid")
    stack = ResourceSet((provider, parent, child, disk("d")))
    assert stack.of_type(DISK, VM) == (child, stack.resources[3])
    assert stack.children(parent.urn) == (child,)
    assert stack.children("") == ()
    assert stack.provider_of(child) == provider
    assert stack.provider_of(parent) is None
    assert stack.get(child.urn) is child
    assert len(stack) == 4


def test_paths_and_names() -> None:
    assert dig({"a": ({"b": 1},)}, "a", 0, "b") == 1
    assert dig({"a": (1,)}, "a", 3) is None
    assert dotted(("bootDisk", "disks", 0, "type")) == "bootDisk.disks[0].type"
    assert cloud_name(disk("d", {"name": UNKNOWN})) is None
    assert list(texts({"a": ("x", {"b": "y"}), "c": 4})) == ["x", "y"]


def test_joins_of_a_large_stack_stay_linear() -> None:
    def seconds(count: int) -> float:
        volumes = [disk(f"d{index}", {"name": f"disk-{index}"}) for index in range(count)]
        vms = [disk(f"v{index}", {"attachedDisks": (f"disk-{index}",)}, type=VM) for index in range(count)]
        stack = ResourceSet((*volumes, *vms))
        start = time.thread_time()
        for vm, volume in zip(vms, volumes, strict=True):
            assert stack.references(vm, "attachedDisks", DISK) == (volume,)
        return time.thread_time() - start

    # Ten times the resources: a quadratic join would take a hundred times as long. The best of three, and the floor,
    # absorb what the machine does beside it.
    assert min(seconds(5000) for _ in range(3)) < 40 * max(seconds(500), 0.002)
