"""A remedy plan as text for people: what would be done, step by step, and what is left alone and why."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from rich.text import Text

from policies.audit.remedies.applying import Outcome, Result
from policies.audit.remedies.model import Measure, RemedyPlan
from policies.money import decimal_of
from policies.report.figures import money
from policies.report.layout import Page

MOST_REFUSED: Final = 20
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
    saved = sum((each.saving.per_month for each in plan.measures if each.saving is not None), start=Fraction(0))
    steps = sum(len(each.steps) for each in plan.measures)
    said = f"Remedies: {len(plan.measures)} in {steps} steps, saving {money(decimal_of(saved))} /month"
    yield from page.paragraph(said, style="bold")
    for measure in plan.measures:
        yield from measure_lines(measure, page)
        for number, step in enumerate(measure.steps, start=1):
            yield from page.paragraph(f"{number}. {step.text}", "   ", hanging="      ")
    if plan.refused:
        yield from page.paragraph(f"Left alone: {len(plan.refused)}", style="bold")
    for refusal in plan.refused[:MOST_REFUSED]:
        name = refusal.resource.rpartition("/")[2]
        yield from page.paragraph(f"{name}: {refusal.why}", "   ", style="dim", hanging="     ")
    if len(plan.refused) > MOST_REFUSED:
        yield from page.paragraph(f"… and {len(plan.refused) - MOST_REFUSED} more", "   ", style="dim")


def measure_lines(measure: Measure, page: Page) -> Iterator[Text]:
    """What is wrong, what its remedy saves, and what the stack has to be told."""
    worth = "saving unknown" if measure.saving is None else f"saves {money(measure.saving.monthly)} /month"
    name = measure.resource.rpartition("/")[2]
    yield from page.paragraph(f"{name}  {measure.verdict.value}, {worth}: {measure.why}", hanging="   ")
    for setting in measure.setting.splitlines():
        yield from page.paragraph(f"also in {setting}", "   ", style="yellow", hanging="     ")


def result_lines(result: Result, page: Page) -> Iterator[Text]:
    """How one step ended."""
    sign, style = SIGNS[result.outcome]
    why = f": {result.why}" if result.why else ""
    said = "" if result.outcome is Outcome.DONE else f" ({result.outcome.value}{why})"
    yield from page.paragraph(f"{sign} {result.step.text}{said}", "   ", style, hanging="     ")
