"""The JSON of a stack or a change: the keys of `spotrail.estimate/1`, both sides, and null where a total is hidden."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from policies.changes import Change, Op, Reading, SourceKind
from policies.estimate.change import estimate_change
from policies.prices.book import PriceBook
from policies.report.json import stack_document, stack_json
from policies.report.stack import StackReport
from policies.resources import SECRET, Resource, ResourceSet, Value
from policies.usage import Usage

AS_OF = datetime.date(2026, 11, 15)
TOP = {
    "schema", "currency", "price_book", "complete", "fresh", "hourly", "monthly", "before", "delta", "resources",
    "findings", "notes",
}  # fmt: skip
RESOURCE = {"urn", "type", "name", "location", "op", "hourly", "monthly", "components", "unknown", "unpriced"}
SMALL: Mapping[str, Value] = {
    "type": "hyperdisk-ml",
    "size": 100,
    "provisionedThroughput": 2400,
    "zone": "us-east5-b",
}
LARGE: Mapping[str, Value] = {**SMALL, "size": 140, "provisionedThroughput": 12000}
ELSEWHERE: Mapping[str, Value] = {**SMALL, "zone": "europe-west4-a"}

Read = Callable[..., dict[str, Any]]


def disk(name: str, inputs: Mapping[str, Value]) -> Resource:
    type = "gcp:compute/disk:Disk"
    return Resource(urn=f"urn:pulumi:dev::acme::{type}::{name}", type=type, name=name, inputs=inputs)


def change(op: Op, before: Resource | None, after: Resource | None) -> Change:
    either = after or before
    assert either is not None
    return Change(urn=either.urn, op=op, before=before, after=after)


@pytest.fixture(scope="session")
def read(book: PriceBook) -> Read:
    """The document of steps of a preview, or of a state that has no steps."""

    def made(*changes: Change, state: tuple[Resource, ...] | None = None, **reading: Any) -> dict[str, Any]:
        source = Reading(
            kind=SourceKind.PREVIEW if state is None else SourceKind.STATE,
            project="acme",
            stack="dev",
            before=ResourceSet(tuple(each.before for each in changes if each.before)) if state is None else None,
            after=ResourceSet(state or tuple(each.after for each in changes if each.after)),
            changes=changes,
            **reading,
        )
        report = StackReport(
            project="acme",
            stack="dev",
            kind=source.kind,
            place="preview.json",
            change=estimate_change(source, Usage(), book, AS_OF),
            book_as_of=book.as_of,
            book_sha256=book.sha256,
            as_of=AS_OF,
            notes=source.notes,
        )
        text = stack_json(report)
        assert text == json.dumps(stack_document(report), indent=2) + "\n"
        document: dict[str, Any] = json.loads(text)
        assert set(document) == TOP
        assert all(set(resource) == RESOURCE for resource in document["resources"])
        return document

    return made


def test_a_replacement_has_both_sides(read: Read) -> None:
    document = read(change(Op.REPLACE, disk("model", SMALL), disk("model", LARGE)))
    # 100 x 0.08 + 2,400 x 0.12 = 296; 140 x 0.08 + 12,000 x 0.12 = 1,451.20; by the hour / 730
    assert document["before"] == {"hourly": "0.405479452055", "monthly": "296.00", "complete": True}
    assert (document["hourly"], document["monthly"]) == ("1.987945205479", "1451.20")
    assert document["delta"] == {"hourly": "1.582465753425", "monthly": "1155.20"}
    assert [(each["op"], each["monthly"]) for each in document["resources"]] == [("replace", "1451.20")]
    assert (document["complete"], document["notes"]) == (True, [])


def test_resources_add_up_to_the_total_with_a_deletion_among_them(read: Read) -> None:
    document = read(
        change(Op.DELETE, disk("old", SMALL), None),
        change(Op.CREATE, None, disk("new", SMALL)),
        change(Op.SAME, disk("kept", LARGE), disk("kept", LARGE)),
    )
    assert [(each["op"], each["monthly"]) for each in document["resources"]] == [
        ("delete", "0.00"),
        ("create", "296.00"),
        ("same", "1451.20"),
    ]
    assert sum(Decimal(each["monthly"]) for each in document["resources"]) == Decimal(document["monthly"])
    assert document["delta"]["monthly"] == "0.00"
    assert document["resources"][0]["components"] == []


def test_a_deletion_alone(read: Read) -> None:
    document = read(change(Op.DELETE, disk("old", SMALL), None))
    assert (document["monthly"], document["before"]["monthly"], document["delta"]["monthly"]) == (
        "0.00",
        "296.00",
        "-296.00",
    )


def test_a_preview_that_hides_what_stays_has_a_delta_and_no_total(read: Read) -> None:
    document = read(change(Op.CREATE, None, disk("new", SMALL)), hidden=4, notes=("said by the reader",))
    assert (document["hourly"], document["monthly"], document["complete"]) == (None, None, False)
    assert document["before"] == {"hourly": None, "monthly": None, "complete": False}
    assert document["delta"]["monthly"] == "296.00"
    assert document["notes"] == [
        "said by the reader",
        "4 unchanged resources not shown: the total of the stack is not known. "
        "Run pulumi preview --json --show-sames, or read a pulumi stack export.",
    ]


def test_a_state_has_no_before(read: Read) -> None:
    document = read(state=(disk("model", SMALL),))
    assert (document["monthly"], document["before"], document["delta"]) == ("296.00", None, None)
    assert [each["op"] for each in document["resources"]] == ["same"]


def test_a_stack_of_nothing_is_a_document_too(read: Read) -> None:
    document = read(state=())
    assert (document["monthly"], document["complete"], document["resources"]) == ("0.00", True, [])


def test_a_name_cannot_break_out_of_its_text(read: Read) -> None:
    name = 'a\n  "resources": []\u2028é'
    document = read(state=(disk(name, SMALL),), notes=(name,))
    assert ([each["name"] for each in document["resources"]], document["notes"]) == ([name], [name])


def test_what_may_exist_is_a_note_beside_the_total(read: Read) -> None:
    document = read(
        state=(disk("model", SMALL),),
        possible=(disk("orphan", SMALL), disk("part", {**SMALL, "size": SECRET}), disk("far", ELSEWHERE)),
    )
    assert document["monthly"] == "296.00"
    whole, part, far = document["notes"]
    assert whole.startswith("possible 296.00 a month: interrupted while creating orphan, which may exist")
    assert part.startswith("possible at least 288.00 a month: interrupted while creating part,")
    assert far.startswith("possible at an unknown price: interrupted while creating far,")


LOWER = "prices or inputs are missing on a side of the change: the difference is that of two lower bounds"


@pytest.mark.parametrize(
    ("steps", "delta", "noted"),
    [
        # The price of the one that stays is missing on both sides and takes nothing from the difference.
        (
            (
                change(Op.SAME, disk("far", ELSEWHERE), disk("far", ELSEWHERE)),
                change(Op.CREATE, None, disk("new", SMALL)),
            ),
            "296.00",
            False,
        ),
        (
            (
                change(Op.SAME, disk("near", SMALL), disk("near", SMALL)),
                change(Op.SAME, disk("far", ELSEWHERE), disk("far", ELSEWHERE)),
                change(Op.CREATE, None, disk("new", SMALL)),
            ),
            "296.00",
            False,
        ),
        ((change(Op.UPDATE, disk("model", SMALL), disk("model", {**SMALL, "size": SECRET})),), "-8.00", True),
        ((change(Op.UPDATE, disk("model", SMALL), disk("model", ELSEWHERE)),), None, True),
    ],
)
def test_a_delta_with_parts_missing(read: Read, steps: tuple[Change, ...], delta: str | None, noted: bool) -> None:
    document = read(*steps)
    assert (document["delta"] and document["delta"]["monthly"]) == delta
    assert (LOWER in document["notes"]) is noted
    assert not document["complete"]


def test_no_control_code_reaches_a_terminal(stack_report: StackReport) -> None:
    # U+009B is what ESC [ is in one character; U+202E turns the line round.
    hostile = dataclasses.replace(stack_report, notes=("\x1b[2J\x9b2J\u202etxt",))
    text = stack_json(hostile)
    assert text.isascii()
    assert json.loads(text)["notes"][0] == "\x1b[2J\x9b2J\u202etxt"
