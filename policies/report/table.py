"""The plan as a table for people: the answer first, the reason beside every doubt, the next command at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, final

from rich.console import Console
from rich.text import Text

from policies.estimate.model import CostComponent, Estimate, OneOff, ResourceEstimate, UnknownInput, Unpriced
from policies.money import Amount, dearness
from policies.report.figures import HOURLY, UNIT, counted, money, quantity, rules_passed
from policies.report.layout import Column, Page, clean
from policies.report.names import name_of
from policies.report.plan import PlanReport, QuotaNeed, monthly_sum_is_rounded
from policies.rules.model import Finding, Severity

MARK: Final = "*"
"""Beside a price that is stale or undated."""
MOST: Final = 20
"""Findings of one rule that are written out."""
NOTHING: Final = {Column.MONTHLY: "0.00"}
"""The figures of what bills by usage and is not used."""
_KEPT: Final = 8192
"""Rows that are kept to be shown again."""
_Part: TypeAlias = CostComponent | Unpriced | UnknownInput
UNKNOWN: Final = {Column.HOURLY: "?", Column.MONTHLY: "?"}
SIGNS: Final = {Severity.ERROR: ("✗", "red"), Severity.WARNING: ("▲", "yellow"), Severity.INFO: ("·", "")}


def print_plan(report: PlanReport, console: Console, *, show_passed: bool = False) -> None:
    """Print the plan in the width of the console; in colour only where the console is a terminal."""
    for line in plan_lines(report, console.width, show_passed=show_passed):
        console.print(line, soft_wrap=True, highlight=False)


def plan_lines(report: PlanReport, width: int, *, show_passed: bool = False) -> Iterator[Text]:
    """The plan, line by line, each at most `width` cells wide from a width of 48 up."""
    page = Page(width)
    yield from _heading(report, page)
    yield Text()
    yield from _answer(report, page)
    yield Text()
    yield from priced_rows(report.estimate, page)
    yield from free_line(report.estimate, page)
    yield Text()
    yield from doubts(report.estimate, page)
    yield from note_lines(report.estimate.notes, page)
    for once in report.estimate.one_off:
        yield from _one_off(once, page)
    yield from _quotas(report.quotas, page)
    yield Text()
    yield from finding_list(report.findings, len(report.passed), page)
    if show_passed:
        for title in report.passed:
            yield from page.paragraph(f"✓ {title}", style="green", hanging="   ")
    if report.next_steps:
        yield Text()
        yield from page.paragraph(f"Next: {' · '.join(report.next_steps)}", hanging="       ")


def _heading(report: PlanReport, page: Page) -> Iterator[Text]:
    dated = f"prices of {report.book_as_of}" if report.book_as_of else "prices without a date"
    place = f"{report.place} · " if report.place else ""
    yield from page.ends(f"spotrail plan {clean(report.stack)}", clean(f"{place}{dated}"), "bold")


def _answer(report: PlanReport, page: Page) -> Iterator[Text]:
    estimate = report.estimate
    if estimate.nothing_known:
        yield Text(f" {clean(report.stack)}: not known", "bold")
    else:
        least = "" if estimate.complete else "at least "
        amount = estimate.amount
        left = f" {clean(report.stack)} costs {least}{money(amount.monthly)} {estimate.currency} /month"
        yield from page.ends(left, f"{money(amount.hourly)} /h  {money(amount.daily)} /day", "bold")
    if report.comparison is not None:
        dear = report.comparison.on_demand
        beside = "not known" if dear is None else money(dear.monthly)
        said = f"of which spot TPU {money(report.comparison.spot.monthly)} · the same on demand: {beside}"
        yield from page.paragraph(said)
    for number, words in enumerate(report.usage):
        lead = " usage: " if number == 0 else " " * 8
        yield from page.paragraph(words, lead, "dim", hanging=" " * 8)


def priced_rows(estimate: Estimate, page: Page) -> Iterator[Text]:
    """What bills, dearest first, with its components, and the total below."""
    yield from page.row(" Resource", {column: column.heading for column in page.columns}, "bold")
    priced = [found for found in estimate.resources if not found.free]
    place, kept = dearness(found.amount for found in priced), _Rows()
    for found in sorted(priced, key=lambda each: (each.nothing_known, place(each.amount))):
        yield from _resource(found, page, kept)
    figures = UNKNOWN if estimate.nothing_known else _money(estimate.amount)
    rounded = " (rounded: of the exact parts)" if monthly_sum_is_rounded(estimate) else ""
    yield from page.row(f" total{'' if estimate.complete else ', at least'}{rounded}", figures, "bold")


def _resource(found: ResourceEstimate, page: Page, kept: _Rows) -> Iterator[Text]:
    name = f" {found.resource.name}  {found.title}".rstrip()
    if found.complete and not found.amount:
        yield from page.row(name, NOTHING, note=_unused(found))
        return
    yield from page.row(name, UNKNOWN if found.nothing_known else _money(found.amount), "bold")
    parts: tuple[_Part, ...] = (*found.components, *found.unpriced, *found.unknown)
    for number, part in enumerate(parts, start=1):
        yield from kept.of(part, page, last=number == len(parts))


@final
class _Rows:
    """Makes the rows of the parts of resources, those of a part that many resources share once."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, bool], tuple[Text, ...]] = {}

    def of(self, part: _Part, page: Page, *, last: bool) -> tuple[Text, ...]:
        """The rows of one part; the estimate keeps its parts, so each has its id for itself."""
        found = self._kept.get((id(part), last))
        if found is None:
            text, figures, style, note = _figures(part, page)
            found = tuple(page.row(f" {'└' if last else '├'} {text}", figures, style, note=note))
            if len(self._kept) < _KEPT:
                self._kept[id(part), last] = found
        return found


