"""Money over time, and what may be said of a half-seen world."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import pytest

from policies.audit.model import RemedyKind, Since, VerdictKind
from policies.audit.record import Missing, Part
from policies.audit.subjects import Subject
from policies.audit.telling import day, if_seen, length, many, money, remedy, spent, tell
from policies.money import Amount
from tests.policies.audit.worlds import NOW, context, disk, node

HOUR = datetime.timedelta(hours=1)


@pytest.mark.parametrize(
    ("rate", "span", "cost"),
    [
        (Amount.by_month(730), HOUR, "1"),
        (Amount.by_month(Decimal("1440")), 313 * HOUR, "617.424657534247"),
        (Amount.by_hour(Decimal("4.80")), datetime.timedelta(minutes=5), "0.40"),
        (Amount.by_month(Fraction(1, 3)), 730 * HOUR, "0.333333333333"),
        (Amount.by_hour(3600), datetime.timedelta(microseconds=1), "0.000001"),
        (Amount.by_hour(1), -HOUR, "0"),
    ],
)
def test_money_over_time_is_exact_and_divided_once(rate: Amount, span: datetime.timedelta, cost: str) -> None:
    assert spent(rate, NOW - span, NOW) == Decimal(cost)


def test_without_a_time_or_a_price_nothing_was_wasted_that_could_be_counted() -> None:
    subject, rate = Subject(part=Part.DISKS, item=disk()), Amount.by_month(1)
    seen, kind = context({Part.DISKS: []}), VerdictKind.ORPHANED
    counted = tell(seen, subject, kind, "why", waste=rate, since=NOW - HOUR, confidence=Since.EXACT)
    assert counted.wasted_so_far == spent(rate, NOW - HOUR, NOW)
    assert tell(seen, subject, kind, "why", waste=rate).wasted_so_far is None
    assert tell(seen, subject, kind, "why", since=NOW - HOUR, confidence=Since.EXACT).wasted_so_far is None
    assert tell(seen, subject, kind, "why", waste=rate, since=NOW - HOUR).wasted_so_far is None


@pytest.mark.parametrize(
    ("missing", "asked", "said"),
    [
        ((Missing(part="tpu.nodes us-east1-d", why="503"),), True, "tpu.nodes could not be read whole"),
        ((), False, "tpu.nodes was not asked for"),
    ],
)
def test_a_half_seen_part_gives_no_verdict_on_idleness(missing: tuple[Missing, ...], asked: bool, said: str) -> None:
    seen = context({Part.NODES: [node()]} if asked else {}, missing=missing)
    advice = remedy(RemedyKind.DELETE_NODE, "delete", Amount.by_month(1))
    found = tell(
        seen,
        Subject(part=Part.NODES, item=node()),
        VerdictKind.IDLE_SLICE,
        "quiet",
        waste=Amount.by_month(1),
        since=NOW,
        confidence=Since.EXACT,
        remedy=advice,
    )
    blind = if_seen(seen, found, Part.NODES)
    assert (blind.kind, blind.waste, blind.wasted_so_far, blind.since) == (VerdictKind.UNKNOWN_STATE, None, None, None)
    assert (blind.since_confidence, blind.remedy) == (Since.UNKNOWN, None)
    assert blind.message == f"{said}, or it would be IDLE_SLICE: quiet"
    assert if_seen(context({Part.NODES: [node()]}), found, Part.NODES) is found


def test_words() -> None:
    spans = [datetime.timedelta(minutes=45), 3.5 * HOUR, 47 * HOUR, 48 * HOUR, -HOUR]
    assert [length(span) for span in spans] == ["45 minutes", "3.5 hours", "47 hours", "2 days", "0 minutes"]
    assert (many(1, "disk"), many(2, "disk"), many(1200, "address", "addresses")) == (
        "1 disk",
        "2 disks",
        "1,200 addresses",
    )
    assert money(Amount.by_month(Decimal("1234.5"))) == "1,234.50 /month"


def test_a_day_of_another_year_is_told_with_it() -> None:
    west = datetime.timezone(datetime.timedelta(hours=-8))
    times = [NOW.replace(month=2, day=3), NOW.replace(year=2024), datetime.datetime(2025, 12, 31, 20, tzinfo=west)]
    assert NOW.year == 2026
    assert [day(time, NOW) for time in times] == ["02-03", f"2024-{NOW:%m-%d}", "01-01"]
