"""What `estimate`, `diff` and `check` say to people, on readings made by hand and prices that add up by hand."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal

import pytest
from rich.cells import cell_len

from policies.budget import parse_budget
from policies.changes import Change, Op, Reading, SourceKind
from policies.comparison import Side, compare
from policies.estimate.engine import estimate
from policies.exit_codes import ExitCode
from policies.judging import stack_report
from policies.prices.book import PriceBook
from policies.report.stack import StackReport
from policies.report.stack_table import check_lines, estimate_lines, reason
from policies.resources import UNKNOWN, Resource, ResourceSet, Value
from policies.rules.model import Waiver
from policies.usage import Usage

AS_OF = datetime.date(2026, 11, 15)
DISK = "gcp:compute/disk:Disk"
LABELS = {"owner": "ml", "env": "dev", "ttl": "3d"}


def volume(name: str, throughput: Value = 400, zone: str = "us-central1-b") -> Resource:
    """A Hyperdisk ML volume of 200 GiB: 16.00, and 0.12 for each MiB/s."""
    return Resource(
        urn=f"urn:pulumi:dev::acme::{DISK}::{name}",
        type=DISK,
        name=name,
        inputs={
            "type": "hyperdisk-ml",
            "size": 200,
            "provisionedThroughput": throughput,
            "accessMode": "READ_ONLY_MANY",
            "zone": zone,
            "labels": LABELS,
        },
    )


def reported(
    after: tuple[Resource, ...],
    book: PriceBook,
    *,
    before: tuple[Resource, ...] | None = None,
    hidden: int = 0,
    budgets: tuple[str, ...] = (),
    waivers: tuple[Waiver, ...] = (),
) -> StackReport:
    old = {resource.urn: resource for resource in before or ()}
    new = {resource.urn: resource for resource in after}
    changes = tuple(
        Change(urn=urn, op=step(urn in old, urn in new), before=old.get(urn), after=new.get(urn))
        for urn in dict.fromkeys((*old, *new))
    )
    reading = Reading(
        kind=SourceKind.STATE if before is None else SourceKind.PREVIEW,
        project="acme",
        stack="dev",
        after=ResourceSet(after),
        before=None if before is None else ResourceSet(before),
        changes=() if before is None else changes,
        hidden=hidden,
    )
    limits = tuple(parse_budget(text) for text in budgets)
    return stack_report(reading, Usage(), book, AS_OF, place="file.json", budgets=limits, waivers=waivers)


def step(stood: bool, stands: bool) -> Op:
    return Op.UPDATE if stood and stands else Op.DELETE if stood else Op.CREATE


def shown(report: StackReport, width: int = 100) -> str:
    return "\n".join(line.plain for line in estimate_lines(report, width)) + "\n"


def judged(report: StackReport, width: int = 100) -> str:
    return "\n".join(line.plain for line in check_lines(report, width)) + "\n"


def test_a_change_shows_both_sides_and_the_difference(book: PriceBook) -> None:
    """From 16 + 400 x 0.12 = 64 to 16 + 1200 x 0.12 = 160; one new of 64; one gone of 64; one that stays at 64."""
    before = (volume("grows"), volume("goes"), volume("stays"))
    after = (volume("grows", 1200), volume("stays"), volume("comes"))
    lines = shown(reported(after, book, before=before)).splitlines()
    assert " dev: +96.00 USD /month by this change" in lines
    assert " before 192.00 USD /month · after 288.00 USD /month" in lines
    figures = {line.split()[1]: line.split()[-3:] for line in lines if line.lstrip()[:2] in ("~ ", "+ ", "- ")}
    assert figures == {
        "grows": ["64.00", "160.00", "+96.00"],
        "comes": ["-", "64.00", "+64.00"],
        "goes": ["64.00", "-", "-64.00"],
    }
    assert next(line.split()[-3:] for line in lines if line.startswith(" total")) == ["192.00", "288.00", "+96.00"]
    assert not any(line.lstrip(" ~").startswith("stays") for line in lines)
    assert any(line.split() == ["1", "of", "an", "unchanged", "price", "64.00", "64.00", "0.00"] for line in lines)


def test_no_change_gives_no_line(book: PriceBook) -> None:
    text = shown(reported((volume("a"), volume("b")), book, before=(volume("a"), volume("b"))))
    assert " dev: 0.00 USD /month by this change" in text
    assert "hyperdisk-ml" not in text.split("Findings")[0]
    assert "2 of an unchanged price" in text


def test_what_hides_unchanged_resources_has_no_total(book: PriceBook) -> None:
    text = " ".join(shown(reported((volume("a"),), book, before=(), hidden=4)).split())
    assert "+64.00 USD /month by this change" in text
    assert "before" not in text.split("Resource")[0]
    assert "4 unchanged resources not shown: the total of the stack is not known" in text
    assert "--show-sames" in text


def test_a_line_that_resources_share_is_drawn_as_it_stands_in_each(book: PriceBook) -> None:
    rows = shown(reported((volume("coral"), volume("kelp"), volume("bare", 0)), book)).splitlines()
    drawn = [row[1:].partition(" ") for row in rows if row.startswith((" ├ capacity", " └ capacity"))]
    assert [sign for sign, _, _ in drawn] == ["├", "├", "└"]
    assert len({figures for _, _, figures in drawn}) == 1


def test_a_missing_side_is_no_zero(book: PriceBook) -> None:
    lines = shown(reported((volume("a", UNKNOWN),), book, before=(volume("a"),))).splitlines()
    (row,) = (line for line in lines if line.startswith(" ~ a"))
    assert row.split()[-4:-1] == ["64.00", "≥", "16.00"]
    assert " dev: -48.00 USD /month by this change, of the lower bounds" in lines


@pytest.mark.parametrize("width", [48, 60, 75, 76, 80, 100, 140])
def test_no_line_is_wider_than_the_page(book: PriceBook, width: int) -> None:
    after = (volume("grows", 1200), volume("far", zone="europe-west4-a"), volume("x" * 60, UNKNOWN))
    change = reported(after, book, before=(volume("grows"),), hidden=3, budgets=("100", "label:env=dev=1"))
    for text in (shown(change, width), judged(change, width), shown(reported(after, book), width)):
        for line in text.splitlines():
            assert cell_len(line) <= width, line


def test_names_that_a_terminal_would_obey_are_defused(book: PriceBook) -> None:
    report = reported((volume("\x1b[31mred\r\x07"),), book, before=(), budgets=("1",))
    for text in (shown(report), judged(report)):
        assert not {"\x1b", "\r", "\x07"} & set(text)


@pytest.mark.parametrize(
    ("resources", "budgets", "code", "words"),
    [
        ((volume("a"),), (), ExitCode.FINE, " PASS  dev  64.00 USD /month"),
        ((volume("a"),), ("64",), ExitCode.FINE, " PASS  dev  64.00 /month is within the budget of 64.00"),
        ((volume("a"),), ("63.99",), ExitCode.VIOLATED, " FAIL  dev  64.00 /month is 0.01 over the budget of 63.99"),
        ((volume("a", 10),), (), ExitCode.VIOLATED, "1 error"),
        ((volume("a", UNKNOWN),), ("100",), ExitCode.UNDECIDED, " UNDECIDED  dev  at least 16.00 /month of 100.00; a"),
        ((volume("a", UNKNOWN),), (), ExitCode.UNDECIDED, " UNDECIDED  dev  at least 16.00 USD /month; a: "),
        ((volume("a", zone="europe-west4-a"),), (), ExitCode.UNDECIDED, "no on-demand price for disk.hyperdisk-ml"),
    ],
)
def test_the_verdict_comes_first_with_its_reason(
    book: PriceBook, resources: tuple[Resource, ...], budgets: tuple[str, ...], code: ExitCode, words: str
) -> None:
    report = reported(resources, book, budgets=budgets)
    assert report.verdict is code
    assert words in " ".join(judged(report).splitlines()[:2]).replace("    ", " ").replace("   ", " ")


def test_a_budget_on_the_total_never_passes_where_resources_are_hidden(book: PriceBook) -> None:
    report = reported((volume("a"),), book, before=(), hidden=4, budgets=("1000000",))
    assert report.verdict is ExitCode.UNDECIDED
    assert "hide" in reason(report) or "not shown" in reason(report)


def test_every_budget_is_told_once(book: PriceBook) -> None:
    text = judged(reported((volume("a"),), book, budgets=("10", "label:env=dev=20", f"type:{DISK}=500")))
    assert text.startswith(" FAIL  dev  64.00 /month is 54.00 over the budget of 10.00")
    assert " ✗ BUDGET-LABEL env=dev  64.00 /month is 44.00 over" in text
    assert f" ✓ BUDGET-TYPE {DISK}  64.00 /month is within" in text
    assert "BUDGET-TOTAL" not in text


def test_a_waived_finding_does_not_fail_and_is_named(book: PriceBook) -> None:
    waiver = Waiver(rule="DISK-LIMITS", urn="*::a", reason="we know", until=datetime.date(2026, 12, 1))
    report = reported((volume("a", 10),), book, waivers=(waiver,))
    assert report.verdict is ExitCode.FINE
    assert " waived: DISK-LIMITS  a (we know, until 2026-12-01)" in judged(report)
    assert "1 waived" in judged(report)


def test_of_many_findings_of_one_rule_the_first_are_told_and_the_others_counted(book: PriceBook) -> None:
    report = reported(tuple(volume(f"v{number}", 10) for number in range(23)), book)
    for text in (judged(report), shown(report)):
        assert text.count("✗ DISK-LIMITS") == 20
        assert " … DISK-LIMITS: 3 more, all of them in --format json" in text
        assert "23 errors" in text


def test_an_interrupted_creation_is_possible_and_outside_the_total(book: PriceBook) -> None:
    reading = Reading(
        kind=SourceKind.STATE, project="acme", stack="dev", after=ResourceSet(()), possible=(volume("orphan"),)
    )
    report = stack_report(reading, Usage(), book, AS_OF, place="state.json")
    assert report.verdict is ExitCode.FINE
    text = " ".join(shown(report).split())
    assert "dev costs 0.00 USD /month" in text
    assert "possible 64.00 a month: interrupted while creating orphan" in text


def test_a_comparison_reads_like_a_change(book: PriceBook) -> None:
    one, two = (
        Side(name=name, after=estimate(ResourceSet((volume("a", mibps),)), Usage(), book, AS_OF))
        for name, mibps in (("one", 400), ("two", 1200))
    )
    report = replace(reported((), book), change=compare(one, two), place="one two")
    text = "\n".join(line.plain for line in estimate_lines(report, 100, command="diff"))
    assert text.startswith("spotrail diff one two")
    assert "+96.00 USD /month" in text
    assert report.change.delta is not None
    assert report.change.delta.monthly == Decimal(96)
