"""A report for a GitHub workflow: annotations beside the code, and the summary of a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from policies.report.escapes import short
from policies.report.headline import doubts, headline
from policies.report.issues import VERDICTS, Issue, Standing, issues, source_file
from policies.report.markdown import stack_markdown
from policies.report.stack import StackReport

MOST: Final = 10
"""Annotations of one level that GitHub shows of a step."""
SUMMARY_LIMIT: Final = 1024 * 1024
"""Bytes that fit in the summary of a step; a longer one is refused whole."""
LEVELS: Final = {
    "error": (Standing.FAILED,),
    "warning": (Standing.WARNING, Standing.UNDECIDED),
    "notice": (Standing.NOTE,),
}


def stack_annotations(report: StackReport) -> str:
    """Workflow commands, one a line: verdict and price as a notice, then at most 10 annotations a level, worst first.

    What is waived is left to the summary. Print them to stdout in a step.
    """
    place = source_file(report)
    priced = _command(
        "notice", place, "spotrail", ". ".join((f"{VERDICTS[report.verdict]}: {headline(report)}", *doubts(report)))
    )
    found = issues(report)
    lines = [priced]
    for level, standings in LEVELS.items():
        chosen = [issue for issue in found if issue.standing in standings]
        lines.extend(_annotations(level, place, chosen, MOST - (level == "notice")))
    return "".join(f"{text}\n" for text in lines)


def stack_summary(report: StackReport) -> str:
    """Markdown to append to the file that `$GITHUB_STEP_SUMMARY` names: under 1 MiB whatever the size."""
    return stack_markdown(report, SUMMARY_LIMIT)


def _annotations(level: str, place: str, found: Sequence[Issue], most: int) -> Iterator[str]:
    shown = found if len(found) <= most else found[: most - 1]
    for issue in shown:
        doubt = "cannot decide: " if issue.standing is Standing.UNDECIDED else ""
        worth = f" ({issue.worth})" if issue.worth else ""
        text = f"{doubt}{issue.message}{worth}. {issue.remediation}"
        yield _command(level, place, f"{issue.rule} {issue.subject}", text)
    if missing := len(found) - len(shown):
        yield _command(level, place, "spotrail", f"{missing} more of this level: see the summary of the step")


def _command(level: str, place: str, title: str, text: str) -> str:
    return f"::{level} file={_property(place)},line=1,title={_property(title)}::{_data(text)}"


def _data(text: str) -> str:
    """`text` as the runner decodes it: one line, and no `%` that it would take for an escape."""
    return short(text).replace("%", "%25")


def _property(text: str) -> str:
    """`text` for a property of a command, which ends at a comma or a colon."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
