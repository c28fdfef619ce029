"""How what serving costs is written: a table, JSON, or a page of HTML."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, final

from scripts import output

if TYPE_CHECKING:
    from rich.text import Text

    from inference.economics.report import Report


@final
class Format(enum.Enum):
    """How it is written."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


def write(report: Report, json: str, form: Format, output_file: Path | None) -> None:
    """Write a report, or what it is as JSON, to a file or to standard output."""
    from inference.economics.html import report_html
    from inference.economics.text import report_lines

    def lines(width: int) -> Iterator[Text]:
        return report_lines(report, width)

    with output.opened(output_file) as stream:
        match form:
            case Format.JSON:
                stream.write(json)
            case Format.HTML:
                stream.write(report_html(report))
            case Format.TABLE:
                output.write_lines(lines, stream)
