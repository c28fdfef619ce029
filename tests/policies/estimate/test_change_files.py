"""From the files that Pulumi writes to the price of a change: the same numbers however a step is shown."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from policies.changes import Op
from policies.estimate.change import ChangeEstimate, estimate_change
from policies.prices.book import PriceBook
from policies.readers.source import read_source
from policies.usage import Usage

AS_OF = datetime.date(2026, 11, 15)
DISK = "gcp:compute/disk:Disk"
SMALL = {"type": "hyperdisk-ml", "size": 100, "provisionedThroughput": 2400, "zone": "us-east5-b"}
LARGE = {**SMALL, "size": 140, "provisionedThroughput": 12000}


def record(inputs: Mapping[str, Any], name: str = "reef", token: str = DISK) -> dict[str, Any]:
    """One resource as Pulumi's files have it."""
    urn = f"urn:pulumi:dev::tide::{token}::{name}"
    return {"urn": urn, "custom": True, "type": token, "id": name, "inputs": inputs, "outputs": inputs}


def step(op: str, old: Mapping[str, Any] | None = None, new: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One step of a preview."""
    sides = {"oldState": old, "newState": new}
    urn = next(side["urn"] for side in (new, old) if side)
    return {"op": op, "urn": urn, **{name: side for name, side in sides.items() if side}}


def priced(book: PriceBook, document: Mapping[str, Any]) -> ChangeEstimate:
    """The change that the file with that document tells of."""
    reading = read_source("preview.json", io.BytesIO(json.dumps(document).encode()))
    return estimate_change(reading, Usage(), book, AS_OF)


def preview(*steps: Mapping[str, Any], **summary: int) -> dict[str, Any]:
    """What `pulumi preview --json` prints."""
    return {"config": {}, "steps": steps, "duration": 1, "changeSummary": summary}


OLD, NEW = record(SMALL), record(LARGE)


@pytest.mark.parametrize(
    ("op", "steps"),
    [
        (Op.UPDATE, (step("update", OLD, NEW),)),
        (Op.REPLACE, (step("replace", OLD, NEW),)),
        (
            Op.REPLACE,
            (step("create-replacement", OLD, NEW), step("replace", OLD, NEW), step("delete-replaced", OLD)),
        ),
        (
            Op.REPLACE,
            (step("delete-replaced", OLD), step("replace", OLD, NEW), step("create-replacement", OLD, NEW)),
        ),
    ],
)
def test_a_growing_disk_has_one_price_on_each_side(book: PriceBook, op: Op, steps: tuple[dict[str, Any], ...]) -> None:
    found = priced(book, preview(*steps))
    # 100 x 0.08 + 2,400 x 0.12 = 296; 140 x 0.08 + 12,000 x 0.12 = 1,451.20
    assert found.before is not None
    assert (found.before.amount.monthly, found.after.amount.monthly) == (Decimal(296), Decimal("1451.2"))
    assert [(each.op, each.delta.monthly) for each in found.resources] == [(op, Decimal("1155.2"))]
    assert found.delta == found.resources[0].delta


def test_a_deletion_takes_its_price_away(book: PriceBook) -> None:
    found = priced(book, preview(step("delete", OLD)))
    assert found.delta is not None
    assert (found.after.amount.monthly, found.delta.monthly) == (Decimal(0), Decimal(-296))


def test_what_a_preview_hides_is_no_total(book: PriceBook) -> None:
    slice = record({"acceleratorType": "v6e-16", "zone": "us-east5-b"}, "current", "gcp:tpu/v2Vm:V2Vm")
    found = priced(book, preview(step("create", None, slice), create=1, same=4))
    # 16 x 2.70 x 730
    assert found.delta is not None
    assert found.delta.monthly == Decimal(31536)
    assert (found.hidden, found.complete) == (4, False)


@pytest.mark.parametrize(("changed", "monthly", "complete"), [(["labels"], 296, True), (["size"], 288, False)])
def test_a_size_that_the_new_state_leaves_out(
    book: PriceBook, changed: list[str], monthly: int, complete: bool
) -> None:
    """The old size holds where the size is not what changes; where it is, nobody knows the new one."""
    rest = {key: value for key, value in SMALL.items() if key != "size"}
    old = {**record(rest), "outputs": SMALL}
    new = {**record(rest), "outputs": rest}
    found = priced(book, preview({**step("update", old, new), "diffReasons": changed}))
    assert (found.after.amount.monthly, found.after.complete) == (Decimal(monthly), complete)


def test_an_interrupted_creation_is_possible_and_outside_the_total(book: PriceBook) -> None:
    deployment = {
        "manifest": {"time": "2026-11-01T00:00:00Z", "magic": "", "version": ""},
        "resources": [],
        "pending_operations": [{"resource": {**record(SMALL), "id": ""}, "type": "creating"}],
    }
    found = priced(book, {"version": 3, "deployment": deployment})
    assert (found.after.amount.monthly, found.before) == (Decimal(0), None)
    assert [each.amount.monthly for each in found.possible] == [Decimal(296)]
    assert found.notes[0].startswith("possible 296.00 a month: interrupted while creating reef")
