"""A report as one HTML page that needs nothing else: sortable, searchable, light and dark, with no outside resource."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

from policies.budget import BudgetVerdict, Outcome
from policies.estimate.change import ChangedResource
from policies.estimate.model import ResourceEstimate
from policies.exit_codes import ExitCode
from policies.money import decimal_of
from policies.report.escapes import line
from policies.report.figures import UNIT, money, quantity
from policies.report.headline import ROUNDED, difference, doubts, headline, side
from policies.report.issues import VERDICTS, Issue, counts, issues
from policies.report.names import name_of
from policies.report.page import ranks, rendered
from policies.report.stack import StackReport

TITLES: Final = {
    "name": "Resource",
    "location": "Place",
    "before": "Before",
    "after": "After",
    "delta": "Difference",
}
KINDS: Final = {Outcome.VIOLATED: "violated", Outcome.UNDECIDED: "undecided", Outcome.KEPT: "kept"}
VERDICT_KINDS: Final = {ExitCode.VIOLATED: "violated", ExitCode.UNDECIDED: "undecided", ExitCode.FINE: "kept"}


def stack_html(report: StackReport) -> str:
    """The page. Text goes in escaped; the resources go in as data, which its script sets as text."""
    return rendered(
        _data(report),
        headline=line(headline(report)),
        project=line(report.project),
        verdict=VERDICTS[report.verdict],
        verdict_kind=VERDICT_KINDS[report.verdict],
        counts=counts(report),
        doubts=list(doubts(report)),
        budgets=[_budget(verdict) for verdict in report.budgets],
        issues=[_issue(issue) for issue in issues(report)],
        columns=_columns(report),
        notes=[line(note) for note in _notes(report)],
        dated=f"prices of {report.book_as_of}" if report.book_as_of else "prices without a date",
        currency=report.change.after.currency,
        rounded=ROUNDED,
    )


def _columns(report: StackReport) -> list[dict[str, Any]]:
    titles = TITLES if report.change.before is not None else {**TITLES, "after": "Per month"}
    figures = _figures(report)
    return [{"key": key, "title": titles[key], "number": key in figures} for key in ("name", "location", *figures)]


def _figures(report: StackReport) -> tuple[str, ...]:
    """The columns to the right: both sides only where there are two."""
    return ("after",) if report.change.before is None else ("before", "after", "delta")


def _notes(report: StackReport) -> Iterator[str]:
    yield from (*report.change.notes, *report.notes, *(f"usage: {words}" for words in report.usage))


def _data(report: StackReport) -> dict[str, Any]:
    resources = report.change.resources
    ranked = {
        "before": ranks([_amount(each.before) for each in resources]),
        "after": ranks([_amount(each.after) for each in resources]),
        "delta": ranks([None if difference(each) == "?" else each.delta.per_month for each in resources]),
    }
    most = max((each.after.amount.per_month for each in resources if each.after), default=Fraction(0))
    return {
        "columns": _figures(report),
        "bar": "after",
        "order": "after" if report.change.before is None else "delta",
        "rows": [
            {**_row(each, most), "rank": {key: places[number] for key, places in ranked.items()}}
            for number, each in enumerate(resources)
        ],
    }


def _amount(found: ResourceEstimate | None) -> Fraction | None:
    """By what a side is sorted: what does not stand comes below what costs nothing."""
    if found is None:
        return Fraction(-1)
    return None if found.nothing_known else found.amount.per_month


def _row(each: ChangedResource, most: Fraction) -> dict[str, Any]:
    found = each.after or each.before
    title = line(found.title) if found else ""
    kind = line(found.resource.type) if found else ""
    place = line(found.location) if found else ""
    name = line(name_of(each.urn))
    what = " · ".join(part for part in (each.op.value, title, kind) if part)
    share = 100 * each.after.amount.per_month / most if each.after and most else Fraction(0)
    return {
        "name": name,
        "what": what,
        "location": place,
        "text": f"{name} {what} {place}".lower(),
        "shown": {"before": side(each.before), "after": side(each.after), "delta": difference(each)},
        "share": f"{decimal_of(share):.2f}",
        "parts": list(_parts(found)) if found else [],
        "notes": [line(text) for text in (found.free, *found.notes) if text] if found else [],
    }


def _parts(found: ResourceEstimate) -> Iterator[dict[str, str]]:
    for part in found.unpriced:
        amount = "" if part.quantity is None else quantity(part.quantity)
        yield _part(part.item, amount, part.unit, "?", "?", part.reason)
    for hidden in found.unknown:
        yield _part(hidden.path, "?", "", "?", "?", hidden.reason)
    for each in found.components:
        doubt = "" if each.freshness.trusted else f"{each.freshness.value} price"
        note = ", ".join(text for text in (each.note, doubt) if text)
        price, monthly = money(each.unit_price, UNIT), money(each.amount.monthly)
        yield _part(each.name, quantity(each.quantity), each.unit, price, monthly, note)


def _part(name: str, amount: str, unit: str, price: str, monthly: str, note: str) -> dict[str, str]:
    texts = {"name": name, "quantity": amount, "unit": unit, "price": price, "monthly": monthly, "note": note}
    return {key: line(text) for key, text in texts.items()}


def _budget(verdict: BudgetVerdict) -> dict[str, str]:
    return {
        "name": line(verdict.name),
        "limit": money(verdict.limit),
        "amount": money(verdict.amount.monthly),
        "outcome": verdict.outcome.value,
        "kind": KINDS[verdict.outcome],
        "message": line(verdict.message),
    }


def _issue(issue: Issue) -> dict[str, str]:
    return {
        "standing": issue.standing.value,
        "kind": issue.standing.name.lower(),
        "rule": line(issue.rule),
        "url": issue.url,
        "subject": line(issue.subject),
        "message": line(issue.message),
        "advice": line(f"waived: {issue.waived}" if issue.waived else issue.remediation),
        "monthly": "" if issue.monthly is None else money(issue.monthly.monthly),
    }
