"""Prices and judges what a source says about a stack: the one place where prices, rules and budgets meet."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Final

from policies.budget import Budget, judge_budgets
from policies.changes import Reading
from policies.estimate.change import estimate_change
from policies.exit_codes import judge
from policies.policy_results import policy_findings
from policies.prices.book import PriceBook
from policies.report.plan import usage_words
from policies.report.stack import StackReport
from policies.resources import STACK_TYPE, Value
from policies.rules.engine import run_rules
from policies.rules.model import Severity, Waiver
from policies.rules.severities import PLACE as SEVERITIES
from policies.rules.severities import read_severities
from policies.rules.waivers import PLACE as WAIVERS
from policies.rules.waivers import read_waivers
from policies.usage import Usage

STACK_FILE: Final = "Pulumi.{stack}.yaml"


def stack_report(
    reading: Reading,
    usage: Usage,
    book: PriceBook,
    as_of: datetime.date,
    *,
    place: str,
    waivers: Sequence[Waiver] = (),
    budgets: Sequence[Budget] = (),
    allow_stale: bool = False,
    next_steps: Sequence[str] = (),
) -> StackReport:
    """Price what a source says, and judge it by the rules and by budgets; waived is what it waives, and `waivers` too.

    `place` is what a report calls the source. Raises InputError for a waiver that cannot be.
    """
    change = estimate_change(reading, usage, book, as_of)
    covering = (*configured_waivers(reading), *waivers)
    judgement = run_rules(
        reading.after,
        change.after,
        as_of,
        covering,
        book=book,
        changes=reading.changes,
        hidden=reading.hidden,
        severities=configured_severities(reading),
    )
    told = policy_findings(reading.policy_results, stack_urn(reading))
    findings = tuple(sorted((*told, *judgement.findings), key=lambda finding: finding.severity.rank))
    verdicts = judge_budgets(budgets, change, reading.after, allow_stale=allow_stale)
    return StackReport(
        project=reading.project,
        stack=reading.stack,
        kind=reading.kind,
        place=place,
        change=change,
        findings=findings,
        passed=tuple(rule.id for rule in judgement.passed),
        budgets=verdicts,
        book_as_of=book.as_of,
        book_sha256=book.sha256,
        as_of=as_of,
        usage=usage_words(usage),
        notes=reading.notes,
        next_steps=tuple(next_steps),
        verdict=judge(change.after, findings, allow_stale=allow_stale, budgets=verdicts),
    )


def stack_urn(reading: Reading) -> str:
    """The URN of the stack itself."""
    return f"urn:pulumi:{reading.stack}::{reading.project}::{STACK_TYPE}::{reading.project}-{reading.stack}"


def configured_waivers(reading: Reading) -> tuple[Waiver, ...]:
    """The waivers in the configuration that the source carries; none for a state. Raises InputError."""
    return read_waivers(*_setting(reading, WAIVERS))


def configured_severities(reading: Reading) -> Mapping[str, Severity | None]:
    """The severities that the configuration gives rules in place of their own. Raises InputError."""
    return read_severities(*_setting(reading, SEVERITIES))


def _setting(reading: Reading, name: str) -> tuple[object, str]:
    """The value of a setting that is an object, and where an error says that it stands."""
    return _parsed(reading.config.get(name)), f"{STACK_FILE.format(stack=reading.stack)}: {name}"


def _parsed(value: Value) -> object:
    """An object of the configuration, which Pulumi hands over as JSON text; what is not JSON stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value
