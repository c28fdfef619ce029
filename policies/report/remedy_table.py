"""A remedy plan as text for people: what would be done, step by step, and what is left alone and why."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

from rich.text import Text

from policies.audit.remedies.applying import Outcome, Result
from policies.audit.remedies.model import Measure, Refusal, RemedyPlan
from policies.audit.telling import many
from policies.money import decimal_of
from policies.report.audit_table import worth
from policies.report.figures import money
from policies.report.layout import Page

MOST_NAMES: Final = 20
"""That are listed of what is left alone for one reason."""
SIGNS: Final = {
    Outcome.DONE: ("✓", "green"),
    Outcome.ALREADY: ("✓", "dim"),
    Outcome.DECLINED: ("·", "dim"),
    Outcome.CHANGED: ("▲", "yellow"),
    Outcome.FAILED: ("✗", "red"),
    Outcome.SKIPPED: ("·", "dim"),
}


def plan_lines(plan: RemedyPlan, width: int) -> Iterator[Text]:
    """The measures with their steps, then what is not touched."""
    page = Page(width)
    yield from page.paragraph(_headline(plan), style="bold")
    for measure in plan.measures:
        yield from measure_lines(measure, page)
        for number, step in enumerate(measure.steps, start=1):
            yield from page.paragraph(f"{number}. {step.text}", "   ", hanging="      ")
    if plan.refused:
        yield from page.paragraph(f"Left alone: {len(plan.refused)}", style="bold")
    for why, names in _by_reason(plan.refused).items():
        shown = ", ".join(names[:MOST_NAMES])
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        yield from page.paragraph(f"{shown}{more}: {why}", "   ", style="dim", hanging="     ")


def _headline(plan: RemedyPlan) -> str:
    """`Remedies: 8 in 9 steps, saving 7,004.34 /month, of what was seen 2026-11-29 12:00Z`."""
    seen = f"of what was seen {plan.recorded_at.astimezone(datetime.UTC):%Y-%m-%d %H:%MZ}"
    if not plan.measures:
        return f"Remedies: nothing to do, {seen}"
    known = [each.saving.per_month for each in plan.measures if each.saving is not None]
    least = "" if len(known) == len(plan.measures) else "at least "
    saving = (
        f"saving {least}{money(decimal_of(sum(known, Fraction())))} /month"
        if known
        else "saving an amount that is not known"
    )
    steps = many(sum(len(each.steps) for each in plan.measures), "step")
    return f"Remedies: {len(plan.measures)} in {steps}, {saving}, {seen}"


def name_of(resource: str) -> str:
    """The last part of a link; of a cache, whose name is a zone, the whole."""
    return resource if "/anywhereCaches/" in resource else resource.rpartition("/")[2]


def _by_reason(refused: Iterable[Refusal]) -> Mapping[str, list[str]]:
    """The names of what is left alone, by the reason, in the order of the plan."""
    found: dict[str, list[str]] = {}
    for each in refused:
        found.setdefault(each.why, []).append(name_of(each.resource))
    return found


def measure_lines(measure: Measure, page: Page) -> Iterator[Text]:
    """What is wrong, what its remedy saves, and what the stack has to be told."""
    effect = "what it saves is not known"
    if measure.saving is not None:
        effect = worth(measure.saving) or "saves nothing by itself"
    yield from page.paragraph(
        f"{name_of(measure.resource)}  {measure.verdict.value}, {effect}: {measure.why}", hanging="   "
    )
    for setting in measure.setting.splitlines():
        yield from page.paragraph(f"also in {setting}", "   ", style="yellow", hanging="     ")


def result_lines(result: Result, page: Page) -> Iterator[Text]:
    """How one step ended."""
    sign, style = SIGNS[result.outcome]
    why = f": {result.why}" if result.why and result.outcome is not Outcome.ALREADY else ""
    said = "" if result.outcome is Outcome.DONE else f" ({result.outcome.value}{why})"
    yield from page.paragraph(f"{sign} {result.step.text}{said}", "   ", style, hanging="     ")
