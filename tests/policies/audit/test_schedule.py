"""Throughput schedules: the text and its label, the hours by the clock on the wall, and Google's six hours."""

from __future__ import annotations

import contextlib
import datetime
import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.audit.schedule import DAYS, read_schedule
from policies.errors import InputError

OFFICE = "mon-fri 08:00-18:00 Europe/Berlin 1200"


def moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("when", "mibps"),
    [
        ("2026-11-30T06:59:00+00:00", 400),  # Monday 07:59 in Berlin, winter
        ("2026-11-30T07:00:00+00:00", 1200),
        ("2026-11-30T16:59:59+00:00", 1200),
        ("2026-11-30T17:00:00+00:00", 400),
        ("2026-07-06T06:00:00+00:00", 1200),  # Monday 08:00 in Berlin, summer
        ("2026-11-28T12:00:00+00:00", 400),  # Saturday
    ],
)
def test_office_hours_follow_the_clock_on_the_wall(when: str, mibps: int) -> None:
    assert read_schedule(OFFICE).mibps_at(moment(when), 400) == mibps


def test_a_night_belongs_to_the_day_on_which_it_begins() -> None:
    night = read_schedule("fri 22:00-06:00 UTC 2000")
    assert night.high_at(moment("2026-11-28T05:59:00+00:00"))  # Saturday morning
    assert not night.high_at(moment("2026-11-28T06:00:00+00:00"))
    assert not night.high_at(moment("2026-11-27T05:00:00+00:00"))  # Friday morning
    assert night.share == Fraction(8, 168)


def test_the_mean_is_what_a_week_is_billed_for() -> None:
    # 50 of 168 hours at 1,200, the others at 400: 400 + 800 x 50/168
    assert read_schedule(OFFICE).mean_mibps(400) == 400 + 800 * Fraction(50, 168)
    # never below the floor, even where the high hours ask for less
    assert read_schedule("mon-sun 08:00-18:00 UTC 100").mean_mibps(400) == 400


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "America/Argentina/Buenos_Aires"])
@pytest.mark.parametrize("days", ["mon-fri", "sat,sun", "mon,wed,fri", "mon-sun", "fri-mon", "thu-tue"])
def test_text_and_label_are_read_back(days: str, zone: str) -> None:
    found = read_schedule(f"{days} 08:00-18:00 {zone} 1200")
    assert read_schedule(found.text()) == found
    assert read_schedule(found.label()) == found
    assert len(found.label()) <= 63
    assert not set(found.label()) - set("abcdefghijklmnopqrstuvwxyz0123456789_-")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has four parts"),
        ("mon-fri 08:00-18:00 1200", "it has four parts"),
        ("mon-fry 08:00-18:00 UTC 1200", '"fry" is no day'),
        ("mon-fri 8-18 UTC 1200", 'the hours are "8-18"; write them as 08:00-18:00'),
        ("mon-fri 08:00-25:00 UTC 1200", "the hours are"),
        ("mon-fri 08:00-18:00 Europe/Berln 1200", "Did you mean Europe/Berlin"),
        ("mon-fri 08:00-18:00 UTC 1.5", 'the throughput is "1.5"; it must be whole MiB/s'),
        ("mon-fri 08:00-18:00 UTC 0", "it must be more than 0"),
        ("mon-fri 08:00-13:59 UTC 1200", "two changes lie 5:59:00 apart; Google takes a change"),
        ("mon-fri 00:00-18:01 UTC 1200", "two changes lie 5:59:00 apart"),
    ],
)
def test_a_wrong_schedule_is_refused_with_the_part_and_the_rule(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        read_schedule(text)


def test_a_weekend_that_is_high_all_through_has_two_changes() -> None:
    whole = read_schedule("sat,sun 00:00-24:00 UTC 900")
    assert whole.share == Fraction(2, 7)
    assert not whole.high_at(moment("2026-11-30T00:00:00+00:00"))


@given(
    days=st.sets(st.sampled_from(DAYS), min_size=1),
    start=st.integers(0, 1439),
    length=st.integers(360, 1080),
    at=st.datetimes(min_value=datetime.datetime(2026, 1, 1), max_value=datetime.datetime(2027, 1, 1)),  # noqa: DTZ001
)
def test_no_six_hours_see_two_changes(days: set[str], start: int, length: int, at: datetime.datetime) -> None:
    end = (start + length) % 1440
    text = f"{','.join(sorted(days))} {start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02} UTC 1200"
    found = read_schedule(text)
    begin = at.replace(tzinfo=datetime.UTC)
    seen = [found.high_at(begin + datetime.timedelta(minutes=minute)) for minute in range(360)]
    assert sum(one != other for one, other in itertools.pairwise(seen)) <= 1


@given(st.text(max_size=60))
def test_no_text_makes_a_traceback(text: str) -> None:
    with contextlib.suppress(InputError):
        found = read_schedule(text)
        assert read_schedule(found.text()) == found