def _figures(part: _Part, page: Page) -> tuple[str, Mapping[Column, str], str, str]:
    """Name, figures, style and note of a part of a resource."""
    if isinstance(part, UnknownInput):
        return part.path, {Column.MONTHLY: "?"}, "yellow", ""
    if isinstance(part, Unpriced):
        amount = {} if part.quantity is None else {Column.QUANTITY: quantity(part.quantity), Column.UNIT: part.unit}
        return page.compact(part.item, amount), {**amount, Column.MONTHLY: "?"}, "yellow", ""
    if not part.quantity:
        return part.name, NOTHING, "", part.note
    mark = "" if part.freshness.trusted else MARK
    figures = {
        Column.QUANTITY: quantity(part.quantity),
        Column.UNIT: part.unit,
        Column.UNIT_PRICE: f"{money(part.unit_price, UNIT)} {mark or ' '}",
        **_money(part.amount),
    }
    return page.compact(part.name, figures, mark), figures, "", part.note


def _money(amount: Amount) -> Mapping[Column, str]:
    return {Column.HOURLY: money(amount.hourly, HOURLY), Column.MONTHLY: money(amount.monthly)}


def _unused(found: ResourceEstimate) -> str:
    """Which usage would make it bill: `set usage.datasets.gib, .churn_gib_per_day`."""
    first, *rest = dict.fromkeys(line.note for line in found.components if line.note) or [""]
    return ", ".join((first, *(f".{note.rpartition('.')[2]}" for note in rest)))


def free_line(estimate: Estimate, page: Page) -> Iterator[Text]:
    """What costs nothing, counted by kind."""
    kinds = Counter(found.title for found in estimate.resources if found.free)
    if kinds:
        shown = ", ".join(counted(number, kind) for kind, number in kinds.items())
        yield from page.paragraph(f"free: {shown}", style="dim", hanging="       ")


