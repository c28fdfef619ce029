"""Workflow commands as the runner reads them, at most 10 of a level, and a summary that is never refused."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.report.github import SUMMARY_LIMIT, stack_annotations, stack_summary
from policies.report.markdown import marker
from policies.report.stack import StackReport
from policies.rules.model import Severity

COMMAND = re.compile(r"::(error|warning|notice) file=([^,:]+),line=1,title=([^,:]+)::(.+)")


def commands(report: StackReport) -> list[tuple[str, str, str, str]]:
    """Level, file, title and text of each line, decoded as the runner does it; every line is a command of ours."""
    found = [COMMAND.fullmatch(line) for line in stack_annotations(report).splitlines()]
    assert None not in found
    return [tuple(unquote(part) for part in match.groups()) for match in found if match]  # type: ignore[misc]


def test_the_price_and_then_what_is_found(stack_report: StackReport) -> None:
    assert [(level, title, text.partition(". ")[0]) for level, _, title, text in commands(stack_report)] == [
        ("notice", "spotrail", "FAIL: dev: 162.00 → 3,568.00 USD /month, +3,406.00 (+2,102.5 %)"),
        ("error", "BUDGET-TOTAL budget total", "3,667.50 of 3,600.00 for total (67.50 /month)"),
        ("error", "DISK-EXAMPLE llama", "1,200 MiB/s cannot be read by one host"),
        ("warning", "DISK-EXAMPLE llama", "1,200 MiB/s, the floor of this volume is 400 (96.00 /month)"),
        ("warning", "BUDGET-LABEL budget label env=dev", "cannot decide: 3,667.50 of 3,600.00 for label env=dev"),
        ("warning", "DISK-EXAMPLE llama", "cannot decide: cannot tell yet: size is secret"),
    ]  # fmt: skip
    assert {command[1] for command in commands(stack_report)} == {"Pulumi.yaml"}


def test_doubts_stand_beside_the_price(doubtful_report: StackReport) -> None:
    ((level, _, _, text),) = commands(doubtful_report)
    assert level == "notice"
    assert "12 resources are not shown by the source" in text
    assert "lower bound" in text


@pytest.mark.parametrize(("severity", "most"), [(Severity.ERROR, 10), (Severity.WARNING, 10), (Severity.INFO, 9)])
@pytest.mark.parametrize("number", [8, 9, 10, 11, 500])
def test_no_level_has_more_than_github_shows(
    stack_report_of: Callable[..., StackReport], stack_report: StackReport, severity: Severity, most: int, number: int
) -> None:
    one = dataclasses.replace(stack_report.findings[0], severity=severity)
    _, *found = commands(stack_report_of((), (), findings=(one,) * number))
    assert len(found) == min(number, most)
    told = number if number <= most else most - 1
    assert sum(title == "DISK-EXAMPLE llama" for _, _, title, _ in found) == told
    if number > most:
        assert found[-1][3] == f"{number - told} more of this level: see the summary of the step"


@pytest.mark.parametrize(
    ("place", "file"), [("-", "Pulumi.yaml"), ("./out/state.json", "out/state.json"), ("a,b:c%.json", "a,b:c%.json")]
)
def test_an_annotation_stands_in_the_source(stack_report: StackReport, place: str, file: str) -> None:
    assert commands(dataclasses.replace(stack_report, place=place))[0][1] == file


def test_the_summary_is_the_comment_with_more_room(
    stack_report: StackReport, stack_report_of: Callable[..., StackReport]
) -> None:
    assert stack_summary(stack_report).startswith(marker(stack_report))
    long = dataclasses.replace(stack_report.findings[0], message="x" * 5000)
    text = stack_summary(stack_report_of((), (), findings=(long,) * 5000))
    assert 0.9 * SUMMARY_LIMIT < len(text.encode()) < SUMMARY_LIMIT
    assert "more rows left out" in text


@settings(max_examples=60)
@given(text=st.text(min_size=1, max_size=60) | st.text(alphabet="%0AD:,\n\r=e", min_size=1, max_size=40))
def test_no_text_is_a_command(text: str, poisoned: Callable[[str], StackReport]) -> None:
    check(text, poisoned)


def test_no_hostile_text_is_a_command(hostile: str, poisoned: Callable[[str], StackReport]) -> None:
    check(hostile, poisoned)


def check(text: str, poisoned: Callable[[str], StackReport]) -> None:
    shown = commands(poisoned(text))
    assert [command[0] for command in shown] == [command[0] for command in commands(poisoned("tame"))]
    assert all(part.isprintable() for command in shown for part in command)
