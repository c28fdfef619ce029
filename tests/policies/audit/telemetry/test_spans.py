"""Sets of time, against the same sets of single microseconds."""

from __future__ import annotations

import datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from policies.audit.telemetry.spans import Span, common, length, micros, moment, united, without

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


def ticks(spans: tuple[Span, ...] | list[Span]) -> set[int]:
    return {tick for start, end in spans for tick in range(start, end)}


@given(SPANS, SPANS)
def test_sets_of_time_are_sets_of_moments(one: list[Span], other: list[Span]) -> None:
    left, right = united(one), united(other)
    assert ticks(left) == ticks(one)
    assert all(before[1] < after[0] for before, after in pairwise(left))
    assert ticks(common(left, right)) == ticks(one) & ticks(other)
    assert ticks(without(left, right)) == ticks(one) - ticks(other)
    assert length(left) == len(ticks(one))


@given(st.datetimes(timezones=st.just(datetime.UTC)))
def test_microseconds_are_exact(when: datetime.datetime) -> None:
    assert moment(micros(when)) == when


def test_the_epoch() -> None:
    assert micros(datetime.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=datetime.UTC)) == 1_000_005
