"""The remedies of `spotrail audit`: a plan is read, written, shown, and done step by step after a yes."""

from __future__ import annotations

import contextlib
import datetime
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, final

import click

from scripts import output
from scripts.options import STDIN

if TYPE_CHECKING:
    from rich.text import Text

    from policies.audit.live.access import Access
    from policies.audit.remedies.applying import Result
    from policies.audit.remedies.model import Measure, RemedyPlan, Step
    from policies.exit_codes import ExitCode


def saved_plan(source: str | None) -> RemedyPlan | None:
    """The plan in the file that --from names; None where it is none."""
    from policies.audit.remedies.plan_file import is_plan, read_plan

    path = Path(source or STDIN)
    try:
        # A pipe can be read once, and that is for the reader of records.
        if source in (None, STDIN) or not path.is_file():
            return None
        with path.open("rb") as stream:
            if not is_plan(stream.read(200)):
                return None
            stream.seek(0)
            return read_plan(stream.read(), str(source))
    except (OSError, ValueError) as error:
        from policies.errors import InputError

        if isinstance(error, InputError):
            raise
        return None  # the reader of records says why


def show_plan(plan: RemedyPlan, output_file: Path | None) -> ExitCode:
    """Show a plan, and change nothing."""
    from policies.exit_codes import ExitCode
    from policies.report.remedy_table import plan_lines

    with output.opened(output_file) as stream:
        output.write_lines(lambda width: plan_lines(plan, width), stream)
    return ExitCode.FINE


def tell_plan(plan: RemedyPlan) -> None:
    """The plan on standard error."""
    from policies.report.remedy_table import plan_lines

    _tell(lambda width: plan_lines(plan, width))


def write_plan(plan: RemedyPlan, path: Path) -> None:
    """Write the plan of an audit, to be reviewed."""
    from policies.audit.remedies.plan_file import plan_text
    from policies.audit.telling import many

    with output.opened(path, "--plan") as stream:
        stream.write(plan_text(plan))
    said = f"wrote {path}: {many(len(plan.measures), 'measure')}, {len(plan.refused)} left alone"
    click.echo(output.printable(said), err=True)


@final
@dataclass(kw_only=True)
class Applying:
    """How a plan is done: where, by which clock, and whether somebody is asked. Talks on standard error."""

    access: Access
    now: datetime.datetime | None = None
    """The clock by which the age of the plan is counted; None for that of this machine."""
    yes: bool
    quiet: bool = False
    """Whether nobody is shown that a step takes its time."""
    _busy: contextlib.ExitStack = field(init=False, default_factory=contextlib.ExitStack)

    def apply(self, plan: RemedyPlan) -> ExitCode:
        """Show the plan, do it step by step, and say how each step ended. Raises InputError for one that may not be
        done, CloudError where no cloud answers.
        """
        from policies.audit.live.access import Clients
        from policies.audit.outcome import applied_exit
        from policies.audit.remedies.applying import apply_plan
        from policies.audit.remedies.checking import check_age, check_plan
        from policies.audit.remedies.hands import GoogleHands

        check_plan(plan)
        check_age(plan, self.now or datetime.datetime.now(datetime.UTC))
        clients = Clients(self.access)
        tell_plan(plan)
        results = []
        try:
            with self._busy:
                for result in apply_plan(plan, GoogleHands(clients), self._ask):
                    self._busy.close()
                    _tell_result(result)
                    results.append(result)
        except (KeyboardInterrupt, click.Abort, SystemExit):
            _say("\n stopped; what is begun goes on in the cloud, and the same command again does the rest")
            raise
        counts = Counter(result.outcome for result in results)
        _say(" " + ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items()))
        return applied_exit(results)

    def _ask(self, measure: Measure, step: Step) -> bool:
        wanted = self.yes or click.confirm(output.printable(f"   {step.text}?"), default=False, err=True)
        if wanted:
            self._busy.enter_context(output.progress(output.printable(step.text), quiet=self.quiet))
        return wanted


def _tell_result(result: Result) -> None:
    from policies.report.layout import Page
    from policies.report.remedy_table import result_lines

    _tell(lambda width: result_lines(result, Page(width)))


def _tell(lines: Callable[[int], Iterable[Text]]) -> None:
    """Lines on standard error. Who no longer listens stops nothing: a change is under way."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            output.write_lines(lines, sys.stderr)


def _say(words: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(output.printable(words), err=True)
