"""Previews: every op, replacements in one step or three, hidden resources, and both sides of an update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from policies.changes import Op, Reading, SourceKind
from policies.readers.errors import ReadError
from policies.readers.operations import OPS
from policies.readers.signatures import UNKNOWN_TEXT
from policies.resources import SECRET, UNKNOWN, Resource
from tests.policies.readers.documents import GOOGLE, LARGE, ROOT, SMALL, digest, record, step, urn

Read = Callable[[Any], Reading]
WHY: dict[str, Any] = {"replaceReasons": ["snapshot"], "diffReasons": ["snapshot", "size"]}
ONE_STEP = digest(step("replace", old=SMALL, new=LARGE, **WHY), replace=1)
THREE_STEPS = digest(
    step("create-replacement", old=SMALL, new=LARGE, **WHY),
    step("replace", old=SMALL, new=LARGE, **WHY),
    step("delete-replaced", old=record("coral", SMALL, delete=True)),
    **{"create-replacement": 1, "replace": 1, "delete-replaced": 1},
)


def size(resource: Resource | None) -> Any:
    """The size of a disk, as prices read it; None where there is none."""
    return None if resource is None else resource.value("size")


def test_a_reading_knows_its_stack_and_configuration(read: Read) -> None:
    reading = read(
        digest(step("create", new=SMALL), create=1) | {"config": {"reef:token": "[secret]", "gcp:zone": "z"}}
    )
    assert (reading.kind, reading.project, reading.stack) == (SourceKind.PREVIEW, "reef", "eval")
    assert reading.config == {"reef:token": SECRET, "gcp:zone": "z"}
    assert "no policy results in this input: pulumi preview --json leaves them out" in reading.notes


@pytest.mark.parametrize("document", [ONE_STEP, THREE_STEPS], ids=["one step", "three steps"])
def test_a_replacement_is_one_change_with_both_sides(read: Read, document: Any) -> None:
    reading = read(document)
    (change,) = reading.changes
    assert change.op is Op.REPLACE
    assert (size(change.before), size(change.after)) == (100, 140)
    assert (change.replace_reasons, change.changed) == (("snapshot",), ("snapshot", "size"))
    assert reading.before is not None
    assert ([size(disk) for disk in reading.before], [size(disk) for disk in reading.after]) == ([100], [140])
    assert reading.hidden == 0


def test_a_replacement_in_three_steps_equals_one_in_one(read: Read) -> None:
    assert read(ONE_STEP).changes == read(THREE_STEPS).changes


def test_the_deletion_half_of_a_replacement_alone_is_a_deletion(read: Read) -> None:
    reading = read(digest(step("delete-replaced", old=SMALL), delete_replaced=1))
    (change,) = reading.changes
    assert (change.op, size(change.before), size(change.after)) == (Op.DELETE, 100, None)
    assert "coral: deleted together with what it hangs on, which is replaced, and not made again" in reading.notes


SIDES = {
    "same": (Op.SAME, 100, 140),
    "create": (Op.CREATE, None, 140),
    "update": (Op.UPDATE, 100, 140),
    "delete": (Op.DELETE, 100, None),
    "replace": (Op.REPLACE, 100, 140),
    "create-replacement": (Op.REPLACE, 100, 140),
    "delete-replaced": (Op.DELETE, 100, None),
    "read": (Op.READ, None, None),
    "read-replacement": (Op.DELETE, 100, None),
    "refresh": (Op.REFRESH, 100, 140),
    "discard": (Op.READ, None, None),
    "discard-replaced": (Op.READ, None, None),
    "remove-pending-replace": (Op.DELETE, None, None),
    "import": (Op.IMPORT, None, 140),
    "import-replacement": (Op.REPLACE, 100, 140),
    "diff": (Op.SAME, 100, 140),
    "extend-parameterize": (Op.SAME, 100, 140),
    "transmogrify": (Op.UPDATE, 100, 140),
}
FOREIGN: dict[str, Any] = {"external": True}
OLD = {
    "create": None,
    "read": None,
    "discard": record("coral", SMALL, **FOREIGN),
    "discard-replaced": record("coral", SMALL, **FOREIGN),
    "remove-pending-replace": record("coral", SMALL, pendingReplacement=True),
}
NEW = {
    "delete": None,
    "delete-replaced": None,
    "read": record("coral", LARGE, **FOREIGN),
    "read-replacement": record("coral", LARGE, **FOREIGN),
}


def test_every_op_of_pulumi_has_a_case() -> None:
    assert SIDES.keys() - {"transmogrify"} == OPS.keys()


@pytest.mark.parametrize(("op", "sides"), SIDES.items(), ids=SIDES)
def test_each_op_has_its_two_sides(read: Read, op: str, sides: tuple[Op, int | None, int | None]) -> None:
    reading = read(digest(step(op, old=OLD.get(op, SMALL), new=NEW.get(op, LARGE)), **{op: 1}))
    (change,) = reading.changes
    assert (change.op, size(change.before), size(change.after)) == sides
    assert reading.before is not None
    assert len(reading.before) == (sides[1] is not None)
    assert len(reading.after) == (sides[2] is not None)
    assert reading.hidden == 0


@pytest.mark.parametrize(("old", "new", "op"), [(SMALL, None, Op.DELETE), (None, LARGE, Op.CREATE)])
def test_an_op_that_is_not_known_is_read_by_its_sides_and_noted(read: Read, old: Any, new: Any, op: Op) -> None:
    reading = read(digest(step("transmogrify", old=old, new=new), transmogrify=1))
    assert [change.op for change in reading.changes] == [op]
    assert 'coral: the op "transmogrify" is not known: read by its two sides' in reading.notes


@pytest.mark.parametrize(
    ("op", "sides", "said"),
    [
        ("create", {}, "create of .*coral has no newState"),
        ("update", {"new": LARGE}, "update of .*coral has no oldState"),
        ("replace", {"old": SMALL}, "replace of .*coral has no newState"),
        ("delete", {"new": SMALL}, "delete of .*coral has no oldState"),
        ("create", {"new": record("kelp", LARGE)}, "the step is of .*coral and its newState of .*kelp"),
    ],
)
def test_a_step_without_a_side_that_it_needs_is_refused(read: Read, op: str, sides: Any, said: str) -> None:
    with pytest.raises(ReadError, match=rf"reef\.json: steps\[0\]: {said}"):
        read(digest(step(op, **sides), **{op: 1}))


def own(op: str = "same") -> dict[str, Any]:
    """The step of the stack itself, which Pulumi always shows."""
    side = {"urn": ROOT, "custom": False, "type": "pulumi:pulumi:Stack"}
    return step(op, oldState=side, newState=side) | {"urn": ROOT}


@pytest.mark.parametrize(
    ("steps", "counted", "hidden"),
    [
        pytest.param([step("create", new=LARGE)], {"create": 1, "same": 4}, 4, id="sames hidden"),
        pytest.param([own(), step("create", new=LARGE)], {"create": 1, "same": 5}, 4, id="the stack shown"),
        pytest.param([own(), step("create", new=LARGE)], {"create": 1, "same": 1}, 0, id="nothing but the stack"),
        pytest.param([own(), step("same", old=SMALL, new=SMALL)], {"same": 2}, 0, id="sames shown"),
        pytest.param([own()], {"same": 1, "read": 2, "discard": 1}, 0, id="reads, which are nobody's bill"),
        pytest.param([own(), step("refresh", old=SMALL, new=SMALL)], {"same": 2, "refresh": 1}, 1, id="refreshed"),
        pytest.param([own()], {"same": 1, "transmogrify": 2}, 2, id="an op that is not known"),
    ],
)
def test_what_pulumi_counts_and_does_not_show_is_hidden(read: Read, steps: Any, counted: Any, hidden: int) -> None:
    reading = read(digest(*steps, **counted))
    assert reading.hidden == hidden
    said = "Pulumi counted 2 more transmogrify than the preview shows: its totals are not those of the stack"
    assert (said in reading.notes) == ("transmogrify" in counted)


@pytest.mark.parametrize(
    ("steps", "counted", "said"),
    [
        pytest.param([own()], {"same": 1, "create": 2}, "2 create", id="all cut out"),
        pytest.param([step("create", new=LARGE)], {"create": 5, "delete": 2}, "4 create, 2 delete", id="some cut out"),
        pytest.param([step("delete-replaced", old=SMALL)], {"replace": 2}, "2 replace", id="replacements"),
        pytest.param([step("refresh", old=SMALL, new=SMALL)], {"update": 2}, "2 update", id="more than was refreshed"),
    ],
)
def test_a_preview_that_lacks_steps_of_the_change_is_refused(read: Read, steps: Any, counted: Any, said: str) -> None:
    with pytest.raises(ReadError, match=rf"^reef\.json: Pulumi counted more .*missing: {said}\).*preview again$"):
        read(digest(*steps, **counted))


def test_a_refresh_may_be_counted_as_what_it_did(read: Read) -> None:
    reading = read(digest(step("refresh", old=SMALL, new=LARGE), update=1))
    assert [change.op for change in reading.changes] == [Op.REFRESH]


def test_half_a_surrogate_pair_in_a_name_is_the_same_name_in_step_and_record(read: Read) -> None:
    (change,) = read(digest(step("create", "\ud800", new=record("\ud800", LARGE)), create=1)).changes
    assert change.urn == urn("\ufffd")


def test_shown_sames_stand_on_both_sides_with_their_old_outputs(read: Read) -> None:
    asked = {"type": "hyperdisk-ml", "zone": "us-east5-b"}
    old = record("coral", asked) | {"outputs": SMALL}
    new = record("coral", asked) | {"outputs": {}}
    reading = read(digest(own(), step("same", old=old, new=new), same=2))
    assert reading.before == reading.after
    assert [size(disk) for disk in reading.after.of_type("gcp:compute/disk:Disk")] == [100]


@pytest.mark.parametrize(
    ("why", "after"),
    [
        pytest.param({"diffReasons": ["provisionedThroughput"]}, 100, id="another input changes"),
        pytest.param({"diffReasons": ["size", "provisionedThroughput"]}, UNKNOWN, id="the size changes"),
        pytest.param({"detailedDiff": {"size": {"kind": "delete"}}}, UNKNOWN, id="by the detailed difference"),
    ],
)
def test_an_input_that_an_update_does_not_set_keeps_its_output_unless_it_changes(
    read: Read, why: Any, after: Any
) -> None:
    unset = {key: value for key, value in LARGE.items() if key != "size"}
    (change,) = read(digest(step("update", old=SMALL, new=unset, **why), update=1)).changes
    assert (size(change.before), size(change.after)) == (100, after)


def test_a_new_resource_leaves_unknown_outputs_open_as_the_program_does(read: Read) -> None:
    new = record("coral", {"type": "hyperdisk-ml"}) | {"outputs": {"size": UNKNOWN_TEXT, "type": "hyperdisk-ml"}}
    (disk,) = read(digest(step("create", new=new), create=1)).after
    assert disk.outputs == {"type": "hyperdisk-ml"}


def test_refresh_and_update_of_one_resource_are_one_change(read: Read) -> None:
    reading = read(
        digest(step("refresh", old=SMALL, new=SMALL), step("update", old=SMALL, new=LARGE), refresh=1, update=1)
    )
    assert [(change.op, size(change.before), size(change.after)) for change in reading.changes] == [
        (Op.UPDATE, 100, 140)
    ]


def test_a_pending_deletion_beside_its_living_namesake_is_a_change_of_its_own(read: Read) -> None:
    gone = record("coral", SMALL, delete=True)
    steps = (step("update", old=SMALL, new=LARGE), step("delete", old=gone), step("delete", old=gone))
    reading = read(digest(*steps, update=1, delete=2))
    assert [(change.urn, change.op) for change in reading.changes] == [
        (urn("coral"), Op.UPDATE),
        (f"{urn('coral')}#pending-delete", Op.DELETE),
        (f"{urn('coral')}#pending-delete-2", Op.DELETE),
    ]
    assert reading.before is not None
    assert [(disk.name, size(disk)) for disk in reading.before] == [("coral", 100)] * 3
    assert reading.hidden == 0
    assert [size(disk) for disk in reading.after] == [140]
    assert "coral, coral: replaced earlier and still standing; this change deletes it" in reading.notes


def test_what_is_retained_on_delete_goes_on_billing_and_is_noted(read: Read) -> None:
    reading = read(digest(step("delete", old=record("coral", SMALL, retainOnDelete=True)), delete=1))
    assert any(note.startswith("coral: retained on delete") for note in reading.notes)


def test_a_preview_that_failed_is_refused_with_what_pulumi_says(read: Read) -> None:
    failed = digest(step("create", new=SMALL), create=1)
    failed["diagnostics"] = [
        {"severity": "warning", "message": "mind the gap"},
        {"severity": "error", "message": "error: the zone\n is closed"},
    ]
    with pytest.raises(ReadError, match=r"failed with 1 error, .*Pulumi says: error: the zone is closed"):
        read(failed)


@pytest.mark.parametrize(
    ("messages", "said"), [((None, "no zone"), "with 2 errors, .*says: no zone$"), (({},), "says: nothing more$")]
)
def test_an_error_that_is_no_text_is_an_error_all_the_same(read: Read, messages: tuple[Any, ...], said: str) -> None:
    failed = digest(step("create", new=SMALL), create=1)
    failed["diagnostics"] = [{"severity": "error", "message": message} for message in messages]
    with pytest.raises(ReadError, match=said):
        read(failed)


def test_options_of_a_record_are_those_of_the_graph(read: Read) -> None:
    new = record(
        "coral",
        LARGE,
        dependencies=[urn("kelp")],
        propertyDependencies={"snapshot": [urn("kelp")], "zone": None, "type": []},
        protect=True,
        retainOnDelete=True,
        ignoreChanges=["snapshot"],
        replaceOnChanges=["size"],
        deletedWith=urn("kelp"),
        additionalSecretOutputs=["size"],
        aliases=[urn("old")],
        customTimeouts={"create": 600, "update": 0},
        importID="projects/reef-1/zones/us-east5-b/disks/coral",
    )
    (disk,) = read(digest(step("create", new=new), create=1)).after
    options = disk.options
    assert (options.parent, options.provider.rpartition("::")[0]) == (ROOT, GOOGLE)
    assert options.dependencies == (urn("kelp"),)
    assert options.property_dependencies == {"snapshot": (urn("kelp"),)}
    assert (options.protect, options.retain_on_delete) == (True, True)
    assert (options.ignore_changes, options.replace_on_changes) == (("snapshot",), ("size",))
    assert (options.deleted_with, options.aliases) == (urn("kelp"), (urn("old"),))
    assert options.custom_timeouts == {"create": "600s"}
    assert options.import_id == "projects/reef-1/zones/us-east5-b/disks/coral"
    assert (options.additional_secret_outputs, "size" in disk.outputs) == (("size",), False)
