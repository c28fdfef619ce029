"""`spotrail audit`: money that runs idle, found in a live project or in a recorded week, and what would stop it."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import click

from scripts import audit_options, options, output, remedies
from scripts.cloud import failures_told

if TYPE_CHECKING:
    from rich.text import Text

    from policies.audit.live.access import Access
    from policies.audit.model import Audit
    from policies.audit.record import Record
    from policies.audit.remedies.model import RemedyPlan
    from policies.audit.schedule import Schedule
    from policies.audit.terms import Terms
    from policies.exit_codes import ExitCode
    from policies.prices.book import PriceBook

TABLE: Final = "table"
WRITERS: Final = {
    "json": ("policies.report.audit_json", "audit_json"),
    "markdown": ("policies.report.audit_markdown", "audit_markdown"),
    "html": ("policies.report.audit_html", "audit_html"),
    "csv": ("policies.report.audit_csv", "audit_csv"),
}
"""For each format but the table, the function that writes an audit in it."""


@final
class Moment(click.ParamType[datetime.datetime]):
    """A time with its zone."""

    name = "TIME"

    def convert(
        self, value: str | datetime.datetime, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime.datetime:
        from policies.audit.times import instant
        from policies.errors import InputError

        if isinstance(value, datetime.datetime):
            return value
        try:
            return instant(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


@click.command(name="audit", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--project", metavar="ID", help="The Google Cloud project to look at, with your credentials.")
@click.option(
    "--from",
    "source",
    metavar="FILE",
    help="Look at what --record kept instead: the same verdicts, without a cloud. Or at a plan of --plan: it is shown, "
    "and with --apply done.",
)
@click.option(
    "--record",
    "record_file",
    type=options.Writable(),
    metavar="FILE",
    help="Keep what was seen in FILE, for --from; nothing secret is in it.",
)
@click.option(
    "--window",
    type=options.Span(),
    default="7d",
    show_default=True,
    help="Time to look back on, as 7d or 36h; at least 24h.",
)
@click.option(
    "--grace",
    type=options.Span(),
    default="24h",
    show_default=True,
    help="So long a volume may be attached to nothing.",
)
@click.option(
    "--per-vm-cap",
    type=click.IntRange(min=1),
    metavar="MIB/S",
    help="What one machine can read of a volume.  [default: 2400, measured on v7x]",
)
@click.option(
    "--schedule",
    "schedules",
    multiple=True,
    metavar="VOLUME=TEXT",
    help='High in office hours, else at the floor: --schedule "llama=mon-fri 08:00-18:00 Europe/Berlin 1200".',
)
@click.option(
    "--format",
    "form",
    type=click.Choice((TABLE, *WRITERS), case_sensitive=False),
    default=TABLE,
    show_default=True,
    help="A table or a page for people, markdown for an issue; json is spotrail.audit/1.",
)
@click.option("--all", "everything", is_flag=True, help="List in the table what is used as it should be, too.")
@click.option(
    "--plan", "plan_file", type=options.Writable(), metavar="FILE", help="Write the remedies into FILE, to review them."
)
@click.option("--apply", "do", is_flag=True, help="Show each step of the remedies, and do it after a yes.")
@click.option("--yes", is_flag=True, help="With --apply: do not ask.")
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="NAME",
    help="With --plan or --apply: touch only this, by name or link; may be repeated. Needed for what is labelled "
    "protect=true or not managed-by=spotrail, and for snapshots and images.",
)
@click.option(
    "--stack", default="", metavar="NAME", help="With --plan or --apply: touch only what is labelled env=NAME."
)
@click.option("--endpoint", metavar="URL", help="A Google Cloud on this machine: http://127.0.0.1:8080.")
@click.option("--now", type=Moment(), help="With --endpoint: what its clock says.")
@options.prices
@click.option(
    "--as-of",
    type=options.Day(),
    show_default="the day of the record",
    help="The day from which the age of prices is counted.",
)
@options.output
@options.quiet
@failures_told
def command(
    project: str | None,
    source: str | None,
    record_file: Path | None,
    window: datetime.timedelta,
    grace: datetime.timedelta,
    per_vm_cap: int | None,
    schedules: tuple[str, ...],
    form: str,
    everything: bool,
    plan_file: Path | None,
    do: bool,
    yes: bool,
    resources: tuple[str, ...],
    stack: str,
    endpoint: str | None,
    now: datetime.datetime | None,
    prices: Path | None,
    as_of: datetime.date | None,
    output_file: Path | None,
    quiet: bool,
) -> ExitCode:
    """Find the money that runs idle in a project, worst first, and what would stop it.

    A volume of Hyperdisk ML bills its throughput around the clock, read or not. The audit reads the inventory and the
    metrics of a week, and says of each volume, slice, address, snapshot and bucket what it wastes: per month, and so
    far. Missing telemetry is not idleness. Nothing is changed without --apply.

    Exits 0 where nothing is wasted, 3 where something is, 4 where something could not be seen or judged, 5 where
    nothing could be read. With --apply: 0 where every step ended well, 4 where one was declined or refused, 5 where
    one failed.  Needs: pip install 'spotrail[live]'; --from alone does not.

    \b
    Examples:
      spotrail audit --project my-project
      spotrail audit --project my-project --record week.json
      spotrail audit --from week.json --format html --output week.html
      spotrail audit --from week.json --plan remedies.json
      spotrail audit --from remedies.json --apply
    """
    from policies.audit.files.record_file import read_record
    from policies.audit.live.access import Access
    from policies.audit.remedies.planning import Choice, plan_remedies
    from policies.audit.scheduling import read_schedules
    from policies.prices.book import load_book, shipped_book

    context = click.get_current_context()
    audit_options.check(context)
    hands = remedies.Applying(access=Access(endpoint=endpoint), now=now, yes=yes, quiet=quiet)
    if (saved := remedies.saved_plan(source)) is not None:
        audit_options.check_plan_options(context)
        return hands.apply(saved) if do else remedies.show_plan(saved, output_file)
    # What is wrong with these is said before minutes are spent on a project.
    terms, wanted = _terms(window, grace, per_vm_cap), read_schedules(schedules)
    book = load_book(prices) if prices else shipped_book()
    record = (
        read_record(source) if source is not None else _collected(project or "", hands.access, terms, now, quiet=quiet)
    )
    if record_file is not None:
        _write_record(record, record_file)
    audit = _judged(record, terms, book, as_of, wanted)
    choice = Choice(resources=resources, stack=stack, scheduled=tuple(wanted))
    plan = plan_remedies(audit, record, choice) if do or plan_file else None
    steps = () if do else tuple(audit_options.next_steps(context, remedies=_has_remedies(audit)))
    _write(audit, form, output_file, everything=everything, next_steps=steps)
    if plan is not None and plan_file is not None:
        remedies.write_plan(plan, plan_file)
    return hands.apply(plan) if plan is not None and do and plan.measures else _left(audit, plan, do=do)


def _left(audit: Audit, plan: RemedyPlan | None, *, do: bool) -> ExitCode:
    """The exit code where nothing is done; with --apply after a word on why that is."""
    from policies.audit.outcome import audit_exit

    if plan is not None and do:
        remedies.tell_plan(plan)
    return audit_exit(audit)


def _has_remedies(audit: Audit) -> bool:
    return any(verdict.remedy is not None for verdict in audit.verdicts)


def _terms(window: datetime.timedelta, grace: datetime.timedelta, per_vm_cap: int | None) -> Terms:
    from policies.audit.terms import Terms

    terms = Terms(window=window, grace=grace)
    return terms if per_vm_cap is None else dataclasses.replace(terms, per_vm_mibps=per_vm_cap)


def _collected(project: str, access: Access, terms: Terms, now: datetime.datetime | None, *, quiet: bool) -> Record:
    """What is seen of the live project. Says on standard error what it is at, and in the end what it took."""
    from policies.audit.judge import minute_candidates
    from policies.audit.live.recording import collect

    with output.progress_lines(f"reading {project}", quiet=quiet) as say:
        found = collect(access, project, terms, say, now=now, candidates=minute_candidates)
    series = sum(map(len, found.record.metrics.values()))
    resources = sum(map(len, found.record.inventory.values()))
    if not quiet:
        calls = sum(found.calls.values())
        click.echo(f"read {resources:,} resources and {series:,} time series in {calls:,} API calls", err=True)
    return found.record


def _write_record(record: Record, path: Path) -> None:
    from policies.audit.files.record_file import write_record

    with output.opened(path, "--record") as stream:
        write_record(record, stream)


def _write(audit: Audit, form: str, output_file: Path | None, *, everything: bool, next_steps: tuple[str, ...]) -> None:
    from policies.report.audit_table import audit_lines

    def lines(width: int) -> Iterator[Text]:
        return audit_lines(audit, width, next_steps=next_steps, everything=everything)

    with output.opened(output_file) as stream:
        if form == TABLE:
            output.write_lines(lines, stream)
        else:
            module, function = WRITERS[form]
            stream.write(getattr(import_module(module), function)(audit))


def _judged(
    record: Record, terms: Terms, book: PriceBook, as_of: datetime.date | None, wanted: Mapping[str, Schedule]
) -> Audit:
    from policies.audit.judge import judge
    from policies.audit.pricing import Pricing
    from policies.audit.scheduling import scheduled

    day = as_of or record.recorded_at.astimezone(datetime.UTC).date()
    audit = judge(record, terms, book, day)
    return scheduled(audit, record, wanted, Pricing(record=record, book=book, as_of=day)) if wanted else audit
