"""From a registration to a resource."""

from __future__ import annotations

from infra.engine.graph import Registration, resource_of, split
from infra.engine.wire import UNKNOWN_TEXT, secret
from policies.resources import SECRET, UNKNOWN, ResourceOptions

STACK = Registration(urn="urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev", type="pulumi:pulumi:Stack", custom=False)


def disk(name: str, **rest: object) -> Registration:
    """A disk right below the stack."""
    options = rest.pop("options", ResourceOptions(parent=STACK.urn))
    return Registration(
        urn=f"urn:pulumi:dev::p::gcp:compute/disk:Disk::{name}",
        type="gcp:compute/disk:Disk",
        custom=True,
        options=options,  # type: ignore[arg-type]
        **rest,  # type: ignore[arg-type]
    )


def test_values_are_decoded() -> None:
    registered = disk(
        "a",
        inputs={"size": 10.0, "labels": {"a": secret("x")}, "none": None},
        outputs={"size": 10.0, "name": "a-1234567", "selfLink": UNKNOWN_TEXT},
    )
    found = resource_of(registered)
    assert found.name == "a"
    assert found.inputs == {"size": 10, "labels": {"a": SECRET}}
    assert found.outputs == {"size": 10, "name": "a-1234567", "selfLink": UNKNOWN}


def test_additional_secret_outputs_are_secret() -> None:
    options = ResourceOptions(parent=STACK.urn, additional_secret_outputs=("name", "privateKey"))
    assert resource_of(disk("a", outputs={"name": "x"}, options=options)).outputs == {"name": SECRET}


def test_what_is_read_stands_apart_and_may_be_a_parent() -> None:
    old = disk("old", external=True)
    child = disk("child", options=ResourceOptions(parent=old.urn))
    ours, external = split([child, old, STACK])
    assert [resource.name for resource in ours] == ["p-dev", "child"]
    assert [resource.name for resource in external] == ["old"]


def test_a_registration_shows_no_value() -> None:
    shown = repr(disk("a", inputs={"password": secret("hunter2")}, outputs={"password": "hunter2"}))
    assert "hunter2" not in shown
    assert "gcp:compute/disk:Disk::a" in shown
