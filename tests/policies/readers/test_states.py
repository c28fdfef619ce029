"""States: what stands, what is only said to stand, and what may stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from policies.changes import Reading, SourceKind
from policies.readers.errors import ReadError
from tests.policies.readers.documents import DISK, GOOGLE, LARGE, ROOT, SMALL, record, state, urn

Read = Callable[[Any], Reading]
POD = {"acceleratorType": "v6e-16", "runtimeVersion": "v2-alpha-tpuv6e", "zone": "us-east5-b"}
TPU = "gcp:tpu/v2Vm:V2Vm"


def checkpoint(*records: Any) -> dict[str, Any]:
    """The file that a backend in a folder keeps of the same state."""
    return {"version": 3, "checkpoint": {"stack": "organization/reef/eval", "latest": state(*records)["deployment"]}}


@pytest.mark.parametrize(
    "document",
    [
        state(record("coral")),
        state(record("coral"), version=4) | {"features": ["snippets"]},
        checkpoint(record("coral")),
    ],
    ids=["export v3", "export v4", "checkpoint"],
)
def test_all_files_of_a_state_say_the_same(read: Read, document: Any) -> None:
    reading = read(document)
    assert (reading.kind, reading.project, reading.stack) == (SourceKind.STATE, "reef", "eval")
    assert [resource.urn for resource in reading.after] == [ROOT, GOOGLE, urn("coral")]
    assert (reading.before, reading.changes, reading.hidden, reading.notes) == (None, (), 0, ())
    disk = reading.after.get(urn("coral"))
    assert disk is not None
    assert disk.inputs == SMALL
    provider = reading.after.provider_of(disk)
    assert provider is not None
    assert provider.urn == GOOGLE


def test_components_and_providers_are_nothing_in_the_cloud(read: Read) -> None:
    component = record("pod", POD, "reef:tpu:Pod", custom=False)
    reading = read(state(component, record("pod", POD, TPU)))
    assert [(resource.type, resource.custom) for resource in reading.after] == [
        ("pulumi:pulumi:Stack", False),
        ("pulumi:providers:gcp", True),
        ("reef:tpu:Pod", False),
        (TPU, True),
    ]


def test_what_is_only_read_is_left_out(read: Read) -> None:
    reference = record("other", {}, "pulumi:pulumi:StackReference", external=True)
    assert not read(state(record("coral", external=True), reference)).after.of_type(DISK, reference["type"])


def test_a_pending_delete_stands_and_bills_beside_its_replacement(read: Read) -> None:
    gone = record("coral", SMALL, delete=True)
    reading = read(state(record("coral", LARGE), gone, gone))
    assert [(disk.urn, disk.name, disk.value("size")) for disk in reading.after.of_type(DISK)] == [
        (urn("coral"), "coral", 140),
        (f"{urn('coral')}#pending-delete", "coral", 100),
        (f"{urn('coral')}#pending-delete-2", "coral", 100),
    ]
    assert reading.notes == ("coral, coral: replaced and not deleted yet: it bills until the next pulumi up",)


def test_a_pending_replacement_is_deleted_already(read: Read) -> None:
    reading = read(state(record("coral", pendingReplacement=True)))
    assert not reading.after.of_type(DISK)
    assert reading.notes == ("coral: deleted already, and its replacement is not made yet: it does not bill",)


def test_an_interrupted_creation_is_possible_and_in_no_total(read: Read) -> None:
    pending = [{"type": "creating", "resource": record("orphan")}]
    reading = read(state(pending_operations=pending))
    assert not reading.after.of_type(DISK)
    assert [(disk.urn, disk.inputs) for disk in reading.possible] == [(urn("orphan"), SMALL)]
    assert reading.notes == ("orphan: its creation was interrupted: it may exist and bill; look, then pulumi refresh",)


def test_a_creation_of_another_name_is_possible_beside_what_stands_under_its_urn(read: Read) -> None:
    pending = [{"type": "creating", "resource": record("coral", SMALL | {"name": name})} for name in ("coral", "reef")]
    reading = read(state(record("coral"), pending_operations=pending))
    assert [disk.value("name") for disk in reading.possible] == ["reef"]
    assert [note for note in reading.notes if note.startswith("coral: its creation was interrupted, and it stands")]


@pytest.mark.parametrize(
    ("operation", "note"),
    [
        ("updating", "coral: interrupted while updating: the state may be behind; pulumi refresh"),
        ("deleting", "coral: interrupted while deleting: the state may be behind; pulumi refresh"),
        ("importing", "coral: its import was interrupted: it exists, and is not in the state"),
        ("pondering", 'coral: the pending operation "pondering" is not known'),
    ],
)
def test_other_interrupted_operations_are_noted(read: Read, operation: str, note: str) -> None:
    reading = read(state(record("coral"), pending_operations=[{"type": operation, "resource": record("coral")}]))
    assert (reading.possible, reading.notes) == ((), (note,))
    assert len(reading.after.of_type(DISK)) == 1


def test_many_remarks_of_one_kind_are_one_note(read: Read) -> None:
    (note,) = read(state(*(record(f"d{n}", delete=True) for n in range(1000)))).notes
    assert note.startswith("d0, d1, d2, d3, d4 and 995 more: replaced and not deleted yet")


@pytest.mark.parametrize("resources", [[], None], ids=["no resources", "none said"])
def test_an_empty_state_is_said_to_be_empty(read: Read, resources: Any) -> None:
    reading = read(state(resources=resources))
    assert (len(reading.after), reading.project) == (0, "")
    assert reading.notes == ("the state is empty: nothing was deployed, or all of it was destroyed",)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (7, "is no object; it must be the record of a resource"),
        (record("coral") | {"urn": None}, "urn is no text"),
        (record("coral") | {"urn": "coral"}, 'urn is "coral"; a URN is urn:pulumi:STACK'),
        (record("coral") | {"type": ""}, "type is no text"),
        (record("coral") | {"inputs": []}, "inputs of .*coral is no object"),
        (record("coral") | {"custom": "yes"}, "custom must be true or false"),
        (record("coral") | {"dependencies": "x"}, "dependencies must be a list of texts"),
        (record("coral") | {"dependencies": [7]}, "dependencies must be a list of texts"),
        (record("coral") | {"propertyDependencies": ["x"]}, "propertyDependencies is no object"),
        (record("coral") | {"parent": 7}, "parent is no text"),
    ],
)
def test_a_broken_record_is_refused_with_its_place(read: Read, found: Any, said: str) -> None:
    with pytest.raises(ReadError, match=rf"reef\.json: deployment\.resources\[2\].*{said}"):
        read(state(found))


def test_a_urn_that_stands_twice_is_refused(read: Read) -> None:
    with pytest.raises(ReadError, match=r"reef\.json: .*coral: registered twice"):
        read(state(record("coral"), record("coral")))


@pytest.mark.parametrize(
    ("name", "project", "stack"), [("organization/reef/eval", "reef", "eval"), ("eval", "", "eval")]
)
@pytest.mark.parametrize("latest", [{}, {"latest": None}, {"latest": {"manifest": {}}}])
def test_the_checkpoint_of_a_stack_that_was_never_deployed_is_empty(
    read: Read, name: str, project: str, stack: str, latest: dict[str, Any]
) -> None:
    reading = read({"version": 3, "checkpoint": {"stack": name, **latest}})
    assert (reading.project, reading.stack, len(reading.after)) == (project, stack, 0)
    assert reading.notes == ("the state is empty: nothing was deployed, or all of it was destroyed",)


def test_options_are_alike_only_where_all_that_they_are_made_of_is(read: Read) -> None:
    kinds: list[dict[str, Any]] = [
        {},
        {"protect": True},
        {"dependencies": [ROOT]},
        {"aliases": ["urn:pulumi:a::b::c::d"]},
    ]
    records = [record(f"{place}-{copy}", SMALL, **more) for copy in "ab" for place, more in enumerate(kinds)]
    found = [each.options for each in read(state(*records)).after.of_type(DISK)]
    first, second = found[:4], found[4:]
    assert first == second
    assert [each.protect for each in first] == [False, True, False, False]
    assert [len(each.dependencies) for each in first] == [0, 0, 1, 0]
    assert [len(each.aliases) for each in first] == [0, 0, 0, 1]


def test_options_that_are_nested_too_deep_are_refused(read: Read) -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    with pytest.raises(ReadError, match=r"must be a list of texts|nested too deep"):
        read(state(record("coral", propertyDependencies={"zone": deep})))
