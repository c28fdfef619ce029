"""Whatever a preview or a state holds, every report of it can be read by the next program, or it is refused."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
from importlib import import_module
from typing import Any
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.budget import parse_budget
from policies.changes import Reading
from policies.exit_codes import ExitCode
from policies.judging import stack_report
from policies.prices.book import shipped_book
from policies.readers.errors import ReadError
from policies.readers.source import read_source
from policies.report.markdown import COMMENT_LIMIT
from policies.report.stack import StackReport
from policies.report.stack_table import check_lines, estimate_lines
from policies.usage import Usage
from scripts.check import WRITERS

AS_OF = datetime.date(2026, 11, 29)
VERDICTS = {ExitCode.FINE, ExitCode.VIOLATED, ExitCode.UNDECIDED}
BUDGETS = tuple(map(parse_budget, ("1000", "change=5", "label:env=dev=3", "type:gcp:compute/disk:Disk=7")))
ZONE = {"zone": "us-central1-b"}
STACK = (
    ("gcp:compute/disk:Disk", {"type": "hyperdisk-ml", "size": 200, "provisionedThroughput": 1200, **ZONE}),
    ("gcp:tpu/v2Vm:V2Vm", {"acceleratorType": "v6e-8", "schedulingConfig": {"spot": True}, **ZONE}),
    ("gcp:storage/bucket:Bucket", {"location": "US-CENTRAL1", "softDeletePolicy": {"retentionDurationSeconds": 0}}),
    ("gcp:compute/instance:Instance", {"machineType": "e2-standard-4", "labels": {"env": "dev"}, **ZONE}),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**13)
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(
        ["04da6b54-80e4-46f7-96ec-b56ff0331ba9", "[secret]", "1e400", "=1+1", "<b>", "\x1b[31m", "::error::"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


def record(token: str, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
    return {"urn": f"urn:pulumi:dev::reef::{token}::{name}", "custom": True, "type": token, "inputs": inputs}


def step(op: str, made: dict[str, Any]) -> dict[str, Any]:
    sides = {"create": ("newState",), "delete": ("oldState",), "update": ("oldState", "newState")}[op]
    return {"op": op, "urn": made["urn"], **dict.fromkeys(sides, made)}


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    """A state or a preview in which inputs, and the name of a resource, are something else."""
    made = []
    for number, (token, inputs) in enumerate(STACK):
        changed = draw(st.dictionaries(st.sampled_from(sorted(inputs)), VALUES, max_size=2))
        name = draw(st.sampled_from(["v", "=cmd()", "a|b", "<i>", "\x1b[0m", "\x9b0m", "\u202e", "\ud800"])) + str(
            number
        )
        made.append(record(token, name, inputs | changed))
    if draw(st.booleans()):
        return json.dumps({"version": 3, "deployment": {"resources": made}}).encode()
    ops = [draw(st.sampled_from(["create", "update", "delete"])) for _ in made]
    steps = [step(op, each) for op, each in zip(ops, made, strict=True)]
    summary = {op: ops.count(op) for op in ops} | {"same": draw(st.sampled_from([0, 3]))}
    return json.dumps({"steps": steps, "changeSummary": summary}).encode()


def reading_of(content: bytes) -> Reading | None:
    """What is read; None where it is refused."""
    with contextlib.suppress(ReadError):
        return read_source("reef.json", io.BytesIO(content))
    return None


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def assert_readable(form: str, text: str, report: StackReport) -> None:
    if form in ("json", "infracost-json", "sarif"):
        json.loads(text, parse_constant=refuse)
    elif form == "junit":
        ElementTree.fromstring(text)
    elif form == "markdown":
        assert len(text) <= COMMENT_LIMIT
    elif form == "github":
        assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in text.splitlines())
    # Strict JSON may hold any character but these; the reports for people hold none that would move or turn text.
    assert not {"\x1b", "\x00", *(("\u202e", "\x9b") if form != "json" else ())} & set(text), (form, report.verdict)
    text.encode()


@settings(max_examples=60)
@given(sources())
def test_no_source_makes_a_report_that_the_next_program_cannot_read(content: bytes) -> None:
    reading = reading_of(content)
    if reading is None:
        return
    report = stack_report(reading, Usage(), shipped_book(), AS_OF, place="reef.json", budgets=BUDGETS)
    assert report.verdict in VERDICTS
    for form, (module, name) in WRITERS.items():
        assert_readable(form, getattr(import_module(module), name)(report), report)
    for lines in (check_lines(report, 100), estimate_lines(report, 60)):
        assert_readable("table", "\n".join(line.plain for line in lines), report)


@settings(max_examples=60)
@given(sources())
def test_what_is_read_leaves_the_sum_of_the_parts_the_difference(content: bytes) -> None:
    reading = reading_of(content)
    if reading is None:
        return
    change = stack_report(reading, Usage(), shipped_book(), AS_OF, place="x").change
    if change.delta is not None:
        assert (
            sum((each.delta.per_month for each in change.resources), change.delta.per_month * 0)
            == change.delta.per_month
        )
    assert change.after.amount.monthly >= 0
