"""`spotrail diff A B`: what B costs beyond A."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scripts import options

if TYPE_CHECKING:
    from policies.comparison import Side
    from policies.prices.book import PriceBook
    from policies.readers.stack_name import StackName
    from policies.usage import Usage


@click.command(name="diff", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@options.data_format
@options.usage
@options.prices
@options.as_of
@click.option("--strict", is_flag=True, help="Exit 4 where the difference is not exact, or rests on stale prices.")
@options.allow_stale
@options.stack
@options.output
@options.project
@options.quiet
def command(
    first: str,
    second: str,
    form: options.DataFormat,
    usage: Path | None,
    prices: Path | None,
    as_of: datetime.date,
    strict: bool,
    allow_stale: bool,
    wanted: StackName | None,
    output_file: Path | None,
    project_dir: Path,
    quiet: bool,
) -> int:
    """Show what B costs beyond A, resource by resource and in total. What costs the same gets no line.

    Each of the two is a preview, a state, an estimate of ours (--format json), - for standard input, or the name of an
    environment, whose program then runs offline. ./dev names a file. Of a preview, what will stand is compared. Shows
    and exits 0, unless --strict.

    \b
    Examples:
      spotrail diff main.json branch.json
      spotrail diff state.json prod
      spotrail plan prod --format json > main.json; git switch branch; spotrail diff main.json prod
    """
    # Imported here, so that help and mistyped options answer at once.
    from policies.comparison import comparison_report
    from policies.exit_codes import ExitCode
    from policies.prices.book import load_book, shipped_book
    from policies.report.plan import usage_words
    from policies.usage import Usage, load_usage
    from scripts.estimate import write

    if first == second == options.STDIN:
        raise click.UsageError("A and B cannot both be standard input (-)")
    assumed = load_usage(usage) if usage else Usage()
    book = load_book(prices) if prices else shipped_book()
    one = _side(first, assumed, book, as_of, project_dir, wanted, quiet=quiet)
    two = _side(second, assumed, book, as_of, project_dir, wanted, quiet=quiet)
    report = comparison_report(one, two, book, as_of, usage=usage_words(assumed), allow_stale=allow_stale)
    write(report, form, output_file, name="diff")
    return report.verdict if strict else ExitCode.FINE


def _side(
    name: str,
    usage: Usage,
    book: PriceBook,
    as_of: datetime.date,
    project_dir: Path,
    wanted: StackName | None,
    *,
    quiet: bool,
) -> Side:
    from policies.changes import SourceKind
    from policies.comparison import Side
    from policies.estimate.change import estimate_change
    from policies.estimate.document import parse_estimate
    from policies.readers.planned import place_of
    from policies.readers.stack_name import require
    from scripts.sources import read_estimate_or

    source = read_estimate_or(name, project_dir, wanted, quiet=quiet)
    if isinstance(source, bytes):
        kept = parse_estimate(source, name)
        require(wanted, *place_of([found.resource.urn for found in kept.resources]), name)
        return Side(name=name, after=kept)
    change = estimate_change(source.reading, usage, book, as_of)
    return Side(
        name=name,
        after=change.after,
        before=change.after if source.reading.kind is SourceKind.STATE else change.before,
        hidden=change.hidden,
        possible=change.possible,
        notes=source.reading.notes,
        project=source.reading.project,
        stack=source.reading.stack,
    )
