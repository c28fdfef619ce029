"""The engine's answers, asked for directly: what no small program brings about easily."""

from __future__ import annotations

import pytest
from pulumi.runtime.proto import resource_pb2

from infra.engine.configuration import ENCRYPTED_PLACEHOLDER, Configuration
from infra.engine.deployment import Deployment
from infra.engine.errors import EngineRefusal
from infra.engine.graph import split
from infra.engine.provider import FILLED
from infra.engine.urns import Namer
from infra.engine.wire import UNKNOWN_TEXT, Wire, from_struct, secret, to_struct
from policies.resources import SECRET

DISK = "gcp:compute/disk:Disk"
STACK = "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev"


@pytest.fixture
def deployment() -> Deployment:
    """An engine that has just registered the stack."""
    configuration = Configuration(
        values={"gcp:project": "acme", "gcp:credentials": ENCRYPTED_PLACEHOLDER, "p:size": "1"},
        secrets=frozenset({"gcp:credentials"}),
    )
    found = Deployment(Namer(stack="dev", project="p"), configuration)
    found.register(resource_pb2.RegisterResourceRequest(type="pulumi:pulumi:Stack", name="p-dev"))
    return found


def asked(name: str, inputs: dict[str, Wire] | None = None, **rest: object) -> resource_pb2.RegisterResourceRequest:
    """The registration of a disk."""
    settings = {"type": DISK, "parent": STACK, "custom": True, "version": "10.2.0", **rest}
    return resource_pb2.RegisterResourceRequest(name=name, object=to_struct(inputs or {}), **settings)  # type: ignore[arg-type]


def test_a_resource_is_answered_as_in_a_preview(deployment: Deployment) -> None:
    found = deployment.register(asked("data", {"size": 10.0}), FILLED)
    assert found.urn == "urn:pulumi:dev::p::gcp:compute/disk:Disk::data"
    assert found.id == ""
    answered = from_struct(found.object)
    assert (answered["size"], answered["project"], answered["type"]) == (10.0, "acme", "pd-standard")


def test_the_default_provider_keeps_what_is_encrypted(deployment: Deployment) -> None:
    deployment.register(asked("data"))
    resources, _ = split(deployment.registrations)
    provider = resources.provider_of(resources.of_type(DISK)[0])
    assert provider is not None
    assert provider.urn == "urn:pulumi:dev::p::pulumi:providers:gcp::default_10_2_0"
    assert provider.inputs == {"project": "acme", "credentials": SECRET, "version": "10.2.0"}


def test_a_provider_has_an_id_that_is_not_known(deployment: Deployment) -> None:
    found = deployment.register(asked("mine", {"zone": "us-east5-b"}, type="pulumi:providers:gcp"))
    assert found.id == UNKNOWN_TEXT
    reference = f"{found.urn}::{UNKNOWN_TEXT}"
    answered = deployment.register(asked("data", provider=reference), FILLED).object
    assert from_struct(answered)["zone"] == "us-east5-b"
    assert "project" not in from_struct(answered)


def test_a_provider_that_the_program_names_keeps_the_version_of_its_plugin(deployment: Deployment) -> None:
    deployment.register(asked("mine", {"zone": "us-east5-b"}, type="pulumi:providers:gcp"))
    resources, _ = split(deployment.registrations)
    assert resources.of_type("pulumi:providers:gcp")[0].inputs == {"zone": "us-east5-b", "version": "10.2.0"}


def test_children_inherit_what_they_do_not_say_themselves(deployment: Deployment) -> None:
    anchor = deployment.register(asked("anchor")).urn
    box = asked("box", type="shop:store:Box", custom=False, protect=True, retainOnDelete=True, deletedWith=anchor)
    parent = deployment.register(box).urn
    deployment.register(asked("silent", parent=parent))
    deployment.register(asked("own", parent=parent, protect=False, retainOnDelete=False, deletedWith=parent))
    found = {one.name: one.options for one in split(deployment.registrations)[0]}
    silent, own = found["silent"], found["own"]
    assert (silent.protect, silent.retain_on_delete, silent.deleted_with) == (True, True, anchor)
    assert (own.protect, own.retain_on_delete, own.deleted_with) == (False, False, parent)


