"""A report as one HTML page that needs nothing else: no script, plots drawn in it, light and dark."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from inference.economics.report import Report, Table
from inference.economics.svg import drawing
from policies.report.escapes import line

HOUSE: Final = "policies.report"
"""Where the style of all pages lies; ours adds what a plot needs."""


def report_html(report: Report) -> str:
    """The page. Every text goes in escaped; the style is let in by its hash, and nothing else is."""
    style = _asset(HOUSE, "page.css") + _asset(__package__, "report.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _template().render(
        style=Markup(style),
        style_hash=f"sha256-{digest}",
        heading=line(report.heading),
        terms=line(report.terms),
        answers=[line(answer) for answer in report.answers],
        plots=[{"title": plot.title, "drawing": drawing(plot)} for plot in report.plots],
        tables=[_table(table) for table in report.tables],
        remarks=[{"text": line(remark.text), "warning": remark.warning} for remark in report.remarks],
        notes=[line(note) for note in report.notes],
        assumptions=report.assumptions,
    )


def _table(table: Table) -> dict[str, object]:
    return {
        "title": line(table.title),
        "columns": [line(column) for column in table.columns],
        "rows": [[line(text) for text in row] for row in table.rows],
        "note": line(table.note),
    }


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(_asset(__package__, "report.html"))


@cache
def _asset(package: str, name: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")
