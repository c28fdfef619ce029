"""`spotrail plan ENV`: the price of a stack before it exists."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scripts import options, output

if TYPE_CHECKING:
    from policies.readers.stack_name import StackName


@click.command(name="plan", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("env")
@options.data_format
@options.usage
@options.prices
@options.as_of
@click.option("--show-passed", is_flag=True, help="Name the rules that found nothing, too.")
@options.strict
@options.allow_stale
@options.stack
@options.output
@options.project
@options.quiet
def command(
    env: str,
    form: options.DataFormat,
    usage: Path | None,
    prices: Path | None,
    as_of: datetime.date,
    show_passed: bool,
    strict: bool,
    allow_stale: bool,
    wanted: StackName | None,
    output_file: Path | None,
    project_dir: Path,
    quiet: bool,
) -> int:
    """Price the stack ENV before it exists: resources, components, findings, total.

    Runs the project's own Pulumi program with infra/stacks/Pulumi.ENV.yaml against an offline engine: no cloud, no
    credentials, no Pulumi CLI. Nothing is created. Shows and exits 0, whatever is found, unless --strict.

    \b
    Examples:
      spotrail plan dev
      spotrail plan prod --format json | jq -r .monthly
      spotrail plan prod --usage usage.yaml --strict
    """
    # Imported here, so that help and mistyped options answer at once.
    from infra.planning import plan_report
    from infra.preview import find_project, preview
    from policies.exit_codes import ExitCode, judge
    from policies.prices.book import load_book, shipped_book
    from policies.readers.stack_name import require
    from policies.report.json import plan_json
    from policies.report.table import print_plan
    from policies.usage import Usage, load_usage

    assumed = load_usage(usage) if usage else Usage()
    book = load_book(prices) if prices else shipped_book()
    with output.progress(f"running the program of {env}", quiet=quiet):
        seen = preview(env, find_project(project_dir))
        require(wanted, seen.project, seen.stack, env)
        report = plan_report(seen, assumed, book, as_of)
    if not quiet:
        output.quote("the program said:", seen.log)
    with output.opened(output_file) as stream:
        if form is options.DataFormat.JSON:
            stream.write(plan_json(report))
        else:
            page = output.console(stream)
            # Captured first: rich would end the process itself when the reader of a pipe leaves.
            with page.capture() as table:
                print_plan(report, page, show_passed=show_passed)
            stream.write(table.get())
    return judge(report.estimate, report.findings, allow_stale=allow_stale) if strict else ExitCode.FINE
