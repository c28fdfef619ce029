"""The table: its text word for word, every width, no escape codes, doubts that are said."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from policies.report.layout import Column, Page
from policies.report.plan import PlanReport
from policies.report.table import plan_lines, print_plan

WIDTHS = (48, 60, 75, 76, 80, 95, 96, 100, 140, 200)


def shown(report: PlanReport, width: int, *, show_passed: bool = False, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system="standard" if terminal else None)
    print_plan(report, console, show_passed=show_passed)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_the_table_word_for_word(plan: PlanReport, width: int) -> None:
    golden = Path(__file__).with_name(f"plan_{width}.txt")
    assert shown(plan, width, show_passed=True) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_page_and_none_ends_in_blanks(
    plan: PlanReport, incomplete_plan: PlanReport, width: int
) -> None:
    for report in (plan, incomplete_plan):
        for line in shown(report, width).splitlines():
            assert cell_len(line) <= width, line
            assert line == line.rstrip()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_money_of_a_month_is_on_every_page(plan: PlanReport, width: int) -> None:
    text = " ".join(shown(plan, width).split())
    # slice 8 x 0.60 x 730 = 3,504; volume 16 + 144 = 160; bucket 100 x 0.02 = 2; one condition 1.50
    for amount in ("3,667.50 USD /month", "3,504.00", "144.00", "2.00", "1.50"):
        assert amount in text
    assert "the same on demand: 15,768.00" in text


def test_piped_text_has_no_escape_codes_and_a_terminal_has_colour(plan: PlanReport) -> None:
    assert "\x1b" not in shown(plan, 100)
    assert "\x1b[31m" in shown(plan, 100, terminal=True)


def test_names_that_a_terminal_would_obey_are_defused(hostile_plan: PlanReport) -> None:
    text = shown(hostile_plan, 100)
    assert not {"\x1b", "\r", "\x07"} & set(text)
    assert "�[31mred�[0m��" in text
    assert "[bold]b[/bold]" in text


def test_an_incomplete_total_is_a_lower_bound_and_names_what_is_missing(incomplete_plan: PlanReport) -> None:
    text = shown(incomplete_plan, 100)
    assert "dev costs at least 3,504.00 USD /month" in text
    assert "Not counted, so the total is a lower bound:" in text
    assert "llama-eu: no on-demand price for disk.hyperdisk-ml.capacity in europe-west4-a" in text
    assert "cache: spotrail has no estimate for gcp:redis/instance:Instance" in text
    assert "nothing" not in text
    (row,) = (line for line in text.splitlines() if "├ disk.hyperdisk-ml.capacity" in line)
    assert row.split()[-3:] == ["200", "GiB-month", "?"]
    lines = text.splitlines()
    # What has no price at all comes last: it is not cheap, it is not known.
    assert lines.index(row) > next(place for place, line in enumerate(lines) if "TPU v6e chip" in line)


@pytest.mark.parametrize("width", [76, 80, 100])
def test_a_name_longer_than_its_room_stands_whole_above_its_figures(width: int) -> None:
    rows = Page(width).row(" └ disk.hyperdisk-balanced.capacity", {Column.QUANTITY: "100", Column.MONTHLY: "?"})
    name, figures = (line.plain for line in rows)
    assert name == " └ disk.hyperdisk-balanced.capacity"
    assert figures.split() == ["100", "?"]
    assert cell_len(figures) == width


def test_a_total_of_which_nothing_is_known_has_no_figure(unknown_plan: PlanReport) -> None:
    text = shown(unknown_plan, 100)
    assert " dev: not known" in text
    assert "0.00" not in text


def test_a_total_of_rounded_parts_says_so(rounded_plan: PlanReport, plan: PlanReport) -> None:
    text = shown(rounded_plan, 100)
    (total,) = (line for line in text.splitlines() if line.startswith(" total"))
    assert total.split()[-1] == "1.00"
    assert "rounded" in total
    assert text.count("0.34") == 6
    assert "rounded" not in shown(plan, 100)


def test_passed_rules_are_shown_on_request(plan: PlanReport) -> None:
    assert "✓ Slices are spot" not in shown(plan, 100)
    assert "✓ Slices are spot" in shown(plan, 100, show_passed=True)


def test_lines_are_plain_data(plan: PlanReport) -> None:
    assert [line.plain for line in plan_lines(plan, 100)] == shown(plan, 100).splitlines()
