"""A report as lines for a terminal: figures under their headings, and more than one row of them where it is narrow."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from inference.economics.report import Report, Table
from policies.report.layout import GAP, NARROWEST, Page, clean

LEAST_NAME: Final = 18
"""Columns that a name keeps beside its figures; longer ones wrap."""
MOST_NAME: Final = 44


def report_lines(report: Report, width: int) -> Iterator[Text]:
    """The report, each line at most `width` cells wide from a width of 48 up."""
    page = Page(width)
    yield from page.ends(clean(report.heading), clean(report.terms), "bold")
    yield Text()
    for number, answer in enumerate(report.answers):
        yield from page.paragraph(answer, style="" if number else "bold")
    for table in report.tables:
        yield Text()
        yield from _table(table, page)
    yield Text()
    for remark in report.remarks:
        style = "yellow" if remark.warning else ""
        yield from page.paragraph(f"{'▲' if remark.warning else '·'} {remark.text}", style=style, hanging="   ")
    for note in report.notes:
        yield from page.paragraph(f"Note: {note}", hanging="       ")
    yield Text()
    yield from page.paragraph("Assumed, and to be set where you know better:", style="dim")
    for each in report.assumptions:
        said = f"{each.option} {each.value:,f} {each.unit}: {each.what} ({each.source})"
        yield from page.paragraph(said, "   ", "dim", hanging="     ")
    for number, step in enumerate(report.next_steps):
        # Whole, so that it can be copied; a terminal wraps it.
        yield Text(clean(f" {'Next:' if number == 0 else '     '} {step}"))


def _table(table: Table, page: Page) -> Iterator[Text]:
    """Parts of the table one below the other, each with as many columns as there is room for."""
    room = max(page.width, NARROWEST)
    widths = [
        max(cell_len(clean(text)) for text in (heading, *(row[place + 1] for row in table.rows))) + GAP
        for place, heading in enumerate(table.columns)
    ]
    named = max(cell_len(clean(text)) + GAP for text in (table.title, *(row[0] for row in table.rows)))
    name = min(max(named, LEAST_NAME), MOST_NAME, max(LEAST_NAME, room - sum(widths)))
    start = 0
    while start < len(widths):
        end = start + 1
        while end < len(widths) and name + sum(widths[start : end + 1]) <= room:
            end += 1
        yield from _part(table, widths, name, range(start, end))
        start = end
    if table.note:
        yield from page.paragraph(table.note, "   ", "dim")


def _part(table: Table, widths: Sequence[int], name: int, places: range) -> Iterator[Text]:
    headings = "".join(f"{table.columns[place]:>{widths[place]}}" for place in places)
    yield from _row(table.title, headings, name, "bold")
    for row in table.rows:
        cells = "".join(_right(clean(row[place + 1]), widths[place]) for place in places)
        yield from _row(row[0], cells, name)


def _right(text: str, width: int) -> str:
    return " " * max(0, width - cell_len(text)) + text


def _row(name: str, cells: str, width: int, style: str = "") -> Iterator[Text]:
    """The name in its room, wrapped; the figures stand on its last line."""
    *above, last = textwrap.wrap(clean(name), width - 2, break_on_hyphens=False) or [""]
    for number, line in enumerate(above):
        yield Text(f" {'' if number == 0 else ' '}{line}", style)
    lead = f" {'  ' if above else ''}{last}"[: max(width, cell_len(last) + 1)]
    yield Text(f"{lead}{' ' * max(0, width - cell_len(lead))}{cells}", style)
