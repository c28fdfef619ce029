"""Metrics: which window, which queries, and how the messages of Cloud Monitoring become series."""

import datetime
import math
from collections.abc import Sequence
from typing import Any

import pytest
from google.cloud import monitoring_v3
from hypothesis import given
from hypothesis import strategies as st

from policies.audit.live import metrics
from policies.audit.live.access import Access, Clients
from policies.audit.live.metrics import affordable, chunks, filter_of, hourly_request, minute_readers, window_before
from policies.audit.live.packing import Packer
from policies.audit.record import Kind, Metric, Point, Series, Window
from tests.google_cloud import filters
from tests.google_cloud.server import served
from tests.google_cloud.world import PROJECT, World
from tests.policies.audit.small_world import NOW

T = 1_796_000_000
DELTA, GAUGE, CUMULATIVE = 2, 1, 3
BOOL, INT64, DOUBLE, STRING, DISTRIBUTION = 1, 2, 3, 4, 5
DAY = datetime.timedelta(days=1)
WEEK = Window(start=NOW - 7 * DAY, end=NOW)


def message(
    *points: tuple[int | None, int, dict[str, Any]],
    kind: int = DELTA,
    values: int = INT64,
    name: str = "d",
    nanos: int = 0,
) -> Any:
    """A TimeSeries message; a point is start, end and the fields of its value."""
    series = monitoring_v3.TimeSeries.pb(monitoring_v3.TimeSeries())
    series.metric.type = Metric.READ_BYTES.value
    series.metric.labels["device_name"] = name
    series.resource.type = "gce_instance"
    series.resource.labels["instance_id"] = "17"
    series.metric_kind, series.value_type = kind, values
    for start, end, value in points:
        point = series.points.add()
        if start is not None:
            point.interval.start_time.seconds, point.interval.start_time.nanos = start, nanos
        point.interval.end_time.seconds, point.interval.end_time.nanos = end, nanos
        for field, given_value in value.items():
            setattr(point.value, field, given_value)
    return series


def packed(*pages: Sequence[Any]) -> list[Series]:
    packing = Packer().packing()
    for page in pages:
        packing.add(page)
    return list(packing.series())


def hours(*values: int, last: int = T) -> list[tuple[int, int, dict[str, Any]]]:
    """Hourly points, newest first, with these numbers."""
    return [(last - 3600 * (at + 1), last - 3600 * at, {"int64_value": value}) for at, value in enumerate(values)]


def test_a_message_becomes_a_series() -> None:
    (series,) = packed([message(*hours(5, 0))])
    assert list(series.points()) == [Point(T - 3600, T, 5), Point(T - 7200, T - 3600, 0)]
    assert (series.kind, series.whole, series.unreadable) == (Kind.DELTA, True, 0)
    assert (series.metric_labels, series.resource_labels) == ({"device_name": "d"}, {"instance_id": "17"})
    assert series.resource_type == "gce_instance"


def test_a_gauge_without_a_start_is_at_an_instant() -> None:
    (series,) = packed([message((None, T, {"double_value": 0.5}), kind=GAUGE, values=DOUBLE)])
    assert list(series.points()) == [Point(T, T, 0.5)]
    assert (series.kind, series.whole) == (Kind.GAUGE, False)


def test_parts_of_a_second_are_kept_to_the_microsecond() -> None:
    (series,) = packed([message(*hours(5), nanos=250_000_999)])
    assert list(series.points()) == [Point(T - 3600 + 0.25, T + 0.25, 5)]


@pytest.mark.parametrize(
    ("values", "value"),
    [
        (DOUBLE, {"double_value": math.nan}),
        (DOUBLE, {"double_value": math.inf}),
        (DOUBLE, {"double_value": -math.inf}),
        (DOUBLE, {}),
        (INT64, {}),
        (INT64, {"double_value": 5.0}),
        (BOOL, {"bool_value": True}),
        (STRING, {"string_value": "7"}),
        (DISTRIBUTION, {}),
    ],
)
def test_what_is_no_finite_number_is_counted_and_never_zero(values: int, value: dict[str, Any]) -> None:
    field = "double_value" if values == DOUBLE else "int64_value"
    good = {field: 3} if values in (INT64, DOUBLE) else value
    (series,) = packed([message((T - 7200, T - 3600, value), (T - 3600, T, good), values=values)])
    assert [point.value for point in series.points()] == ([3] if values in (INT64, DOUBLE) else [])
    assert series.unreadable == 2 - len(series)


@pytest.mark.parametrize("start", [None, T, T + 1])
def test_an_amount_over_no_time_is_counted_as_unreadable(start: int | None) -> None:
    (series,) = packed([message((start, T, {"int64_value": 5}), *hours(7, last=T - 3600))])
    assert list(series.points()) == [Point(T - 7200, T - 3600, 7)]
    assert series.unreadable == 1


def test_a_series_that_goes_on_in_another_page_is_one() -> None:
    whole = hours(*range(6))
    first, second, third = message(*whole[:2]), message(*whole[2:3]), message(*whole[3:])
    other = message(*whole, name="e")
    found = packed([other, first], [second], [third, message(*hours(9), name="f")])
    assert [series.metric_labels["device_name"] for series in found] == ["e", "d", "f"]
    assert list(found[0].points()) == list(found[1].points()) == [Point(s, e, v["int64_value"]) for s, e, v in whole]


