"""The reports of an audit: the same figures in every form, strict JSON, names that stay names."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from policies.audit.model import Audit, VerdictKind
from policies.report.audit_csv import COLUMNS, audit_csv
from policies.report.audit_html import audit_html
from policies.report.audit_json import audit_json
from policies.report.audit_markdown import LIMIT, audit_markdown
from policies.report.audit_table import audit_lines
from tests.policies.report.audit_sample import audit, verdicts

HOSTILE = st.text(min_size=1, max_size=40) | st.sampled_from(
    [
        "=1+1",
        "@SUM(A1)",
        "<script>alert(1)</script>",
        "</script>",
        "\x1b[31mred",
        "a|b",
        "[x](http://y)",
        "\u202etxt",
        "NaN",
    ]
)


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def strict(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(text, parse_constant=refuse)
    return found


def table(found: Audit, width: int = 120, *, everything: bool = False) -> str:
    return "\n".join(line.plain for line in audit_lines(found, width, everything=everything))


def test_json_has_the_documented_keys_and_exact_figures() -> None:
    found = strict(audit_json(audit()))
    assert found["schema"] == "spotrail.audit/1"
    assert (found["monthly_waste"], found["wasted_so_far"], found["complete"]) == ("1680.00", "673.43", False)
    first, second, third, _ = found["verdicts"]  # type: ignore[misc]
    assert set(first) == {
        *("resource", "type", "location", "verdict", "coverage", "provisioned_mibps", "mean_mibps", "p99_mibps"),
        *("p99_points_s", "peak_mibps", "monthly_waste", "wasted_so_far", "since", "since_confidence", "remedy"),
        "message",
    }
    assert first["since"] == "2026-11-02T08:30:00Z"
    assert first["remedy"]["kind"] == "snapshot-then-delete"
    assert (second["p99_mibps"], second["p99_points_s"]) == ("33.333333333333", "60")
    assert (third["monthly_waste"], third["remedy"], third["since"]) == (None, None, None)


def test_every_form_agrees_with_the_json() -> None:
    rows = list(csv.DictReader(io.StringIO(audit_csv(audit()))))
    said = strict(audit_json(audit()))["verdicts"]
    assert [row["monthly_waste"] for row in rows] == [each["monthly_waste"] or "" for each in said]  # type: ignore[attr-defined]
    assert tuple(rows[0]) == COLUMNS
    for text in (table(audit()), audit_markdown(audit()), audit_html(audit())):
        assert "1,680.00" in text
        assert "673.43" in text
        assert "at least" in text


def test_the_table_answers_first_and_counts_what_needs_nothing() -> None:
    lines = table(audit()).splitlines()
    assert lines[0].startswith(" Idle now: at least 1,680.00 USD /month, 673.43 so far")
    assert lines[0].endswith("project p1 · 7 days to 2026-11-15 09:55Z")
    assert (
        "    1,440.00      618.20  IDLE_UNATTACHED    disk llama-old (us-central1-b): 12,000 MiB/s, no reader"
        in table(audit(), 140)
    )
    assert "           ?           ?  UNKNOWN_TELEMETRY" in table(audit())
    assert "and nothing to do about: 1 IN_USE" in table(audit())
    assert "busy" not in table(audit())
    assert "disk busy" in table(audit(), everything=True)
    assert "Not seen: compute.disks us-east1-d: 403 in us-east1-d" in table(audit())


def test_what_is_typed_next_stands_whole_on_its_line() -> None:
    long = f"spotrail audit --from {'week' * 30}.json --plan remedies.json"
    lines = [line.plain for line in audit_lines(audit(), 60, next_steps=(long, "spotrail audit"))]
    assert lines[-2:] == [f" Next: {long}", "       spotrail audit"]


def test_what_is_wasted_since_nobody_knows_when_is_a_lower_bound() -> None:
    known, *_ = verdicts()
    dark = dataclasses.replace(known, since=None, wasted_so_far=None, resource="projects/p1/zones/z/disks/dark")
    found = dataclasses.replace(audit(gap=""), verdicts=(known, dark), findings=())
    assert found.complete
    for text in (table(found), audit_markdown(found), audit_html(found)):
        assert "2,880.00" in text
        assert "at least 618.20 so far" in text
    assert "at least" not in table(dataclasses.replace(found, verdicts=(known,)))


def test_a_cache_goes_by_its_bucket() -> None:
    cache = dataclasses.replace(
        verdicts()[0], resource="b/acme/anywhereCaches/us-central1-b", type="storage.anywhereCache"
    )
    found = dataclasses.replace(audit(), verdicts=(cache,))
    for text in (table(found), audit_markdown(found), audit_html(found)):
        assert "cache acme" in text


def test_the_page_has_the_worst_first_and_what_is_not_known_below_it() -> None:
    rows = json.loads(audit_html(audit()).partition('type="application/json">')[2].partition("</script>")[0])["rows"]
    assert [row["shown"]["waste"] for row in rows] == ["1,440.00", "240.00", "?", "0.00"]
    assert [row["rank"]["waste"] for row in rows] == [4, 3, 2, 1]
    assert rows[0]["what"].endswith("→ delete after snapshot")


def test_a_clean_audit_says_so() -> None:
    clean = dataclasses.replace(audit(gap=""), verdicts=verdicts()[3:], findings=())
    assert table(clean).splitlines()[0].startswith(" Idle now: 0.00 USD /month, 0.00 so far")
    assert clean.complete
    assert "Nothing is wasted." in audit_markdown(clean)
    assert "| Waste" not in audit_markdown(clean)


def test_notes_stand_in_every_form_for_people() -> None:
    found = dataclasses.replace(audit(), notes=("a price is stale",))
    for text in (table(found), audit_markdown(found), audit_html(found)):
        assert "a price is stale" in text


@pytest.mark.parametrize("width", [48, 60, 80, 100, 160])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    assert all(line.cell_len <= width for line in audit_lines(audit(), width))


@given(name=HOSTILE, gap=HOSTILE, message=HOSTILE)
def test_no_text_commands_a_terminal_a_page_or_a_sheet(name: str, gap: str, message: str) -> None:
    found = audit(name.replace("/", "-"), gap, message)
    strict(audit_json(found))
    assert all(char.isprintable() or char == "\n" for char in table(found))
    page = audit_html(found)
    assert page.count("<script") == 2
    assert page.lower().count("</script>") == 2
    for row in csv.reader(io.StringIO(audit_csv(found))):
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row)
    comment = MarkdownIt("commonmark", {"html": True}).enable("table").parse(audit_markdown(found))
    kinds = {token.type for block in comment for token in (block, *(block.children or ()))}
    assert not kinds & {"html_inline", "html_block", "link_open", "image"}


def test_a_comment_stays_below_the_limit_and_counts_what_has_no_room() -> None:
    many = dataclasses.replace(audit(), verdicts=verdicts()[:1] * 5_000)
    text = audit_markdown(many)
    assert len(text) < LIMIT
    shown = text.count("IDLE\\_UNATTACHED")
    assert f"… {5_000 - shown:,} more" in text


@pytest.mark.parametrize("form", [audit_json, audit_csv, audit_markdown, audit_html])
def test_the_same_audit_gives_the_same_text(form: Callable[[Audit], str]) -> None:
    assert form(audit()) == form(audit())


def test_an_unknown_verdict_is_counted_in_the_answer() -> None:
    assert sum(verdict.kind is VerdictKind.UNKNOWN_TELEMETRY for verdict in audit().verdicts) == 1
    assert "Could not be judged: 1" in table(audit())
