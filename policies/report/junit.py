"""A report as JUnit XML: one suite a stack, one case for each rule at each resource, each budget, each rule passed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from policies.budget import BudgetVerdict, Outcome
from policies.money import Amount, plain
from policies.report.escapes import line
from policies.report.figures import money
from policies.report.issues import Issue, Standing, budget_subject, issues
from policies.report.stack import StackReport
from policies.rules.budgets import BUDGET_RULES

GRAVEST: Final = (Standing.FAILED, Standing.UNDECIDED, Standing.WARNING, Standing.NOTE, Standing.WAIVED)
"""Of several findings of one rule at one resource, the first of these decides."""


def stack_junit(report: StackReport) -> str:
    """The report as an XML document without a clock in it, with a final newline.

    An error and a budget that is not kept fail their case; what cannot be decided or is waived is skipped; a warning
    passes and is said in the output of its case, as it blocks nothing.
    """
    name = line(f"{report.project}/{report.stack}")
    root = Element("testsuites", name="spotrail")
    suite = SubElement(root, "testsuite", name=name)
    suite.append(_properties(report))
    suite.extend(_cases(report, name))
    tally = {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("testcase/failure")),
        "errors": 0,
        "skipped": len(suite.findall("testcase/skipped")),
    }
    for each in (root, suite):
        each.attrib.update({key: str(number) for key, number in tally.items()})
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _properties(report: StackReport) -> Element:
    change = report.change
    known = {
        "currency": change.after.currency,
        "monthly": "" if change.after.nothing_known else plain(change.after.amount.monthly),
        "monthly_before": "" if change.before is None or change.before.nothing_known else _exact(change.before.amount),
        "monthly_delta": "" if change.nothing_known or change.delta is None else _exact(change.delta),
        "complete": "yes" if change.complete else "no",
        "fresh": "yes" if change.fresh else "no",
        "price_book": str(report.book_as_of or ""),
        "price_book_sha256": report.book_sha256,
    }
    found = Element("properties")
    for name, value in known.items():
        SubElement(found, "property", name=name, value=line(value))
    return found


def _exact(amount: Amount) -> str:
    return plain(amount.monthly)


def _cases(report: StackReport, name: str) -> Iterator[Element]:
    cases: dict[tuple[str, str], list[Issue]] = {}
    for issue in issues(report):
        place = issue.subject if issue.rule in BUDGET_RULES else issue.urn
        cases.setdefault((issue.rule, place), []).append(issue)
    for (rule, place), found in cases.items():
        yield _case(rule, place, found)
    yield from (_kept(verdict) for verdict in report.budgets if verdict.outcome is Outcome.KEPT)
    yield from (Element("testcase", classname=line(rule), name=name) for rule in report.passed)


def _case(rule: str, place: str, found: Sequence[Issue]) -> Element:
    case = Element("testcase", classname=line(rule), name=line(place))
    standing = min((issue.standing for issue in found), key=GRAVEST.index)
    message = line("; ".join(issue.message for issue in found if issue.standing is standing))
    if standing is Standing.FAILED:
        SubElement(case, "failure", type=line(rule), message=message).text = _told(found)
    elif standing is Standing.UNDECIDED:
        SubElement(case, "skipped", message=f"cannot decide: {message}")
    elif standing is Standing.WAIVED:
        SubElement(case, "skipped", message=line(f"waived: {found[0].waived}"))
    else:
        SubElement(case, "system-out").text = _told(found)
    return case


def _told(found: Iterable[Issue]) -> str:
    """What each issue says and what to do, one paragraph each."""
    return "\n".join(
        line(" ".join((f"{issue.standing.value}:", issue.message, f"({worth})" if (worth := issue.worth) else "")))
        + f"\n{line(issue.remediation)}{' ' if issue.url else ''}{issue.url}"
        for issue in found
    )


def _kept(verdict: BudgetVerdict) -> Element:
    case = Element("testcase", classname=f"BUDGET-{verdict.scope.name}", name=line(budget_subject(verdict)))
    SubElement(case, "system-out").text = f"{money(verdict.amount.monthly)} of {money(verdict.limit)} /month"
    return case
