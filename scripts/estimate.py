"""`spotrail estimate FILE`: the price of a change or of what stands, from Pulumi's own files."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scripts import options, output

if TYPE_CHECKING:
    from rich.text import Text

    from policies.readers.stack_name import StackName
    from policies.report.stack import StackReport


@click.command(name="estimate", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file")
@options.data_format
@options.usage
@options.prices
@options.as_of
@options.strict
@options.allow_stale
@options.stack
@options.output
@options.quiet
def command(
    file: str,
    form: options.DataFormat,
    usage: Path | None,
    prices: Path | None,
    as_of: datetime.date,
    strict: bool,
    allow_stale: bool,
    wanted: StackName | None,
    output_file: Path | None,
    quiet: bool,
) -> int:
    """Price FILE: a preview (before, after, difference) or a state (what stands). - is standard input.

    Reads `pulumi preview --json`, `pulumi stack export` and the checkpoint files of a backend of your own. No cloud, no
    credentials, no network: the prices are in the package. Shows and exits 0, whatever is found, unless --strict.

    \b
    Examples:
      pulumi preview --json | spotrail estimate -
      pulumi stack export | spotrail estimate - --usage usage.yaml
      spotrail estimate state.json --format json | jq -r .monthly
    """
    # Imported here, so that help and mistyped options answer at once.
    from policies.exit_codes import ExitCode
    from policies.judging import stack_report
    from policies.prices.book import load_book, shipped_book
    from policies.usage import Usage, load_usage
    from scripts.sources import read_file

    assumed = load_usage(usage) if usage else Usage()
    book = load_book(prices) if prices else shipped_book()
    with output.progress(f"reading {file}", quiet=quiet):
        source = read_file(file, wanted)
    report = stack_report(
        source.reading,
        assumed,
        book,
        as_of,
        place=file,
        allow_stale=allow_stale,
        next_steps=() if file == options.STDIN else (f"spotrail check {shlex.quote(file)} --budget AMOUNT",),
    )
    write(report, form, output_file)
    return report.verdict if strict else ExitCode.FINE


def write(report: StackReport, form: options.DataFormat, output_file: Path | None, *, name: str = "estimate") -> None:
    """Write what `estimate` and `diff` show."""
    from policies.report.json import stack_json
    from policies.report.stack_table import estimate_lines

    def lines(width: int) -> Iterator[Text]:
        return estimate_lines(report, width, command=name)

    with output.opened(output_file) as stream:
        if form is options.DataFormat.JSON:
            stream.write(stack_json(report))
        else:
            output.write_lines(lines, stream)
