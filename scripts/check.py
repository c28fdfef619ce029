"""`spotrail check SOURCE`: the gate for CI. One verdict, one exit code, whatever the format."""

from __future__ import annotations

import datetime
import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from scripts import options, output

if TYPE_CHECKING:
    from policies.readers.stack_name import StackName
    from policies.report.stack import StackReport
    from policies.rules.model import Waiver

TABLE: Final = "table"
GITHUB: Final = "github"
WRITERS: Final = {
    "json": ("policies.report.json", "stack_json"),
    "markdown": ("policies.report.markdown", "stack_markdown"),
    "sarif": ("policies.report.sarif", "stack_sarif"),
    "junit": ("policies.report.junit", "stack_junit"),
    GITHUB: ("policies.report.github", "stack_annotations"),
    "infracost-json": ("policies.report.infracost_json", "stack_infracost"),
    "html": ("policies.report.html", "stack_html"),
    "focus-csv": ("policies.report.focus_csv", "stack_focus"),
}
"""For each format but the table, the function that writes a report in it."""
SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The file to which a step of a GitHub workflow appends its summary."""


@click.command(name="check", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source")
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="BUDGET",
    help="The most that a month may cost: 80000, label:env=dev=4000, type:gcp:compute/disk:Disk=500 or change=1000. "
    "May be given several times.",
)
@click.option(
    "--waivers",
    type=options.Readable(most=1),
    metavar="FILE.yaml",
    help="More waivers than the stack file has: a list of {rule, urn, reason, until}, or a stack file.",
)
@click.option("--allow-stale", is_flag=True, help="Old and undated prices are good enough to decide on.")
@click.option(
    "--format",
    "form",
    type=click.Choice((TABLE, *WRITERS), case_sensitive=False),
    default=TABLE,
    show_default=True,
    help="A table for people, html for a page of its own, markdown for a comment, github for annotations and the "
    "summary of the step; the others for programs.",
)
@options.usage
@options.prices
@options.as_of
@options.stack
@options.output
@options.project
@options.quiet
def command(
    source: str,
    budgets: tuple[str, ...],
    waivers: Path | None,
    allow_stale: bool,
    form: str,
    usage: Path | None,
    prices: Path | None,
    as_of: datetime.date,
    wanted: StackName | None,
    output_file: Path | None,
    project_dir: Path,
    quiet: bool,
) -> int:
    """Judge SOURCE by the rules and by budgets: 0 it may go up, 3 it must not, 4 nobody can tell, 2 not readable.

    SOURCE is the name of an environment, whose program runs offline; or a file of `pulumi preview --json` or `pulumi
    stack export`, - for standard input. ./dev names a file. Waivers stand in the stack file. The exit code is the same
    in every format; standard output is the report and nothing else.

    \b
    Examples:
      spotrail check prod --budget 80000
      pulumi preview --json --show-sames | spotrail check - --budget 80000 --format markdown
      spotrail check state.json --stack prod --format sarif --output spotrail.sarif
    """
    # Imported here, so that help and mistyped options answer at once.
    from policies.budget import parse_budget
    from policies.judging import stack_report
    from policies.prices.book import load_book, shipped_book
    from policies.usage import Usage, load_usage
    from scripts.sources import read_any

    assumed = load_usage(usage) if usage else Usage()
    book = load_book(prices) if prices else shipped_book()
    limits = tuple(parse_budget(text) for text in budgets)
    more = _waivers(waivers) if waivers else ()
    read = read_any(source, project_dir, wanted, quiet=quiet)
    report = stack_report(
        read.reading, assumed, book, as_of, place=read.place, waivers=more, budgets=limits, allow_stale=allow_stale
    )
    if not quiet:
        output.quote("the program said:", read.log)
    _write(report, form, output_file)
    return report.verdict


def _waivers(file: Path) -> tuple[Waiver, ...]:
    """The waivers of a file: a list, or the setting of a stack file. Raises InputError."""
    from infra.engine.stack_yaml import load_yaml
    from policies.errors import InputError
    from policies.rules.waivers import PLACE, read_waivers

    document = load_yaml(file)
    if not isinstance(document, dict):
        return read_waivers(document, str(file))
    config = document.get("config", document)
    if isinstance(config, dict) and (PLACE in config or config is not document):
        return read_waivers(config.get(PLACE), f"{file}: {PLACE}")
    raise InputError(
        f"{file}: it has no {PLACE}, so it waives nothing; a file of waivers is a list of "
        f"{{rule, urn, reason, until}}, or a stack file with config and {PLACE} in it"
    )


def _write(report: StackReport, form: str, output_file: Path | None) -> None:
    from policies.report.stack_table import check_lines

    with output.opened(output_file) as stream:
        if form == TABLE:
            output.write_lines(lambda width: check_lines(report, width), stream)
        else:
            module, name = WRITERS[form]
            stream.write(getattr(import_module(module), name)(report))
    if form == GITHUB and os.environ.get(SUMMARY):
        _summarise(report, Path(os.environ[SUMMARY]))


def _summarise(report: StackReport, file: Path) -> None:
    from policies.errors import InputError
    from policies.report.github import stack_summary

    try:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(stack_summary(report))
    except OSError as error:
        raise InputError(f"{SUMMARY} names {file}, which cannot be written: {error.strerror}") from None
