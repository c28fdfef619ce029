"""The comment: its text, its size whatever the stack, and names that stay names in a page of a forge."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from policies.changes import Op
from policies.estimate.change import ChangedResource, ChangeEstimate
from policies.estimate.model import Estimate
from policies.money import Amount
from policies.report.headline import doubts, headline, moved, signed
from policies.report.markdown import COMMENT_LIMIT, marker, stack_markdown
from policies.report.plan import PlanReport
from policies.report.stack import StackReport
from policies.resources import Resource

LIVE = re.compile(r"@\w|#\w|://|\bwww\.|\bGH-", re.IGNORECASE)
"""What GitHub turns into a mention, a reference or a link after it has drawn the Markdown."""
NAMES = st.text(min_size=1, max_size=60) | st.text(alphabet="`|<>[]()!*_~\\@#:/w.&;\n -+=1", min_size=1, max_size=40)


def tokens(text: str) -> Iterator[Token]:
    for block in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        yield block
        yield from block.children or ()


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the table below the line that begins with `heading`."""
    table = text[text.index(heading) :].partition("|\n|")[2].partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in table]


def test_the_sentence_of_a_change(stack_report: StackReport, quiet_report: StackReport) -> None:
    # 160 + 2 = 162 before; 16 + 48 + 8 x 0.60 x 730 = 3,568 after; 3,406 / 162 = 2,102.47 %
    assert headline(stack_report) == "dev: 162.00 → 3,568.00 USD /month, +3,406.00 (+2,102.5 %)"
    assert list(doubts(stack_report)) == []
    assert headline(quiet_report) == "dev: 160.00 USD /month, no change"
    assert moved(quiet_report.change) == ()


def test_the_sentence_says_what_it_does_not_know(
    doubtful_report: StackReport, stack_report_of: Callable[..., StackReport], stack_report: StackReport
) -> None:
    text = headline(doubtful_report)
    assert text == "dev: 3,504.00 → at least 3,507.50 USD /month, +3.50 between the lower bounds"
    assert [words.partition(":")[0].partition(" ")[0] for words in doubts(doubtful_report)] == [
        "12",
        "something",
        "some",
    ]
    (unknown,) = (each.after for each in doubtful_report.change.resources if each.after and each.after.nothing_known)
    alone = stack_report_of(None, (unknown.resource,))
    assert headline(alone) == "dev: not known USD /month"
    assert headline(stack_report_of((unknown.resource,), (unknown.resource,))).endswith("no change")
    came = stack_report_of((), (unknown.resource,))
    assert headline(came) == "dev: 0.00 → ? USD /month, difference not known"
    fresh = stack_report_of((), [each.after.resource for each in stack_report.change.resources if each.after])
    assert headline(fresh) == "dev: 0.00 → 3,568.00 USD /month, +3,568.00"


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0", "0.00"),
        ("0.01", "+0.01"),
        ("-9", "-9.00"),
        ("0.00341", "+0.0034"),
        ("-0.004", "-0.0040"),
        ("1.005", "+1.00"),
    ],
)
def test_a_difference_never_looks_like_none(amount: str, shown: str) -> None:
    assert signed(Amount.by_month(Decimal(amount))) == shown


def test_totals_are_of_the_exact_parts_and_what_does_not_change_has_no_row(
    rounded_plan: PlanReport, stack_report_of: Callable[..., StackReport]
) -> None:
    three = rounded_plan.estimate.resources
    change = ChangeEstimate(
        before=Estimate(currency="USD", resources=three[:1]),
        after=Estimate(currency="USD", resources=three),
        resources=tuple(
            ChangedResource(urn=found.resource.urn, op=op, before=before, after=found)
            for found, op, before in zip(three, (Op.UPDATE, Op.CREATE, Op.CREATE), (three[0], None, None), strict=True)
        ),
    )
    report = dataclasses.replace(stack_report_of((), ()), change=change)
    # 0.335 and 3 x 0.335 = 1.005, rounded half-even; 0.67 between them
    assert headline(report) == "dev: 0.34 → 1.00 USD /month, +0.67 (+200.0 %)"
    text = stack_markdown(report)
    assert [row[1].split()[0] for row in rows(text, "| | Resource | Before")] == ["b", "c"]
    assert "totals are of the exact parts" in text


