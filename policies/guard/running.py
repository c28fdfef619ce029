"""A run of the guard: look, judge, do what is allowed, tell, and leave figures behind.

The figures come last, `last_run` among them: a run that broke off before has not run.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, final

from policies.audit.judge import judge, minute_candidates
from policies.audit.live.access import Access, Clients
from policies.audit.live.failures import CloudError
from policies.audit.live.recording import collect
from policies.audit.model import Audit
from policies.audit.record import Record
from policies.audit.remedies.applying import Outcome, Result
from policies.audit.remedies.hands import GoogleHands
from policies.audit.terms import Terms
from policies.exit_codes import ExitCode
from policies.guard.acting import Intent, act, intend
from policies.guard.gauges import Gauge
from policies.guard.measuring import figures
from policies.guard.metrics import last_told, write_figures
from policies.guard.publishing import publish
from policies.guard.telling import Report, digest, messages, must_tell, run_document, summary
from policies.guard.webhook import Webhook, WebhookError, post
from policies.prices.book import PriceBook

POLL_S: Final = 5.0


@final
@dataclass(frozen=True, kw_only=True)
class Orders:
    """What a run is to do."""

    project: str
    stack: str
    """Whose things may be touched, and the label of the metrics."""
    terms: Terms
    book: PriceBook
    as_of: datetime.date | None = None
    """None: the day of the run."""
    apply: bool = False
    dry_run: bool = False
    """Look and judge only: nothing is changed, told or written."""
    topic: str = ""
    """`projects/p/topics/t`; empty: none."""
    webhook: Webhook | None = None
    poll_s: float = POLL_S
    """Between two looks at a change that takes its time."""


@final
@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run came to."""

    report: Report
    intent: Intent
    told: tuple[str, ...] = ()
    """Whom: `Pub/Sub`, `webhook`."""
    silent: str = ""
    """Why nobody was told, where that is as it should be."""
    troubles: tuple[str, ...] = ()
    """What could not be told, written or done."""
    mute: bool = False
    """Whether somebody had to be told, and nobody could be."""

    @property
    def audit(self) -> Audit:
        """What was found."""
        return self.report.audit

    @property
    def exit_code(self) -> ExitCode:
        """FINE where the guard did its work, whatever it found; UNDECIDED where a part of the project could not be
        seen, told, written or done; CLOUD_FAILED where nobody could be told."""
        if self.mute:
            return ExitCode.CLOUD_FAILED
        return ExitCode.UNDECIDED if self.audit.missing or self.troubles else ExitCode.FINE


@final
@dataclass(kw_only=True)
class _Telling:
    """Whom a run told, and whom it could not reach."""

    told: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def tell(self, name: str, call: Callable[[], object]) -> None:
        try:
            call()
        except (CloudError, WebhookError) as error:
            self.troubles.append(f"{name}: {error}")
        else:
            self.told.append(name)


def run_guard(
    orders: Orders, access: Access, say: Callable[[str], None], *, now: datetime.datetime | None = None
) -> Run:
    """Run the guard once. `say` gets lines of progress; `now` is the time that counts, by default the clock's.

    Raises CloudError where nothing of the project could be read, and InputError where Google's clients are not
    installed.
    """
    record = collect(access, orders.project, orders.terms, say, now=now, candidates=minute_candidates).record
    audit = judge(record, orders.terms, orders.book, _day(orders, record))
    intent = intend(audit, record, orders.stack, orders.book, _day(orders, record))
    report = Report(stack=orders.stack, audit=audit, refused=intent.refused)
    if orders.dry_run:
        return Run(report=report, intent=intent, silent="a dry run tells nobody", troubles=intent.doubts)
    clients = Clients(access, say=say)
    results = tuple(act(intent, GoogleHands(clients, poll_s=orders.poll_s))) if orders.apply else ()
    report = Report(stack=orders.stack, audit=audit, results=results, refused=intent.refused)
    return _finished(orders, clients, record, intent, report)


def _finished(orders: Orders, clients: Clients, record: Record, intent: Intent, report: Report) -> Run:
    """Tell, write, and say how it went."""
    now = record.recorded_at
    before = last_told(clients, orders.project, orders.stack, now)
    wanted = must_tell(report, before)
    telling = _Telling()
    if wanted:
        _tell(telling, orders, clients, report)
    values = dict(figures(report.audit, record, orders.terms, report.results))
    # What reached nobody is told again by the next run.
    if not telling.troubles:
        values[Gauge.TOLD] = Decimal(digest(report))
    written: list[str] = []
    try:
        write_figures(clients, orders.project, orders.stack, values, now)
    except CloudError as error:
        written.append(f"metrics: {error}")
    addressed = bool(orders.topic or orders.webhook)
    return Run(
        report=report,
        intent=intent,
        told=tuple(telling.told),
        silent="" if wanted and addressed else _why_silent(report, addressed=addressed),
        troubles=(*intent.doubts, *map(_failure, _failed(report)), *telling.troubles, *written),
        mute=wanted and addressed and not telling.told,
    )


def _tell(telling: _Telling, orders: Orders, clients: Clients, report: Report) -> None:
    webhook = orders.webhook
    if orders.topic:
        told = messages(report)
        telling.tell("Pub/Sub", lambda: publish(clients, orders.topic, told, orders.stack))
    if webhook is not None:
        telling.tell("webhook", lambda: post(webhook, {"text": summary(report), **run_document(report)}))


def _why_silent(report: Report, *, addressed: bool) -> str:
    if not addressed:
        return "neither a topic nor a webhook is given"
    return "nothing was found" if report.empty else "it was told already today, and nothing has changed"


def _failed(report: Report) -> list[Result]:
    return [result for result in report.results if result.outcome is Outcome.FAILED]


def _failure(result: Result) -> str:
    return f"{result.step.text}: {result.outcome.value}: {result.why}"


def _day(orders: Orders, record: Record) -> datetime.date:
    return orders.as_of or record.recorded_at.astimezone(datetime.UTC).date()
