"""`spotrail guard`: one run of the guard, as the job of a stack makes it every hour."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scripts import options, output
from scripts.cloud import failures_told

if TYPE_CHECKING:
    from policies.exit_codes import ExitCode
    from policies.guard.running import Run
    from policies.guard.webhook import Webhook


@click.command(name="guard", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--project", metavar="ID", required=True, help="The Google Cloud project to look at.")
@click.option("--stack", default="", metavar="NAME", help="Whose guard it is: touch only what is labelled env=NAME.")
@click.option("--apply", "do", is_flag=True, help="Lower throughput that is not used, and end slices past their ttl.")
@click.option("--dry-run", is_flag=True, help="Look and judge only: change, tell and write nothing.")
@click.option("--topic", default="", metavar="NAME", help="Publish to projects/PROJECT/topics/NAME.")
@click.option(
    "--webhook-env",
    default="",
    metavar="VARIABLE",
    help="Environment variable with the https URL of a webhook. A URL on the command line would be seen by everybody.",
)
@click.option(
    "--window", type=options.Span(), default="7d", show_default=True, help="Time to look back on; at least 24h."
)
@click.option("--endpoint", metavar="URL", help="A Google Cloud on this machine: http://127.0.0.1:8080.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json"), case_sensitive=False),
    default="text",
    show_default=True,
    help="A few lines for a log, or strict JSON (spotrail.guard/1).",
)
@options.prices
@click.option("--as-of", type=options.Day(), show_default="today", help="The day from which the age of prices counts.")
@options.output
@options.quiet
@failures_told
def command(
    project: str,
    stack: str,
    do: bool,
    dry_run: bool,
    topic: str,
    webhook_env: str,
    window: datetime.timedelta,
    endpoint: str | None,
    form: str,
    prices: Path | None,
    as_of: datetime.date | None,
    output_file: Path | None,
    quiet: bool,
) -> ExitCode:
    """Look at a project once, tell what is lost, and with --apply do what is safe.

    Findings go to Pub/Sub and a webhook, figures to metrics of its own (custom.googleapis.com/spotrail/...), on which
    alerts can fire. The same findings are told once a day. With --apply it lowers throughput that is not used, keeps
    the schedules of volumes, and ends slices past their ttl; nothing else, and only of --stack.

    Exits 0 when it did its work, whatever it found; 4 where a part of the project could not be seen, told or done; 5
    where nothing could be read, or nobody could be told.  Needs: pip install 'spotrail[live]'.

    \b
    Examples:
      spotrail guard --project my-project --dry-run
      spotrail guard --project my-project --stack dev --apply --topic projects/my-project/topics/dev-findings
    """
    from policies.audit.live.access import Access
    from policies.audit.terms import Terms
    from policies.guard.publishing import check_topic
    from policies.guard.running import Orders, run_guard
    from policies.prices.book import load_book, shipped_book

    if do and not stack:
        raise click.UsageError("--apply touches only what is labelled env=NAME: name the stack with --stack NAME.")
    orders = Orders(
        project=project,
        stack=stack,
        terms=Terms(window=window),
        book=load_book(prices) if prices else shipped_book(),
        as_of=as_of,
        apply=do,
        dry_run=dry_run,
        topic=check_topic(topic) if topic else "",
        webhook=_webhook(webhook_env) if webhook_env else None,
    )
    run = run_guard(orders, Access(endpoint=endpoint), output.talk(quiet=quiet))
    with output.opened(output_file) as stream:
        stream.write(_json(run) if form == "json" else "".join(f"{output.printable(line)}\n" for line in _lines(run)))
    for trouble in run.troubles:
        click.echo(f"error: {output.printable(trouble)}", err=True)
    return run.exit_code


def _webhook(variable: str) -> Webhook:
    from policies.guard.webhook import Webhook

    url = os.environ.get(variable, "").strip()
    if not url:
        raise click.BadParameter(f"the variable {variable} is not set, or empty", param_hint="--webhook-env")
    return Webhook(name=variable, url=url)


def _lines(run: Run) -> Iterator[str]:
    from policies.guard.telling import summary

    yield from summary(run.report).splitlines()
    tried = {result.step.text for result in run.report.results}
    for text in run.intent.texts:
        if text not in tried:
            yield f"would: {text}"
    yield f"told: {', '.join(run.told)}" if run.told else f"told nobody: {run.silent or 'nobody could be reached'}"


def _json(run: Run) -> str:
    from policies.guard.telling import run_document

    document = {
        **run_document(run.report),
        "would": list(run.intent.texts),
        "told": list(run.told),
        "troubles": list(run.troubles),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