def test_the_default_provider_has_no_parent_and_stands_after_the_stack(deployment: Deployment) -> None:
    deployment.register(asked("data"))
    resources = tuple(split(deployment.registrations)[0])
    assert [(one.name, one.options.parent) for one in resources] == [
        ("p-dev", None),
        ("default_10_2_0", None),
        ("data", STACK),
    ]


def test_a_timeout_that_is_no_duration_is_refused(deployment: Deployment) -> None:
    timeouts = resource_pb2.RegisterResourceRequest.CustomTimeouts(create="1 hour")
    with pytest.raises(EngineRefusal, match=r'::data: custom timeout create: "1 hour" is no duration'):
        deployment.register(asked("data", customTimeouts=timeouts))


def test_additional_secret_outputs_are_marked(deployment: Deployment) -> None:
    found = deployment.register(asked("data", {"description": "x"}, additionalSecretOutputs=["description", "key"]))
    assert from_struct(found.object)["description"] == secret("x")
    assert "key" not in from_struct(found.object)


def test_an_invoke_that_waits_for_a_resource_is_not_known(deployment: Deployment) -> None:
    token = "gcp:organizations/getProject:getProject"
    urn = deployment.register(asked("data")).urn
    waiting = deployment.invoke(resource_pb2.ResourceInvokeRequest(tok=token, dependsOn=[urn]))
    assert waiting.unknown
    free = deployment.invoke(resource_pb2.ResourceInvokeRequest(tok=token, dependsOn=[STACK]))
    assert not free.unknown
    assert from_struct(getattr(free, "return"))["projectId"] == "acme"


def test_a_resource_can_be_looked_up(deployment: Deployment) -> None:
    urn = deployment.register(asked("data", {"size": 10.0})).urn
    request = resource_pb2.ResourceInvokeRequest(tok="pulumi:pulumi:getResource", args=to_struct({"urn": urn}))
    found = from_struct(getattr(deployment.invoke(request), "return"))
    assert (found["urn"], found["id"]) == (urn, "")
    assert isinstance(found["state"], dict)
    assert found["state"]["size"] == 10.0
    with pytest.raises(EngineRefusal, match=r"urn:x: asked for, but never registered"):
        deployment.invoke(
            resource_pb2.ResourceInvokeRequest(tok="pulumi:pulumi:getResource", args=to_struct({"urn": "urn:x"}))
        )


def test_what_is_read_is_answered_with_what_is_known(deployment: Deployment) -> None:
    request = resource_pb2.ReadResourceRequest(
        type=DISK, name="old", id="disks/old", parent=STACK, properties=to_struct({"size": 3.0}), version="10.2.0"
    )
    found = deployment.read(request)
    assert (found.urn, found.id) == ("urn:pulumi:dev::p::gcp:compute/disk:Disk::old", "disks/old")
    assert from_struct(found.properties) == {"size": 3.0}
    resources, external = split(deployment.registrations)
    assert [resource.name for resource in resources] == ["p-dev", "default_10_2_0"]
    assert external[0].outputs == {"size": 3, "id": "disks/old"}


def test_what_nobody_registered(deployment: Deployment) -> None:
    with pytest.raises(EngineRefusal, match=r"urn:x: outputs of a resource that was never registered"):
        deployment.complete(resource_pb2.RegisterResourceOutputsRequest(urn="urn:x"))
    with pytest.raises(EngineRefusal, match=r"::data: its parent urn:pulumi:dev::p::a:b:C::x was never registered"):
        deployment.register(asked("data", parent="urn:pulumi:dev::p::a:b:C::x"))
