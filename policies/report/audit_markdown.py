"""The audit as Markdown for an issue or a chat: the answer, the worst first, always below the limit of a comment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.audit.model import Audit, Verdict
from policies.report.audit_table import so_far_words, subject, worth_showing
from policies.report.escapes import markdown
from policies.report.figures import money

LIMIT: Final = 65_536
"""Characters of a comment on GitHub."""
ROOM: Final = 1_000
"""Characters kept for the last line."""
TABLE: Final = ("| Waste/month | So far | Verdict | What | Why | Remedy |", "|--:|--:|---|---|---|---|")
SHORT: Final = 300
"""Characters of one message."""


def audit_markdown(audit: Audit) -> str:
    """Headline, table of what is wasted, what could not be seen. Rows that find no room are counted, not cut."""
    rows = [_row(verdict) for verdict in audit.verdicts if worth_showing(verdict)]
    text = "\n".join((*_head(audit), *(TABLE if rows else ("Nothing is wasted.",))))
    shown = 0
    for row in rows:
        if len(text) + len(row) + 1 > LIMIT - ROOM:
            break
        text, shown = f"{text}\n{row}", shown + 1
    if shown < len(rows):
        text += f"\n\n… {len(rows) - shown:,} more; all of them in `--format json`"
    return text + "\n"


def _head(audit: Audit) -> Iterator[str]:
    least = "" if audit.complete else "at least "
    waste = f"{least}{money(audit.waste.monthly)} {audit.currency} /month"
    yield f"### {markdown(audit.project)}: {waste} wasted, {so_far_words(audit)}"
    yield ""
    for gap in audit.missing[:20]:
        yield f"- not seen: {markdown(gap.part)}: {markdown(gap.why, SHORT)}"
    for finding in audit.findings[:20]:
        yield f"- {markdown(finding.rule)} {markdown(finding.resource)}: {markdown(finding.message, SHORT)}"
    for note in audit.notes[:20]:
        yield f"- note: {markdown(note, SHORT)}"
    yield ""


def _row(verdict: Verdict) -> str:
    waste = "?" if verdict.waste is None else money(verdict.waste.monthly)
    so_far = "?" if verdict.so_far is None else money(verdict.so_far)
    what = f"{subject(verdict)} ({verdict.location})"
    remedy = "" if verdict.remedy is None else verdict.remedy.text
    cells = (markdown(verdict.kind.value), markdown(what), markdown(verdict.message, SHORT), markdown(remedy, SHORT))
    return f"| {waste} | {so_far} | {' | '.join(cells)} |"
