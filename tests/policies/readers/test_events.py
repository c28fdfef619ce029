"""Streams of engine events: a streaming preview, an event log, and what policy packs said in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from policies.changes import Op, PolicyResult, Reading, SourceKind
from policies.readers.errors import ReadError
from tests.policies.readers.documents import DISK, LARGE, SMALL, record, urn

Read = Callable[[Any], Reading]


def stream(*events: dict[str, Any]) -> str:
    """The events one a line, as Pulumi numbers them."""
    lines = ({"sequence": number, "timestamp": 1796000000 + number, **event} for number, event in enumerate(events))
    return "".join(json.dumps(line) + "\n" for line in lines)


def pre(op: str, old: Any = None, new: Any = None, kind: str = "resourcePreEvent", **more: Any) -> dict[str, Any]:
    """The event before a step (or after it, by `kind`)."""
    metadata = {"op": op, "urn": urn("coral"), "type": DISK, "old": old, "new": new, "logical": True, **more}
    return {kind: {"metadata": metadata, "planning": True}}


def summary(**counted: int) -> dict[str, Any]:
    """The event at the end."""
    return {"summaryEvent": {"maybeCorrupt": False, "durationSeconds": 1, "resourceChanges": counted}}


PRELUDE = {"preludeEvent": {"config": {"gcp:project": "reef-1"}}}
POLICY = {
    "policyEvent": {
        "resourceUrn": urn("coral"),
        "message": "too fast",
        "policyName": "most-throughput",
        "policyPackName": "money",
        "enforcementLevel": "mandatory",
    }
}
UPDATE = pre("update", record("coral", SMALL), record("coral", LARGE), diffs=["size"], keys=[])


def test_a_stream_is_a_preview(read: Read) -> None:
    reading = read(stream(PRELUDE, UPDATE, summary(update=1), {"cancelEvent": {}}))
    assert (reading.kind, reading.project, reading.stack, reading.hidden) == (SourceKind.PREVIEW, "reef", "eval", 0)
    (change,) = reading.changes
    assert (change.op, change.changed) == (Op.UPDATE, ("size",))
    assert change.before is not None
    assert change.after is not None
    assert (change.before.value("size"), change.after.value("size")) == (100, 140)
    assert (reading.config, reading.notes) == ({"gcp:project": "reef-1"}, ())


def test_the_event_after_a_step_adds_its_outputs(read: Read) -> None:
    bare = record("coral", {"type": "hyperdisk-ml"}) | {"outputs": {}}
    full = bare | {"outputs": {"type": "hyperdisk-ml", "size": 100}}
    reading = read(stream(pre("create", new=bare), pre("create", new=full, kind="resOutputsEvent"), summary(create=1)))
    assert [(change.op, change.after and change.after.value("size")) for change in reading.changes] == [
        (Op.CREATE, 100)
    ]


def test_a_replacement_in_three_events_is_one_change(read: Read) -> None:
    old, new = record("coral", SMALL), record("coral", LARGE)
    steps = [pre("create-replacement", old, new, keys=["size"]), pre("replace", old, new), pre("delete-replaced", old)]
    (change,) = read(stream(*steps, summary(replace=1))).changes
    assert (change.op, change.replace_reasons) == (Op.REPLACE, ("size",))


def test_results_of_policy_packs_are_kept_apart_and_unknown_kinds_are_noted(read: Read) -> None:
    advice = {"policyEvent": POLICY["policyEvent"] | {"enforcementLevel": "advisory"}}
    reading = read(stream(PRELUDE, {"futureThingEvent": {"x": 1}}, POLICY, advice, summary(create=1)))
    assert reading.policy_results == (
        PolicyResult(urn=urn("coral"), pack="money", policy="most-throughput", message="too fast", mandatory=True),
        PolicyResult(urn=urn("coral"), pack="money", policy="most-throughput", message="too fast", mandatory=False),
    )
    assert (reading.project, reading.stack, reading.hidden) == ("reef", "eval", 1)
    assert reading.notes == (
        'events of the kind "futureThingEvent" are not known and were skipped',
        "Pulumi's own policy packs report 2 violations, 1 of them mandatory",
        "Pulumi counted 1 more create than the preview shows: its totals are not those of the stack",
    )


@pytest.mark.parametrize("level", ["mandatory", "remediate", "fatal", 5, None])
def test_a_result_of_a_level_that_is_not_advisory_is_mandatory(read: Read, level: Any) -> None:
    """What is remediated and still reported fails in Pulumi; nothing passes by a word that is not known."""
    event = {"policyEvent": POLICY["policyEvent"] | {"enforcementLevel": level}}
    reading = read(stream(event, UPDATE, summary(update=1)))
    assert [result.mandatory for result in reading.policy_results] == [True]
    assert "Pulumi's own policy packs report 1 violation, 1 of them mandatory" in reading.notes


ADVICE = {"policyEvent": POLICY["policyEvent"] | {"enforcementLevel": "advisory"}}


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((PRELUDE, UPDATE, summary(update=3)), r"counted more changes than there are steps \(missing: 2 update\)"),
        ((PRELUDE, ADVICE, summary(create=1)), r"counted more changes than there are steps \(missing: 1 create\)"),
        ((PRELUDE, UPDATE), "the summary of changes is missing: the preview did not reach its end"),
        (({"resourcePreEvent": {}}, summary()), "event 1: resourcePreEvent.metadata is no object"),
        ((pre("create"), summary(create=1)), "event 1: .*create of .*coral has no new"),
        (
            ({"diagnosticEvent": {"severity": "error", "message": "no zone"}}, summary(same=1)),
            r"the preview failed with 1 error, .*no zone",
        ),
    ],
)
def test_a_stream_that_is_not_whole_is_refused(read: Read, events: Any, said: str) -> None:
    with pytest.raises(ReadError, match=said):
        read(stream(*events))


def test_a_stream_that_was_cut_in_a_line_is_refused(read: Read) -> None:
    with pytest.raises(ReadError, match=r"line 3, column [0-9]+: .*it was cut"):
        read(stream(PRELUDE, UPDATE, summary(update=1))[:-20])


def test_text_after_a_stream_is_cut_and_noted(read: Read) -> None:
    reading = read(stream(PRELUDE, UPDATE, summary(update=1)) + "Finished.\n")
    assert reading.notes == ("text after the JSON was left out, from line 4, column 1",)


def test_each_pending_deletion_of_a_stream_is_a_change(read: Read) -> None:
    gone = record("coral", SMALL, delete=True)
    events = [pre("delete", gone), pre("delete", gone), pre("delete", gone, kind="resOutputsEvent")]
    reading = read(stream(*events, summary(delete=2)))
    assert [(change.op, change.urn) for change in reading.changes] == [
        (Op.DELETE, f"{urn('coral')}#pending-delete"),
        (Op.DELETE, f"{urn('coral')}#pending-delete-2"),
    ]
    assert reading.hidden == 0
