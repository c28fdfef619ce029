"""URNs, against the ones that Pulumi's documentation and its state files show."""

from __future__ import annotations

import pytest
from pulumi.runtime.proto import alias_pb2

from infra.engine.urns import Namer, name_of, package_of, parent_types, split_reference

NAMER = Namer(stack="dev", project="proj")
STACK = "urn:pulumi:dev::proj::pulumi:pulumi:Stack::proj-dev"
VOLUME = "urn:pulumi:dev::proj::marin:storage:ModelVolume::llama"
DISK = "urn:pulumi:dev::proj::marin:storage:ModelVolume$gcp:compute/disk:Disk::llama-ro"


def test_the_stack() -> None:
    assert NAMER.stack_urn == STACK


@pytest.mark.parametrize(
    ("token", "name", "parent", "urn"),
    [
        ("gcp:tpu/v2Vm:V2Vm", "pod", STACK, "urn:pulumi:dev::proj::gcp:tpu/v2Vm:V2Vm::pod"),
        ("gcp:tpu/v2Vm:V2Vm", "pod", "", "urn:pulumi:dev::proj::gcp:tpu/v2Vm:V2Vm::pod"),
        ("marin:storage:ModelVolume", "llama", STACK, VOLUME),
        ("gcp:compute/disk:Disk", "llama-ro", VOLUME, DISK),
        ("a:b:C", "x", DISK, "urn:pulumi:dev::proj::marin:storage:ModelVolume$gcp:compute/disk:Disk$a:b:C::x"),
        ("a:b:C", "odd::name$", STACK, "urn:pulumi:dev::proj::a:b:C::odd::name$"),
    ],
)
def test_a_resource(token: str, name: str, parent: str, urn: str) -> None:
    assert NAMER.urn(token, name, parent) == urn
    assert name_of(urn) == name


def test_a_child_of_an_oddly_named_parent() -> None:
    assert parent_types("urn:pulumi:dev::proj::a:b:C::odd::name") == "a:b:C"


@pytest.mark.parametrize(
    ("spec", "urn"),
    [
        (alias_pb2.Alias(urn="urn:pulumi:x"), "urn:pulumi:x"),
        (alias_pb2.Alias(spec=alias_pb2.Alias.Spec(name="old")), DISK.replace("llama-ro", "old")),
        (
            alias_pb2.Alias(spec=alias_pb2.Alias.Spec(noParent=True)),
            "urn:pulumi:dev::proj::gcp:compute/disk:Disk::llama-ro",
        ),
        (
            alias_pb2.Alias(spec=alias_pb2.Alias.Spec(type="a:b:C", stack="prod", project="other", parentUrn=STACK)),
            "urn:pulumi:prod::other::a:b:C::llama-ro",
        ),
    ],
)
def test_an_alias(spec: alias_pb2.Alias, urn: str) -> None:
    assert NAMER.alias(spec, "gcp:compute/disk:Disk", "llama-ro", VOLUME) == urn


def test_a_provider_reference() -> None:
    urn = "urn:pulumi:dev::proj::pulumi:providers:gcp::p"
    assert split_reference(f"{urn}::6f1c") == (urn, "6f1c")


@pytest.mark.parametrize(
    ("token", "package"),
    [
        ("gcp:compute/disk:Disk", "gcp"),
        ("pulumi:providers:gcp", "gcp"),
        ("pulumi:pulumi:StackReference", "pulumi"),
        ("pulumi-python:dynamic:Resource", "pulumi-python"),
    ],
)
def test_the_package_of_a_type(token: str, package: str) -> None:
    assert package_of(token) == package
