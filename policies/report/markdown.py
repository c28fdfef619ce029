"""A report as Markdown for a pull request: never longer than a comment may be, whatever the size of the stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, takewhile
from typing import Final, final
from urllib.parse import quote

from policies.budget import BudgetVerdict, Outcome
from policies.estimate.change import ChangedResource
from policies.estimate.model import ResourceEstimate
from policies.report.escapes import markdown
from policies.report.figures import UNIT, money, quantity
from policies.report.headline import ROUNDED, difference, doubts, headline, moved, side, standing
from policies.report.issues import VERDICTS, Issue, Standing, counts, issues
from policies.report.names import name_of
from policies.report.stack import StackReport

COMMENT_LIMIT: Final = 65_535
"""Bytes that fit in a comment of GitHub, which counts 65,536 characters."""
NAME: Final = 120
"""Characters of a name that are shown."""
CHANGES: Final = "| | Resource | Before | After | Difference |\n|:-:|:--|--:|--:|--:|\n"
FINDINGS: Final = "#### Findings\n\n| | Rule | Resource | What and what to do | Per month |\n|:--|:--|:--|:--|--:|\n"
BUDGETS: Final = "#### Budgets\n\n| Budget | Limit | Amount | |\n|:--|--:|--:|:--|\n"
PARTS: Final = "| Resource | Part | Quantity | Unit | Unit price | Per month |\n|:--|:--|--:|:--|--:|--:|\n"
FOLDED: Final = "\n</details>\n\n"
STANDINGS: Final = {
    Standing.FAILED: "**failed**",
    Standing.WARNING: "warning",
    Standing.NOTE: "note",
    Standing.UNDECIDED: "*cannot decide*",
    Standing.WAIVED: "waived",
}
OUTCOMES: Final = {
    Outcome.VIOLATED: "**violated**",
    Outcome.UNDECIDED: "*cannot decide*",
    Outcome.KEPT: "kept",
}


@final
@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report whose rows may not all fit."""

    head: str
    rows: tuple[str, ...]
    """Its rows, or so many of the first that no report could hold more."""
    number: int
    """How many rows there are."""
    tail: str = "\n"

    @property
    def need(self) -> int:
        """Bytes that the whole section takes."""
        return sum(map(_size, (self.head, *self.rows, self.tail, _more(self.number)))) if self.number else 0

    def fitted(self, room: int) -> str:
        """The section with the first of its rows that fit in `room` bytes, and how many are left out."""
        if not self.number:
            return ""
        left = room - _size(self.head) - _size(self.tail) - _size(_more(self.number))
        sizes = accumulate(map(_size, self.rows))
        kept = self.rows[: sum(1 for _ in takewhile(lambda size: size <= left, sizes))]
        missing = self.number - len(kept)
        return "".join((self.head, *kept, self.tail, _more(missing) if missing else ""))


def stack_markdown(report: StackReport, limit: int = COMMENT_LIMIT) -> str:
    """The report in at most `limit` bytes: whole rows are left out from the end of each table, and counted.

    The first line is `marker(report)`, by which a bot finds the comment that it is to update.
    """
    lead, foot = _lead(report), _foot(report)
    sections = tuple(_sections(report, limit))
    rooms = _allotted([section.need for section in sections], limit - _size(lead) - _size(foot))
    fitted = (section.fitted(room) for section, room in zip(sections, rooms, strict=True))
    return "".join((lead, *fitted, foot))


