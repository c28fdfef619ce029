"""Labels `ttl`: what they say, and what is no time to live."""

from __future__ import annotations

import datetime

import pytest

from infra.settings.formats import TTL
from policies.audit.ttl import TtlError, created, end_of, time_to_live
from policies.errors import InputError
from policies.rules.labels import valid_ttl

HOUR = datetime.timedelta(hours=1)
GOOD = {"1h": HOUR, "12h": 12 * HOUR, "7d": 168 * HOUR, "9999d": 9999 * 24 * HOUR}
BAD = ("", "7", "d", "0d", "07d", "-1h", "7D", "1w", "1.5h", "7d ", "seven", "12h30m", "99999d", "٧d", "forever")


@pytest.mark.parametrize("label", GOOD)
def test_a_label_says_hours_or_days(label: str) -> None:
    assert time_to_live(label) == GOOD[label]


@pytest.mark.parametrize("label", BAD)
def test_anything_else_is_refused_with_the_form(label: str) -> None:
    with pytest.raises(TtlError, match="the guard understands hours or days, as in 12h or 7d"):
        time_to_live(label)


@pytest.mark.parametrize("label", GOOD)
def test_stack_files_and_rules_take_what_the_guard_understands(label: str) -> None:
    assert TTL(label) is None
    assert valid_ttl(label)


@pytest.mark.parametrize("label", [label for label in BAD if label])
def test_stack_files_refuse_what_the_guard_does_not_understand(label: str) -> None:
    assert TTL(label) is not None


def test_the_end_counts_from_the_creation_and_is_over_only_afterwards() -> None:
    born = created({"name": "pod", "createTime": "2026-11-01T12:00:00.123456789Z"})
    end = end_of("7d", born)
    assert end.at == datetime.datetime(2026, 11, 8, 12, 0, 0, 123456, tzinfo=datetime.UTC)
    assert not end.over(end.at)
    assert end.over(end.at + datetime.timedelta(microseconds=1))


def test_no_end_after_the_last_day_that_there_is() -> None:
    with pytest.raises(TtlError, match="there is no such day"):
        end_of("9999d", datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC))


@pytest.mark.parametrize("key", ["creationTimestamp", "createTime", "timeCreated"])
def test_every_api_has_its_own_word_for_the_creation(key: str) -> None:
    assert created({key: "2026-11-01T05:00:00-07:00"}) == datetime.datetime(2026, 11, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize("item", [{}, {"createTime": None}, {"createTime": ""}, {"createTime": 7}, {"createTime": "x"}])
def test_no_creation_is_refused(item: dict[str, object]) -> None:
    with pytest.raises(InputError):
        created(item)  # type: ignore[arg-type]
