"""The page of the audit lists every verdict and every remedy, and says of each what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from policies.audit.model import RemedyKind, VerdictKind
from policies.audit.remedies.checking import MOST_AGE
from policies.audit.remedies.planning import ENDINGS, LAST_COPIES
from tests.test_documents import README, ROOT, table

PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


def test_every_verdict_is_on_the_page() -> None:
    assert [row[0] for row in table(PAGE, "| Verdict |")] == [f"`{kind.value}`" for kind in VerdictKind]


def test_every_remedy_is_on_the_page_with_what_the_guard_does_of_it() -> None:
    rows = {row[0].strip("`"): row for row in table(PAGE, "| Remedy |")}
    assert list(rows) == [kind.value for kind in RemedyKind]
    for kind in RemedyKind:
        clock = kind is RemedyKind.SCHEDULE_THROUGHPUT
        guard = "yes" if kind.safe or clock else "past its `ttl`" if kind in ENDINGS else "no"
        assert rows[kind.value][2] == guard
        assert ("only when named" in rows[kind.value][1]) is (kind in LAST_COPIES)


def test_the_age_of_a_plan_is_the_one_of_the_code() -> None:
    assert MOST_AGE.days == 3
    assert "more than three days ago" in PAGE


def test_the_readme_leads_to_the_page() -> None:
    (row,) = (line for line in README.splitlines() if "`spotrail audit " in line and line.startswith("|"))
    assert "(docs/audit.md)" in row


@pytest.mark.parametrize("option", sorted(set(re.findall(r"--[a-z][a-z-]+", PAGE))))
def test_every_option_on_the_page_is_one(option: str) -> None:
    shown = subprocess.run(
        [Path(sys.executable).with_name("spotrail"), "audit", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert option in shown
