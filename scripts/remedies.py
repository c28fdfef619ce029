"""The remedies of `spotrail audit`: a plan is read, written, shown, and done step by step after a yes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from scripts import output

if TYPE_CHECKING:
    from policies.audit.access import Access
    from policies.audit.remedies.model import Measure, RemedyPlan, Step
    from policies.exit_codes import ExitCode

STDIN: Final = "-"


def saved_plan(source: str | None) -> RemedyPlan | None:
    """The plan in the file that --from names; None where it is none."""
    from policies.audit.remedies.plan_file import is_plan, read_plan

    if source in (None, STDIN):
        return None
    path = Path(str(source))
    try:
        with path.open("rb") as stream:
            if not is_plan(stream.read(200)):
                return None
            stream.seek(0)
            return read_plan(stream.read(), str(source))
    except OSError:
        return None  # the reader of records says why


def show_plan(plan: RemedyPlan) -> ExitCode:
    """Show a plan, and change nothing."""
    from policies.exit_codes import ExitCode
    from policies.report.remedy_table import plan_lines

    with output.opened(None) as stream:
        output.write_lines(lambda width: plan_lines(plan, width), stream)
    return ExitCode.FINE


def write_plan(plan: RemedyPlan, path: Path) -> None:
    """Write the plan of an audit, to be reviewed."""
    from policies.audit.remedies.plan_file import plan_text

    with output.opened(path) as stream:
        stream.write(plan_text(plan))
    said = f"wrote {path}: {len(plan.measures)} remedies, {len(plan.refused)} left alone"
    click.echo(output.printable(said), err=True)


def apply_plan(plan: RemedyPlan, access: Access, *, yes: bool) -> ExitCode:
    """Show the plan, do it step by step on standard error, and say how each step ended."""
    from policies.audit.access import Clients
    from policies.audit.outcome import applied_exit
    from policies.audit.remedies.applying import apply_plan as applied
    from policies.audit.remedies.hands import GoogleHands
    from policies.report.layout import Page
    from policies.report.remedy_table import plan_lines, result_lines

    output.write_lines(lambda width: plan_lines(plan, width), sys.stderr)
    ask = (lambda measure, step: True) if yes else _asked
    results = []
    for result in applied(plan, GoogleHands(Clients(access)), ask):
        output.write_lines(lambda width, it=result: result_lines(it, Page(width)), sys.stderr)  # type: ignore[misc]
        results.append(result)
    return applied_exit(results)


def _asked(measure: Measure, step: Step) -> bool:
    return click.confirm(output.printable(f"   {step.text}?"), default=False, err=True)
