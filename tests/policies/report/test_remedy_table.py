"""A remedy plan for people: what is done, what it saves, what is left alone and why."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from policies.audit.model import RemedyKind
from policies.audit.remedies.applying import Outcome, Result
from policies.audit.remedies.model import Refusal, RemedyPlan
from policies.money import Amount
from policies.report.layout import Page
from policies.report.remedy_table import MOST_NAMES, plan_lines, result_lines
from tests.policies.audit.remedies.test_checking import plan


def text(found: RemedyPlan, width: int = 100) -> str:
    return "\n".join(line.plain for line in plan_lines(found, width))


def saving(amount: int | None, kind: RemedyKind = RemedyKind.LOWER_THROUGHPUT) -> RemedyPlan:
    found = plan(kind)
    worth = None if amount is None else Amount.by_month(amount)
    return dataclasses.replace(found, measures=(dataclasses.replace(found.measures[0], saving=worth),))


@pytest.mark.parametrize(
    ("found", "headline", "worth"),
    [
        (saving(96), "Remedies: 1 in 1 step, saving 96.00 /month, of what was seen 2026-11-15", "saves 96.00 /month"),
        (saving(5, RemedyKind.SNAPSHOT_THEN_DELETE), "Remedies: 1 in 2 steps, saving 5.00 /month", "saves 5.00 /month"),
        (saving(-12), "Remedies: 1 in 1 step, saving -12.00 /month", "costs 12.00 /month more"),
        (saving(0), "Remedies: 1 in 1 step, saving 0.00 /month", "saves nothing by itself"),
        (saving(None), "Remedies: 1 in 1 step, saving an amount that is not known", "what it saves is not known"),
        (dataclasses.replace(saving(1), measures=()), "Remedies: nothing to do, of what was seen 2026-11-15", ""),
    ],
)  # fmt: skip
def test_the_answer_first(found: RemedyPlan, headline: str, worth: str) -> None:
    said = text(found)
    assert said.startswith(f" {headline}")
    assert worth in said


def test_what_is_left_alone_stands_by_its_reason() -> None:
    many = [Refusal(resource=f"projects/p/zones/z/disks/d{number}", why="not ours") for number in range(MOST_NAMES + 3)]
    cache = Refusal(resource="b/acme/anywhereCaches/us-central1-b", why="protected")
    said = text(dataclasses.replace(plan(RemedyKind.DETACH), refused=(*many, cache)), 400)
    assert f"Left alone: {MOST_NAMES + 4}" in said
    assert f"d0, d1, d2, {', '.join(f'd{number}' for number in range(3, MOST_NAMES))} and 3 more: not ours" in said
    assert "b/acme/anywhereCaches/us-central1-b: protected" in said


@pytest.mark.parametrize("width", [48, 60, 100, 160])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    for kind in RemedyKind:
        assert all(line.cell_len <= width for line in plan_lines(plan(kind), width))


@pytest.mark.parametrize(
    ("outcome", "why", "said"),
    [
        (Outcome.DONE, "", "✓ set"),
        (Outcome.ALREADY, "projects/p/zones/z/disks/d", "(already so)"),
        (Outcome.CHANGED, "d: users is empty", "▲ set"),
        (Outcome.FAILED, "400 no", "(failed: 400 no)"),
        (Outcome.DECLINED, "", "(declined)"),
    ],
)
def test_how_a_step_ended(outcome: Outcome, why: str, said: str) -> None:
    measure = plan(RemedyKind.LOWER_THROUGHPUT).measures[0]
    result = Result(measure=measure, step=measure.steps[0], outcome=outcome, why=why)
    assert said in "\n".join(line.plain for line in result_lines(result, Page(160)))


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "a\nb", "\u202etxt", "\x07"])
def test_no_text_commands_a_terminal(hostile: str) -> None:
    found = plan(RemedyKind.LOWER_THROUGHPUT)
    step = dataclasses.replace(found.measures[0].steps[0], text=hostile)
    changes: dict[str, Any] = {"why": hostile, "setting": hostile, "steps": (step,), "resource": hostile}
    measure = dataclasses.replace(found.measures[0], **changes)
    refused = (Refusal(resource=hostile, why=hostile),)
    said = text(dataclasses.replace(found, measures=(measure,), refused=refused))
    result = Result(measure=measure, step=step, outcome=Outcome.FAILED, why=hostile)
    said += "\n".join(line.plain for line in result_lines(result, Page(100)))
    assert all(char.isprintable() or char == "\n" for char in said)