def doubts(estimate: Estimate, page: Page, *, marked: bool = True) -> Iterator[Text]:
    """What the total does not count and, where prices are `marked`, what the mark says."""
    if estimate.complete:
        yield from page.paragraph("Not counted: nothing.")
    else:
        yield from page.paragraph("Not counted, so the total is a lower bound:", style="yellow")
        for found in estimate.resources:
            for reason in (*(part.reason for part in found.unpriced), *_hidden(found)):
                yield from page.paragraph(f"{found.resource.name}: {reason}", "   ", hanging="     ")
    if estimate.doubtful and marked:
        yield from page.paragraph(f"{MARK} stale or undated: used, and no ground for a budget", hanging="   ")


def note_lines(notes: Iterable[str], page: Page) -> Iterator[Text]:
    """What was noted, one paragraph each."""
    for note in notes:
        yield from page.paragraph(f"Note: {note}", hanging="       ")


def _hidden(found: ResourceEstimate) -> Iterator[str]:
    return (f"{part.path}: {part.reason}" for part in found.unknown)


def _one_off(once: OneOff, page: Page) -> Iterator[Text]:
    least = "at least " if once.unpriced else ""
    missing = f"; not counted: {', '.join(part.item for part in once.unpriced)}" if once.unpriced else ""
    note = f" ({once.note})" if once.note else ""
    yield from page.paragraph(f"One-off: {once.name} {least}{money(once.cost)}{note}{missing}", hanging="   ")


def _quotas(needs: Iterable[QuotaNeed], page: Page) -> Iterator[Text]:
    for number, need in enumerate(needs):
        if number == 0:
            yield from page.paragraph("Quota needed, beside what a new project has:")
        style = "" if need.enough else "yellow"
        note = f" · {need.note}" if need.note else ""
        said = f"{need.needed:,} {need.metric} in {need.location}: {_default(need)}{note}"
        yield from page.paragraph(said, "   ", style, hanging="     ")


def _default(need: QuotaNeed) -> str:
    if need.default is None:
        return "its default is not known, look first"
    return f"{need.default:,}" if need.enough else f"{need.default:,}, ask first"


def finding_list(findings: Sequence[Finding], passed: int, page: Page) -> Iterator[Text]:
    """The findings, counted and one by one, then what is waived."""
    open_ones = [finding for finding in findings if not finding.waived]
    counts = f"{counted_findings(open_ones) or 'none'}, {rules_passed(passed)}"
    yield from page.paragraph(f"Findings: {counts}", style="bold")
    yield from open_findings(open_ones, page)
    for finding in findings:
        if finding.waived:
            yield from page.paragraph(f"waived: {subject(finding)} ({finding.waived})", style="dim", hanging="   ")


def open_findings(findings: Iterable[Finding], page: Page) -> Iterator[Text]:
    """The findings one by one, and of each rule no more than `MOST`: what it says of the others, it said already."""
    told: Counter[str] = Counter()
    for finding in findings:
        told[finding.rule.id] += 1
        if told[finding.rule.id] <= MOST:
            yield from finding_lines(finding, page)
    for rule, number in told.items():
        if number > MOST:
            yield from page.paragraph(f"… {rule}: {number - MOST:,} more, all of them in --format json", hanging="   ")


def counted_findings(findings: Sequence[Finding]) -> str:
    """`1 error, 2 warnings`; empty where there are none."""
    return ", ".join(
        counted(number, severity.value) if number > 1 else f"1 {severity.value}"
        for severity in Severity
        if (number := sum(finding.severity is severity for finding in findings))
    )


def finding_lines(finding: Finding, page: Page) -> Iterator[Text]:
    """One finding: what it is, what it costs, what to do."""
    sign, style = SIGNS[finding.severity]
    worth = "" if finding.monthly is None else f"{money(finding.monthly.monthly)} /month"
    worth = "" if worth in finding.message else f"{worth}. "
    yield from page.paragraph(f"{sign} {subject(finding)}  {finding.message}", style=style, hanging="   ")
    yield from page.paragraph(f"{worth}{finding.rule.remediation}", "   ")


def subject(finding: Finding) -> str:
    """`DISK-LIMITS  llama`: the rule and the resource."""
    return f"{finding.rule.id}  {name_of(finding.urn)}"
