"""What `estimate`, `diff` and `check` say to people: the answer first, the reason beside every doubt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from policies.budget import BudgetVerdict, Outcome
from policies.estimate.model import Estimate
from policies.exit_codes import ExitCode
from policies.report.change_rows import change_rows
from policies.report.figures import HOURLY, money, rules_passed
from policies.report.headline import signed
from policies.report.layout import Page, clean
from policies.report.stack import StackReport
from policies.report.table import (
    counted_findings,
    doubts,
    finding_list,
    free_line,
    note_lines,
    open_findings,
    priced_rows,
    subject,
)
from policies.rules.model import Severity

WORDS: Final = {
    ExitCode.FINE: ("PASS", "bold green"),
    ExitCode.VIOLATED: ("FAIL", "bold red"),
    ExitCode.UNDECIDED: ("UNDECIDED", "bold yellow"),
}
"""What a judgement is called, and its style."""
OUTCOMES: Final = {
    ExitCode.FINE: Outcome.KEPT,
    ExitCode.VIOLATED: Outcome.VIOLATED,
    ExitCode.UNDECIDED: Outcome.UNDECIDED,
}
BUDGET_SIGNS: Final = {Outcome.VIOLATED: ("✗", "red"), Outcome.UNDECIDED: ("?", "yellow"), Outcome.KEPT: ("✓", "green")}


def estimate_lines(report: StackReport, width: int, *, command: str = "estimate") -> Iterator[Text]:
    """The price of a stack or of a change of one, line by line, each at most `width` cells wide from 48 up."""
    page = Page(width)
    yield from _heading(report, page, command)
    yield Text()
    yield from _answer(report, page)
    yield Text()
    if report.change.before is None:
        yield from priced_rows(report.change.after, page)
        yield from free_line(report.change.after, page)
    else:
        yield from change_rows(report.change, page)
    yield Text()
    yield from doubts(report.change.after, page, marked=report.change.before is None)
    yield from _notes(report, page)
    if report.findings or report.passed:
        yield Text()
        yield from finding_list(report.findings, len(report.passed), page)
    yield from _next(report, page)


def check_lines(report: StackReport, width: int) -> Iterator[Text]:
    """The judgement of a stack: the verdict with its reason, the budgets, the findings, and what was counted."""
    page = Page(width)
    word, style = WORDS[report.verdict]
    yield from page.paragraph(f"{word}  {report.title}  {reason(report)}", " ", style, hanging="   ")
    told = _deciding(report)
    for verdict in report.budgets:
        if verdict is not told:
            yield from _budget(verdict, page)
    open_ones = [finding for finding in report.findings if not finding.waived]
    yield from open_findings(open_ones, page)
    waived = [finding for finding in report.findings if finding.waived]
    for finding in waived:
        yield from page.paragraph(f"waived: {subject(finding)} ({finding.waived})", style="dim", hanging="   ")
    hidden = f"{len(waived)} waived" if waived else ""
    counts = (counted_findings(open_ones) or "no findings", hidden, rules_passed(len(report.passed)))
    yield from page.paragraph(", ".join(filter(None, counts)), style="bold")
    if not report.change.after.complete:
        yield from doubts(report.change.after, page, marked=False)
    yield from _notes(report, page)
    yield from _next(report, page)


def reason(report: StackReport) -> str:
    """Why the verdict is what it is: the figure, and what would decide or mend it."""
    budget = _deciding(report)
    if budget is not None:
        return budget.message
    price = _price(report)
    if report.verdict is ExitCode.UNDECIDED:
        return f"{price}; {next(_open_questions(report), 'something is not known')}"
    errors = [each for each in report.findings if each.severity is Severity.ERROR and not each.waived]
    return f"{price}; {counted_findings(errors)}" if errors else price


def _deciding(report: StackReport) -> BudgetVerdict | None:
    """The budget that the verdict is told by: the first of the same outcome."""
    return next((each for each in report.budgets if each.outcome is OUTCOMES[report.verdict]), None)


def _open_questions(report: StackReport) -> Iterator[str]:
    """What keeps a judge from deciding, and what would help."""
    estimate = report.change.after
    for found in estimate.resources:
        for part in found.unpriced:
            yield f"{found.resource.name}: {part.reason}"
        for hidden in found.unknown:
            yield f"{found.resource.name}: {hidden.path}: {hidden.reason}"
    for finding in report.findings:
        if not finding.decided and not finding.waived:
            yield f"{subject(finding)}: {finding.message}"
    if estimate.doubtful:
        items = dict.fromkeys(line.item for line in estimate.doubtful)
        yield f"prices are stale or undated ({', '.join(items)}); --allow-stale takes them as they are"


def _price(report: StackReport) -> str:
    change = report.change
    if not change.whole and change.delta is not None:
        return f"{signed(change.delta)} {change.after.currency} /month by this change, the total is not known"
    return _total(change.after)


def _total(estimate: Estimate) -> str:
    if estimate.nothing_known:
        return "not known"
    return f"{'' if estimate.complete else 'at least '}{money(estimate.amount.monthly)} {estimate.currency} /month"


def _heading(report: StackReport, page: Page, command: str) -> Iterator[Text]:
    dated = f"prices of {report.book_as_of}" if report.book_as_of else "prices without a date"
    left = clean(f"spotrail {command} {report.place}")
    yield from page.ends(left, clean(f"{report.title} · {report.kind.value} · {dated}"), "bold")


def _answer(report: StackReport, page: Page) -> Iterator[Text]:
    change = report.change
    amount = change.after.amount
    if change.before is None or change.delta is None:
        left = f" {clean(report.title)} costs {_total(change.after)}"
        right = "" if change.after.nothing_known else f"{money(amount.hourly, HOURLY)} /h  {money(amount.daily)} /day"
        yield from page.ends(left, right, "bold")
    else:
        bounds = "" if change.exact else ", of the lower bounds"
        worth = "not known" if change.nothing_known else f"{signed(change.delta)} {change.after.currency} /month"
        told = f"{report.title}: {worth} by this change{bounds}"
        yield from page.paragraph(told, " ", "bold", hanging="   ")
        if change.whole:
            yield from page.paragraph(f"before {_total(change.before)} · after {_total(change.after)}")
    for number, words in enumerate(report.usage):
        yield from page.paragraph(words, " usage: " if number == 0 else " " * 8, "dim", hanging=" " * 8)


def _notes(report: StackReport, page: Page) -> Iterator[Text]:
    yield from note_lines(dict.fromkeys((*report.notes, *report.change.notes)), page)


def _budget(verdict: BudgetVerdict, page: Page) -> Iterator[Text]:
    sign, style = BUDGET_SIGNS[verdict.outcome]
    detail = verdict.name.partition(" ")[2]
    named = f"BUDGET-{verdict.scope.name}{f' {detail}' if detail else ''}"
    yield from page.paragraph(f"{sign} {named}  {verdict.message}", style=style, hanging="   ")


def _next(report: StackReport, page: Page) -> Iterator[Text]:
    if report.next_steps:
        yield Text()
        yield from page.paragraph(f"Next: {' · '.join(report.next_steps)}", hanging="       ")
