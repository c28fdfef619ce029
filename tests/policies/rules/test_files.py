"""Rules, the plan gate and budgets over what Pulumi writes: previews and states, read by the real readers."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from policies.budget import Outcome, judge_budgets, parse_budget
from policies.changes import Reading
from policies.estimate.change import ChangeEstimate, estimate_change
from policies.exit_codes import ExitCode, judge
from policies.prices.book import PriceBook, load_book
from policies.readers.source import read_source
from policies.rules.engine import Judgement, run_rules
from policies.rules.model import Severity
from policies.usage import Usage

TODAY = datetime.date(2026, 11, 15)
DISK = "gcp:compute/disk:Disk"
BUCKET = "gcp:storage/bucket:Bucket"
NODE = "gcp:tpu/v2Vm:V2Vm"
QUEUED = "gcp:tpu/v2QueuedResource:V2QueuedResource"
STACK = "urn:pulumi:dev::acme::pulumi:pulumi:Stack::acme-dev"
BOOK = Path(__file__).parent / "book.csv"
VOLUME = {
    "name": "weights",
    "type": "hyperdisk-ml",
    "size": 100,
    "provisionedThroughput": 2400,
    "zone": "us-central1-b",
    "snapshot": "weights-v1",
}


@pytest.fixture(scope="module")
def book() -> PriceBook:
    return load_book(BOOK)


def state(token: str, name: str, inputs: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    urn = f"urn:pulumi:dev::acme::{token}::{name}"
    found = {"urn": urn, "custom": True, "id": name, "type": token, "inputs": inputs, "outputs": inputs}
    return found | {"parent": STACK} | more


def step(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    side = before or after
    assert side is not None
    found = {"op": op, "urn": side["urn"], "oldState": before, "newState": after, "detailedDiff": None}
    return {key: value for key, value in found.items() if value is not None} | more


def preview(*steps: dict[str, Any], **summary: int) -> Reading:
    return read({"config": {"gcp:project": "acme"}, "steps": list(steps), "duration": 1, "changeSummary": summary})


def export(*resources: dict[str, Any]) -> Reading:
    stack = {"urn": STACK, "custom": False, "type": "pulumi:pulumi:Stack", "inputs": {}, "outputs": {}}
    return read({"version": 3, "deployment": {"manifest": {}, "resources": [stack, *resources]}})


def read(document: Mapping[str, Any]) -> Reading:
    return read_source("source.json", io.BytesIO(json.dumps(document).encode()))


def judged(reading: Reading, book: PriceBook) -> tuple[Judgement, ChangeEstimate]:
    change = estimate_change(reading, Usage(), book, TODAY)
    return run_rules(reading.after, change.after, TODAY, book=book, changes=reading.changes), change


def told(result: Judgement, *ids: str) -> list[tuple[str, str, Severity]]:
    return [
        (each.rule.id, each.urn.rpartition("::")[2], each.severity) for each in result.findings if each.rule.id in ids
    ]


GATE = ("STATE-REPLACED", "STATE-DELETED", "DISK-SHRUNK", "DISK-ACCESS-MODE-CHANGED")


def replaced(before: Mapping[str, Any], after: Mapping[str, Any], reasons: Iterable[str], token: str = DISK) -> Reading:
    """A replacement as Pulumi shows it: in one step, with its reasons."""
    old, new = state(token, "weights", before), state(token, "weights", after)
    return preview(step("replace", old, new, replaceReasons=list(reasons)), replace=1)


def test_a_new_snapshot_version_replaces_the_volume(book: PriceBook) -> None:
    after = VOLUME | {"snapshot": "weights-v2", "size": 140, "provisionedThroughput": 12000}
    result, change = judged(replaced(VOLUME, after, ["snapshot"]), book)
    assert told(result, *GATE) == [("STATE-REPLACED", "weights", Severity.ERROR)]
    (found,) = [each for each in result.findings if each.rule.id == "STATE-REPLACED"]
    assert found.urn == f"urn:pulumi:dev::acme::{DISK}::weights"
    assert "because of: snapshot" in found.message
    assert judge(change.after, result.findings) is ExitCode.VIOLATED


def test_a_replacement_in_three_steps_is_one_finding(book: PriceBook) -> None:
    old, new = state(DISK, "weights", VOLUME), state(DISK, "weights", VOLUME | {"snapshot": "weights-v2"})
    reading = preview(
        step("create-replacement", old, new, replaceReasons=["snapshot"]),
        step("replace", old, new, replaceReasons=["snapshot"]),
        step("delete-replaced", old, None),
    )
    assert told(judged(reading, book)[0], *GATE) == [("STATE-REPLACED", "weights", Severity.ERROR)]


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (DISK, [("STATE-REPLACED", "weights", Severity.ERROR)]),
        (BUCKET, [("STATE-REPLACED", "weights", Severity.ERROR)]),
        (NODE, []),
        ("gcp:compute/instance:Instance", []),
        ("gcp:compute/instanceTemplate:InstanceTemplate", []),
        ("gcp:cloudrunv2/job:Job", []),
    ],
)
def test_only_what_holds_data_is_gated(token: str, expected: list[Any], book: PriceBook) -> None:
    result, _ = judged(replaced({"name": "a"}, {"name": "b"}, ["name"], token), book)
    assert told(result, *GATE) == expected


def test_a_smaller_disk_is_a_new_one(book: PriceBook) -> None:
    result, _ = judged(replaced(VOLUME, VOLUME | {"size": 50}, ["size"]), book)
    assert sorted(told(result, *GATE)) == sorted(
        [("DISK-SHRUNK", "weights", Severity.ERROR), ("STATE-REPLACED", "weights", Severity.ERROR)]
    )


def test_a_shared_volume_never_becomes_writable(book: PriceBook) -> None:
    old = state(DISK, "weights", VOLUME | {"accessMode": "READ_ONLY_MANY"})
    new = state(DISK, "weights", VOLUME | {"accessMode": "READ_WRITE_SINGLE"})
    result, _ = judged(preview(step("update", old, new, diffReasons=["accessMode"]), update=1), book)
    assert told(result, *GATE) == [("DISK-ACCESS-MODE-CHANGED", "weights", Severity.ERROR)]


@pytest.mark.parametrize(
    ("inputs", "options", "severity", "words"),
    [
        (
            {"forceDestroy": False, "versioning": {"enabled": True}},
            {},
            Severity.WARNING,
            "delete will fail while objects or noncurrent versions exist; set forceDestroy and apply first",
        ),
        ({"forceDestroy": True}, {}, Severity.ERROR, "every checkpoint in it"),
        ({}, {"protect": True}, Severity.ERROR, "it is protected, so Pulumi refuses"),
        ({}, {"retainOnDelete": True}, Severity.WARNING, "by retainOnDelete it stays in the cloud"),
    ],
)
def test_a_bucket_that_goes(
    inputs: dict[str, Any], options: dict[str, Any], severity: Severity, words: str, book: PriceBook
) -> None:
    old = state(BUCKET, "ckpt", {"location": "US-EAST5"} | inputs, **options)
    result, _ = judged(preview(step("delete", old, None), delete=1), book)
    assert told(result, *GATE) == [("STATE-DELETED", "ckpt", severity)]
    assert words in result.findings[0].message


def test_checkpoints_that_one_destroy_empties_need_a_waiver(book: PriceBook) -> None:
    new = state(BUCKET, "ckpt", {"location": "US-CENTRAL1", "forceDestroy": True})
    result, _ = judged(preview(step("create", None, new), create=1), book)
    assert told(result, "GCS-FORCE-DESTROY") == [("GCS-FORCE-DESTROY", "ckpt", Severity.ERROR)]


def test_a_queued_resource_is_on_demand_for_each_of_its_nodes(book: PriceBook) -> None:
    spec = {"parent": "projects/acme/locations/us-central1-b", "node": {"acceleratorType": "v6e-16"}}
    specs = [spec | {"nodeId": "a"}, spec | {"nodeId": "b"}]
    result, change = judged(export(state(QUEUED, "q", {"zone": "us-central1-b", "tpu": {"nodeSpecs": specs}})), book)
    assert told(result, "TPU-ON-DEMAND") == [("TPU-ON-DEMAND", "q", Severity.ERROR)]
    assert change.after.amount.hourly == Decimal("86.40")
    assert change.after.amount.monthly == Decimal("63072.00")


@pytest.mark.parametrize("source", ["state", "preview"])
@pytest.mark.parametrize(
    ("flags", "conflict", "hourly"),
    [
        ({"spot": True, "reserved": True}, Severity.ERROR, None),
        ({"preemptible": True, "reserved": True}, Severity.ERROR, None),
        ({"spot": True, "preemptible": True}, Severity.WARNING, "4.80"),
        ({"spot": False}, None, "21.60"),
    ],
)
def test_terms_that_contradict_each_other(
    source: str, flags: dict[str, bool], conflict: Severity | None, hourly: str | None, book: PriceBook
) -> None:
    pod = state(NODE, "pod", {"acceleratorType": "v6e-8", "zone": "us-central1-b", "schedulingConfig": flags})
    reading = export(pod) if source == "state" else preview(step("create", None, pod), create=1)
    result, change = judged(reading, book)
    expected = [("TPU-CAPACITY-CONFLICT", "pod", conflict)] if conflict else []
    assert told(result, "TPU-CAPACITY-CONFLICT") == expected
    (found,) = [each for each in change.after.resources if each.resource.name == "pod"]
    chips = [line.amount.hourly for line in found.components if line.item == "tpu.v6e.chip"]
    assert chips == ([] if hourly is None else [Decimal(hourly)])
    assert found.complete is (hourly is not None)


def test_what_a_preview_hides_keeps_the_total_open_and_not_the_change(book: PriceBook) -> None:
    pod = state(NODE, "pod", {"acceleratorType": "v6e-16", "zone": "us-central1-b"})
    reading = preview(step("create", None, pod), create=1, same=4)
    _, change = judged(reading, book)
    assert change.delta is not None
    assert change.delta.monthly == Decimal("31536.00")
    texts = ("80000", "change=31536", "change=31535.99", "30000")
    total, fits, over, low = judge_budgets([parse_budget(text) for text in texts], change, reading.after)
    assert (total.outcome, fits.outcome, over.outcome) == (Outcome.UNDECIDED, Outcome.KEPT, Outcome.VIOLATED)
    assert "4 unchanged resources are not shown; pulumi preview --json --show-sames" in total.message
    assert low.outcome is Outcome.VIOLATED, "what is shown is too dear alone"


def test_a_missing_spot_price_passes_no_budget(book: PriceBook) -> None:
    pod = state(
        NODE, "pod", {"acceleratorType": "v6e-16", "zone": "asia-northeast1-b", "schedulingConfig": {"spot": True}}
    )
    reading = export(pod)
    result, change = judged(reading, book)
    (verdict,) = judge_budgets([parse_budget("1000000")], change, reading.after)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "pod: no spot price for tpu.v6e.chip in asia-northeast1-b" in verdict.message
    assert verdict.message.endswith("spotrail prices refresh")
    assert judge(change.after, (), budgets=[verdict]) is ExitCode.UNDECIDED
    assert told(result, "PRICE-MISSING") == [("PRICE-MISSING", "acme-dev", Severity.WARNING)]


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("EUROPE-WEST4", "the bucket is in EUROPE-WEST4 and the TPUs are in us-east5: cross-region reads are billed"),
        ("US", "reads from a multi-region are billed too"),
        ("US-EAST5", None),
    ],
)
def test_data_elsewhere(location: str, words: str | None, book: PriceBook) -> None:
    pod = state(NODE, "pod", {"acceleratorType": "v6e-16", "zone": "us-east5-b"})
    result, _ = judged(export(state(BUCKET, "data", {"location": location}), pod), book)
    found = [each for each in result.findings if each.rule.id == "GCS-REGION"]
    assert [each.urn.rpartition("::")[2] for each in found] == (["data"] if words else [])
    if words:
        assert words in found[0].message
        assert found[0].monthly is None
        assert "How much is not known: set usage.data.epochs" in found[0].message
