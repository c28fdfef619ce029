"""Pages that are put together from bytes are what protobuf itself would have written."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.cloud import monitoring_v3
from hypothesis import given
from hypothesis import strategies as st

from tests.google_cloud import wire
from tests.google_cloud.alignment import Column
from tests.google_cloud.descriptors import DELTA

INT64 = st.integers(-(2**63), 2**63 - 1)


def read(page: bytes) -> Any:
    return monitoring_v3.ListTimeSeriesResponse.pb(monitoring_v3.ListTimeSeriesResponse.deserialize(page))


def column(values: list[float], *, whole: bool, span: int = 60, nanos: int = 0) -> Column:
    ends = [1_795_953_600 - 60 * index for index in range(len(values))]
    return Column(ends=ends, nanos=nanos, span=span, values=values, kind=DELTA, whole=whole)


@given(
    values=st.lists(INT64 | st.just(0), min_size=1),
    span=st.sampled_from([0, 60, 3600]),
    nanos=st.integers(0, 10**9 - 1),
)
def test_whole_numbers(values: list[int], span: int, nanos: int) -> None:
    made = column([*values], whole=True, span=span, nanos=nanos)
    (series,) = read(wire.page([wire.points(made, 0, len(values))], "")).time_series
    assert [point.value.int64_value for point in series.points] == values
    assert {point.value.WhichOneof("value") for point in series.points} == {"int64_value"}
    assert [point.interval.end_time.seconds for point in series.points] == made.ends
    assert {point.interval.end_time.nanos for point in series.points} == {nanos}
    lengths = {point.interval.end_time.seconds - point.interval.start_time.seconds for point in series.points}
    assert lengths == {span}


@given(values=st.lists(st.floats(allow_nan=False), min_size=1))
def test_fractions(values: list[float]) -> None:
    (series,) = read(wire.page([wire.points(column(values, whole=False), 0, len(values))], "")).time_series
    assert [point.value.double_value for point in series.points] == values
    assert {point.value.WhichOneof("value") for point in series.points} == {"double_value"}


def test_what_is_no_number() -> None:
    (series,) = read(wire.page([wire.points(column([math.nan], whole=False), 0, 1)], "")).time_series
    assert math.isnan(series.points[0].value.double_value)


@given(values=st.lists(st.sampled_from([0, 1, 2**40]), min_size=2), data=st.data())
def test_parts_of_a_series_make_the_whole(values: list[float], data: st.DataObject) -> None:
    made = column(values, whole=True)
    cut = data.draw(st.integers(0, len(values)))
    parts = wire.points(made, 0, cut) + wire.points(made, cut, len(values))
    assert parts == wire.points(made, 0, len(values))


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**32, 2**63 - 1, -1, -(2**63)])
def test_varints(number: int) -> None:
    value = monitoring_v3.TypedValue.pb(monitoring_v3.TypedValue(int64_value=number))
    assert b"\x10" + wire.varint(number) == value.SerializeToString()


def test_a_page_has_its_token_and_its_errors() -> None:
    page = read(wire.page([], "next", [b"\x12\x03why"]))
    assert (page.next_page_token, [error.message for error in page.execution_errors]) == ("next", ["why"])