def _allotted(needs: Sequence[int], room: int) -> list[int]:
    """How much of `room` each gets: none crowds out another, and what a small one does not need goes to the others."""
    given = [0] * len(needs)
    for done, index in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        given[index] = min(needs[index], room // (len(needs) - done))
        room -= given[index]
    return given


def marker(report: StackReport) -> str:
    """A line that nobody sees, the same for every report of a stack: `<!-- spotrail report: acme/dev -->`."""
    project, stack = (quote(name[:NAME], safe="", errors="replace") for name in (report.project, report.stack))
    return f"<!-- spotrail report: {project}/{stack} -->"


def _lead(report: StackReport) -> str:
    doubt = "".join(f"> ⚠ {markdown(text)}\n" for text in doubts(report))
    gap = "\n" if doubt else ""
    sentence = markdown(headline(report), NAME * 3)
    return f"{marker(report)}\n### {sentence}\n\n{doubt}{gap}**{VERDICTS[report.verdict]}** · {counts(report)}\n\n"


def _foot(report: StackReport) -> str:
    dated = f"prices of {report.book_as_of}" if report.book_as_of else "prices without a date"
    return f"<sub>spotrail · {markdown(report.project, NAME)} · {dated} · {ROUNDED}</sub>\n"


def _sections(report: StackReport, limit: int) -> Iterator[Section]:
    """In the order of the page."""
    changed, found, parts = moved(report.change), issues(report), standing(report.change.after)
    notes = (*report.change.notes, *report.notes, *(f"usage: {words}" for words in report.usage))
    budgets = sorted(report.budgets, key=lambda each: tuple(OUTCOMES).index(each.outcome))
    resources = f"{len(parts)} resource{'' if len(parts) == 1 else 's'}"
    yield Section(head=CHANGES, rows=_first(map(_change, changed), limit), number=len(changed))
    yield Section(head=FINDINGS, rows=_first(map(_issue, found), limit), number=len(found))
    yield Section(head=BUDGETS, rows=_first(map(_budget, budgets), limit), number=len(budgets))
    yield Section(
        head=f"{_summary(f'What each part costs ({resources})')}{PARTS}",
        rows=_first(chain.from_iterable(map(_parts, parts)), limit),
        number=sum(map(_part_count, parts)),
        tail=FOLDED,
    )
    yield Section(
        head=_summary(f"Notes ({len(notes)})"),
        rows=_first((f"- {markdown(note)}\n" for note in notes), limit),
        number=len(notes),
        tail=FOLDED,
    )


def _first(rows: Iterable[str], limit: int) -> tuple[str, ...]:
    """The rows up to the one that no longer fits in `limit` bytes, so that a huge stack is not written in vain."""
    kept: list[str] = []
    for row in rows:
        kept.append(row)
        if (limit := limit - _size(row)) < 0:
            break
    return tuple(kept)


def _summary(title: str) -> str:
    return f"<details><summary>{title}</summary>\n\n"


def _change(each: ChangedResource) -> str:
    found = each.after or each.before
    title = f" {markdown(found.title, NAME)}" if found and found.title else ""
    name = markdown(name_of(each.urn), NAME)
    return f"| {each.op.value} | {name}{title} | {side(each.before)} | {side(each.after)} | {difference(each)} |\n"


def _issue(issue: Issue) -> str:
    rule = f"[{markdown(issue.rule, NAME)}]({issue.url})" if issue.url else markdown(issue.rule, NAME)
    advice = f"waived: {markdown(issue.waived)}" if issue.waived else markdown(issue.remediation)
    worth = "" if issue.monthly is None else money(issue.monthly.monthly)
    return (
        f"| {STANDINGS[issue.standing]} | {rule} | {markdown(issue.subject, NAME)} "
        f"| {markdown(issue.message)}<br>{advice} | {worth} |\n"
    )


def _budget(each: BudgetVerdict) -> str:
    amounts = f"{money(each.limit)} | {money(each.amount.monthly)}"
    return f"| {markdown(each.name, NAME)} | {amounts} | {OUTCOMES[each.outcome]} |\n"


def _part_count(found: ResourceEstimate) -> int:
    return len(found.components) + len(found.unpriced) + len(found.unknown)


def _parts(found: ResourceEstimate) -> Iterator[str]:
    name = markdown(found.resource.name, NAME)
    for part in found.unpriced:
        amount = "" if part.quantity is None else quantity(part.quantity)
        yield f"| {name} | {markdown(part.item, NAME)}: {markdown(part.reason)} | {amount} | {part.unit} | ? | ? |\n"
    for hidden in found.unknown:
        yield f"| {name} | {markdown(hidden.path, NAME)}: {markdown(hidden.reason)} | ? | | ? | ? |\n"
    for line in found.components:
        note = f" ({markdown(line.note)})" if line.note else ""
        price = f"{money(line.unit_price, UNIT)}{'' if line.freshness.trusted else ' (stale)'}"
        yield (
            f"| {name} | {markdown(line.name, NAME)}{note} | {quantity(line.quantity)} | {line.unit} "
            f"| {price} | {money(line.amount.monthly)} |\n"
        )


def _more(missing: int) -> str:
    return f"*{missing:,} more row{'' if missing == 1 else 's'} left out to stay in the size of a comment.*\n\n"


def _size(text: str) -> int:
    return len(text.encode())