def test_changes_are_worst_first(stack_report: StackReport) -> None:
    shown = rows(stack_markdown(stack_report), "| | Resource | Before")
    assert [(row[0], row[1].split()[0], *row[2:]) for row in shown] == [
        ("create", "trainer", "-", "3,504.00", "+3,504.00"),
        ("delete", "checkpoints", "2.00", "-", "-2.00"),
        ("update", "llama", "160.00", "64.00", "-96.00"),
    ]


def test_findings_and_budgets_are_told_apart(stack_report: StackReport) -> None:
    text = stack_markdown(stack_report)
    assert text.startswith("<!-- spotrail report: acme/dev -->\n### dev: 162.00 → 3,568.00 USD /month")
    assert "**FAIL** · 2 failed, 1 warning, 2 cannot be decided, 1 waived, 2 rules passed" in text
    assert [row[0] for row in rows(text, "#### Findings")] == [
        "**failed**", "**failed**", "warning", "*cannot decide*", "*cannot decide*", "waived",
    ]  # fmt: skip
    assert rows(text, "#### Budgets")[0] == ["total", "3,600.00", "3,667.50", "**violated**"]
    assert "waived: deadline run, until 2026-12-15" in text


def test_a_quiet_report_has_no_empty_tables(quiet_report: StackReport) -> None:
    text = stack_markdown(quiet_report)
    assert "Findings" not in text
    assert "Difference" not in text
    assert "**PASS** · 2 rules passed" in text
    assert "| llama | throughput" in text


@pytest.mark.parametrize("limit", [8_000, COMMENT_LIMIT])
def test_a_huge_stack_fits_and_what_is_left_out_is_counted(
    stack_report_of: Callable[..., StackReport], stack_report: StackReport, limit: int
) -> None:
    made = [Resource(urn=f"urn:pulumi:dev::acme::gcp:compute/disk:Disk::d{n:04}|" + "ü" * 90, name="ü" * 200,
                     type="gcp:compute/disk:Disk",
                     inputs={"type": "hyperdisk-ml", "size": 100 + n, "zone": "us-central1-b"})
            for n in range(2000)]  # fmt: skip
    text = stack_markdown(stack_report_of((), made, findings=stack_report.findings * 500), limit)
    assert 0.9 * limit < len(text.encode()) <= limit
    changes = rows(text, "| | Resource | Before")
    assert changes[0][1].startswith("d1999")
    left_out = [int(number.replace(",", "")) for number in re.findall(r"\*([0-9,]+) more rows? left out", text)]
    assert left_out[0] == 2000 - len(changes)
    assert left_out[1] == 2000 - len(rows(text, "#### Findings"))
    assert len(left_out) == 3
    assert text.count("<details>") == text.count("</details>") == 2
    assert text.endswith("</sub>\n")


def test_the_marker_stays_one_comment(poisoned: Callable[[str], StackReport]) -> None:
    shown = marker(poisoned("a --> <b>\n"))
    assert shown == "<!-- spotrail report: a%20--%3E%20%3Cb%3E%0A/a%20--%3E%20%3Cb%3E%0A -->"


@settings(max_examples=60)
@given(text=NAMES)
def test_no_text_becomes_markup(text: str, poisoned: Callable[[str], StackReport]) -> None:
    check(text, poisoned)


def test_no_hostile_text_becomes_markup(hostile: str, poisoned: Callable[[str], StackReport]) -> None:
    check(hostile, poisoned)


def check(text: str, poisoned: Callable[[str], StackReport]) -> None:
    """The same report with a harmless name has the same structure: the name added none."""
    shown, tame = stack_markdown(poisoned(text)), stack_markdown(poisoned("tame"))
    assert structure(shown) == structure(tame)
    for line in shown.splitlines()[1:]:
        assert line.isprintable() or "\u200b" in line
        ours = line.replace("](https://cloud.google.com/compute/docs/disks/hyperdisks)", "")
        drawn = "".join(token.content for token in tokens(ours) if token.type == "text")
        assert not LIVE.search(drawn), line


def structure(text: str) -> list[tuple[str, str, str]]:
    """Every element, and the HTML of the page, which is all ours; a line of text may be empty."""
    html = ("html_block", "html_inline")
    kinds = ((token.type, token.tag, token.content if token.type in html else "") for token in tokens(text))
    return [kind for kind in kinds if kind[0] not in ("text", "inline") and "spotrail report" not in kind[2]]