def test_the_same_times_of_many_series_are_kept_once() -> None:
    found = packed([message(*hours(1, 2, 3), name=str(at)) for at in range(3)], [message(*hours(4, 5, 6), name="3")])
    assert all(series.starts is found[0].starts and series.ends is found[0].ends for series in found)
    assert [list(series.values) for series in found][-1] == [4, 5, 6]


def test_series_with_other_times_are_not_mixed_up() -> None:
    twice = [message(*hours(1, 2, last=T - 60 * at), name=str(at)) for at in range(40)]
    found = packed(twice, [message(*hours(3, last=T - 7200 - 60 * at), name=str(at)) for at in range(40)])
    for at, series in enumerate(found):
        assert list(series.ends) == [T - 60 * at, T - 60 * at - 3600, T - 60 * at - 7200]
        assert list(series.values) == [1, 2, 3]


def test_points_out_of_order_stay_as_they_came() -> None:
    newest, middle, oldest = hours(1, 2, 3)
    (series,) = packed([message(middle, newest, oldest)])
    assert list(series.values) == [2, 1, 3]
    assert list(series.ends) == [T - 3600, T, T - 7200]


def test_kinds_are_told_apart_and_an_unknown_one_says_nothing() -> None:
    found = packed([message(*hours(1), kind=kind) for kind in (DELTA, CUMULATIVE, 0)])
    assert [series.kind for series in found] == [Kind.DELTA, Kind.CUMULATIVE]


def test_the_window_ends_five_minutes_ago_at_a_full_minute() -> None:
    east = datetime.timezone(datetime.timedelta(hours=2))
    now = datetime.datetime(2026, 11, 29, 14, 3, 20, 999, tzinfo=east)
    window = window_before(now, 7 * DAY)
    assert window.end == datetime.datetime(2026, 11, 29, 11, 58, tzinfo=datetime.UTC)
    assert window.end.tzinfo is datetime.UTC
    assert window.start == window.end - 7 * DAY


@pytest.mark.parametrize("metric", Metric)
def test_a_query_is_of_one_metric_of_the_whole_project(metric: Metric) -> None:
    request = hourly_request(PROJECT, WEEK, metric)
    assert request.name == f"projects/{PROJECT}"
    assert request.filter == f'metric.type = "{metric.value}"'
    minutes = 10 if metric is Metric.DUTY_CYCLE else 60
    assert request.aggregation.alignment_period == datetime.timedelta(minutes=minutes)
    assert request.page_size == 50_000


def test_minutes_of_a_week_are_affordable_for_hundreds_of_volumes() -> None:
    assert affordable(WEEK) == 496
    assert affordable(Window(start=NOW - DAY, end=NOW)) == 3472
    assert affordable(Window(start=NOW - 10_000 * DAY, end=NOW)) == 1


pairs = st.lists(
    st.tuples(st.integers(0, 10**19).map(str), st.text(st.characters(codec="utf-8"), max_size=63)), max_size=300
)


@given(pairs)
def test_pairs_are_asked_for_in_filters_that_google_takes(wanted: list[tuple[str, str]]) -> None:
    parts = list(chunks(wanted))
    assert [pair for part in parts for pair in part] == sorted(set(wanted))
    for part in parts:
        text = filter_of(Metric.WRITE_BYTES, part)
        assert len(text) <= 2048 or len(part) == 1
        if len(text) <= 2048:
            holds = filters.parsed(text)
            for machine, name in part:
                facts = {
                    "metric.type": Metric.WRITE_BYTES.value,
                    "resource.labels.instance_id": machine,
                    "metric.labels.device_name": name,
                }
                assert holds(facts)


def test_hundreds_of_pairs_are_some_queries() -> None:
    many = [(str(10**18 + at), f"disk-{at:06}") for at in range(400)]
    assert len(list(chunks(many))) <= 12
    assert list(chunks([])) == []


def test_of_machines_and_names_only_the_pairs_are_kept() -> None:
    world = World(now=NOW)
    for machine in ("1", "2"):
        for name in ("a", "b"):
            world.observe("traffic", instance_id=machine, zone="us-central1-b", device=name, read=1)
    with served(world) as endpoint:
        clients = Clients(Access(endpoint=endpoint))
        window = Window(start=NOW - DAY, end=NOW)
        questions = minute_readers(clients, PROJECT, window, Packer(), [("1", "a"), ("2", "b")])
        found = questions[Metric.READ_BYTES, 0]()
    assert sorted((s.resource_labels["instance_id"], s.metric_labels["device_name"]) for s in found.series) == [
        ("1", "a"),
        ("2", "b"),
    ]
    assert {len(series) for series in found.series} == {1440}


def test_a_metric_that_a_project_never_had_has_no_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(metrics_of_the_world(), Metric.DUTY_CYCLE.value)
    with served(World(now=NOW)) as endpoint:
        clients = Clients(Access(endpoint=endpoint))
        found = metrics.readers(clients, PROJECT, WEEK, Packer())[Metric.DUTY_CYCLE]()
    assert (found.series, found.missing) == ((), [])


def metrics_of_the_world() -> dict[str, Any]:
    from tests.google_cloud import descriptors

    assert isinstance(descriptors.DESCRIPTORS, dict)
    return descriptors.DESCRIPTORS
