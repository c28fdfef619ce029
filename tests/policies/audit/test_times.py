"""Times with every offset and fraction that the APIs send; what is no time is refused by name."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.audit.record import Item
from policies.audit.times import epoch, instant, when
from policies.errors import InputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-01T00:59:00Z", "2026-05-01T00:59:00+00:00"),
        ("2026-05-15T20:00:00.123-07:00", "2026-05-16T03:00:00.123000+00:00"),
        ("2026-05-15T20:00:00.123456789Z", "2026-05-15T20:00:00.123456+00:00"),
        ("2026-05-15t20:00:00.5z", "2026-05-15T20:00:00.500000+00:00"),
        ("2026-05-15T20:00:00+05:30", "2026-05-15T14:30:00+00:00"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00+00:00"),
        ("2024-02-29T12:00:00-00:00", "2024-02-29T12:00:00+00:00"),
    ],
)
def test_one_instant(text: str, expected: str) -> None:
    assert instant(text).isoformat() == expected


@pytest.mark.parametrize(
    "text",
    [
        "2026-05-15T20:00:00",  # no zone: nobody knows when
        "2026-05-15",
        "2026-05-15 20:00:00Z",
        "20260515T200000Z",
        "2026-02-30T00:00:00Z",
        "2026-05-15T24:00:00Z",
        "2026-05-15T20:00:61Z",
        "2026-05-15T20:00:00+24:00",
        "2026-05-15T20:00:00.1234567890Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:60Z",
        "٢٠٢٦-05-15T20:00:00Z",
        "yesterday",
        "",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no time; it must be RFC 3339"):
        instant(text)


@given(st.datetimes(timezones=st.just(datetime.UTC)))
def test_what_is_written_is_read_again(moment: datetime.datetime) -> None:
    assert instant(moment.isoformat()) == moment


def test_seconds_of_the_epoch() -> None:
    assert epoch("1970-01-02T00:00:00.25Z") == 86400.25


def test_a_field_of_a_resource() -> None:
    disk: Item = {
        "name": "d",
        "creationTimestamp": "2026-05-01T00:00:00Z",
        "lastDetachTimestamp": "",
        "size": 3,
        "bad": "x",
    }
    assert when(disk, "creationTimestamp") == datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
    assert when(disk, "lastDetachTimestamp") is None
    assert when(disk, "lastAttachTimestamp") is None
    with pytest.raises(InputError, match='d: bad: "x" is no time'):
        when(disk, "bad")
    with pytest.raises(InputError, match="d: size is 3; a time is text"):
        when(disk, "size")
