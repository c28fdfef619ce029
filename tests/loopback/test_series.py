"""Time series of a loopback world, read with Google's own client and counted by hand."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pytest
from google.api_core.exceptions import InvalidArgument, NotFound
from google.cloud import monitoring_v3

from policies.audit.record import Part
from tests.google_cloud.world import World
from tests.loopback.clients import monitoring
from tests.loopback.conftest import NOW

ZONE = "us-central1-b"
MIB = 2**20
READ = "compute.googleapis.com/instance/disk/read_bytes_count"
PEAK = "compute.googleapis.com/instance/disk/max_read_bytes_count"
UPTIME = "compute.googleapis.com/instance/uptime"
MINUTE, HOUR = 60, 3600
VIEW = monitoring_v3.ListTimeSeriesRequest.TimeSeriesView


def listed(endpoint: str, metric: str, *, hours: float = 1.0, more: str = "", **fields: Any) -> list[Any]:
    """All series of a metric in the hours up to now, as plain messages; `align` and `period` align them."""
    align, period = fields.pop("align", None), fields.pop("period", HOUR)
    if align:
        fields["aggregation"] = {"per_series_aligner": align, "alignment_period": datetime.timedelta(seconds=period)}
    interval = {"start_time": NOW - datetime.timedelta(hours=hours), "end_time": NOW}
    text = f'metric.type = "{metric}"{more}'
    request = {"name": "projects/acme-tpu-dev", "filter": text, "interval": interval, **fields}
    found = monitoring(endpoint).list_time_series(request=request)
    return [type(series).pb(series) for series in found]


def values(series: Any) -> list[float]:
    return [point.value.int64_value or point.value.double_value for point in series.points]


def ends(series: Any) -> list[int]:
    """Minutes before now."""
    return [(int(NOW.timestamp()) - point.interval.end_time.seconds) // 60 for point in series.points]


@pytest.fixture
def reader(world: World) -> World:
    """An instance that has run for ten days."""
    world.add(Part.INSTANCES, name="reader", zone=ZONE, creationTimestamp="now-10d", disks=[{"source": "llama"}])
    return world


def test_minutes_are_deltas_newest_first(reader: World, endpoint: str) -> None:
    reader.observe("traffic", instance="reader", device="llama", read=300)
    (series,) = listed(endpoint, READ)
    assert (len(series.points), ends(series)[:3]) == (60, [0, 1, 2])
    assert set(values(series)) == {300 * MIB * MINUTE}
    first = series.points[0].interval
    assert first.end_time.seconds - first.start_time.seconds == MINUTE
    assert (series.metric_kind, series.value_type) == (2, 2), "DELTA, INT64"
    assert series.resource.type == "gce_instance"
    instance = reader.items(Part.INSTANCES)[0]
    assert dict(series.resource.labels) == {"project_id": "acme-tpu-dev", "instance_id": instance["id"], "zone": ZONE}
    assert series.metric.labels["device_name"] == "llama"


@pytest.mark.parametrize(
    ("align", "value", "kind"),
    [
        ("ALIGN_DELTA", 300 * MIB * HOUR, 2),
        ("ALIGN_RATE", 300 * MIB, 1),
        ("ALIGN_MAX", 300 * MIB * MINUTE, 1),
        ("ALIGN_MIN", 300 * MIB * MINUTE, 1),
        ("ALIGN_MEAN", 300 * MIB * MINUTE, 1),
        ("ALIGN_COUNT", 60, 1),
    ],
)
def test_an_hour_aligned(reader: World, endpoint: str, align: str, value: float, kind: int) -> None:
    reader.observe("traffic", instance="reader", device="llama", read=300)
    (series,) = listed(endpoint, READ, hours=3, align=align)
    assert (values(series), ends(series), series.metric_kind) == ([value] * 3, [0, 60, 120], kind)
    assert all(
        point.interval.end_time.seconds - point.interval.start_time.seconds == HOUR * (kind == 2)
        for point in series.points
    )


def test_a_burst_is_the_same_amount_by_minute_and_by_hour(reader: World, endpoint: str) -> None:
    burst = {"at": "now-90m", "minutes": 5, "level": 900, "every_hours": 24}
    reader.observe("traffic", instance="reader", device="llama", read={"level": 0, "bursts": [burst]})
    (minutes,) = listed(endpoint, READ, hours=48)
    assert sum(values(minutes)) == 2 * 5 * MINUTE * 900 * MIB
    assert [end for end, value in zip(ends(minutes), values(minutes), strict=True) if value][:5] == [85, 86, 87, 88, 89]
    (hours,) = listed(endpoint, READ, hours=48, align="ALIGN_DELTA")
    assert [(index, value / MIB) for index, value in enumerate(values(hours)) if value] == [
        (1, 5 * MINUTE * 900),
        (25, 5 * MINUTE * 900),
    ]
    (peaks,) = listed(endpoint, PEAK, hours=48, align="ALIGN_MAX")
    assert max(values(peaks)) == 900 * MIB


def test_hours_of_the_day(reader: World, endpoint: str) -> None:
    reader.observe("traffic", instance="reader", device="llama", read={"level": 10, "hours": {"9-11": 800}})
    (series,) = listed(endpoint, READ, hours=4, align="ALIGN_RATE")
    assert [value / MIB for value in values(series)] == [10, 800, 800, 10]


def test_what_is_missing_has_no_point(reader: World, endpoint: str) -> None:
    gap = {"level": 5, "missing": [["now-3h", "now-90m"]]}
    reader.observe("traffic", instance="reader", device="llama", read=gap)
    (hours,) = listed(endpoint, READ, hours=4, align="ALIGN_DELTA")
    assert (ends(hours), [value // MIB // MINUTE for value in values(hours)]) == ([0, 60, 180], [300, 150, 300])
    (counts,) = listed(endpoint, READ, hours=4, align="ALIGN_COUNT")
    assert values(counts) == [60, 30, 60]
    (minutes,) = listed(endpoint, READ, hours=4)
    assert len(minutes.points) == 150


def test_points_can_come_out_of_order(reader: World, endpoint: str) -> None:
    reader.observe("traffic", instance="reader", device="llama", read={"level": 5, "shuffled": True})
    (series,) = listed(endpoint, READ, hours=0.1)
    assert ends(series) == [1, 0, 3, 2, 5, 4]


def test_a_machine_reports_only_while_it_runs(world: World, endpoint: str) -> None:
    stopped = {"status": "TERMINATED", "lastStopTimestamp": "now-30m"}
    world.add(Part.INSTANCES, name="young", zone=ZONE, creationTimestamp="now-10m")
    world.add(Part.INSTANCES, name="stopped", zone=ZONE, creationTimestamp="now-9d", **stopped)
    world.add(Part.INSTANCES, name="silent", zone=ZONE, creationTimestamp="now-9d")
    world.observe("uptime", instance="silent", silent=True)
    world.observe("traffic", instance="stopped", device="d", read=1)
    found = {series.metric.labels["instance_name"]: ends(series) for series in listed(endpoint, UPTIME)}
    assert found == {"young": [*range(10)], "stopped": [*range(30, 60)]}
    (series,) = listed(endpoint, READ)
    assert ends(series) == [*range(30, 60)]
    assert all(value == MINUTE for one in listed(endpoint, UPTIME) for value in values(one))


def test_series_of_an_instance_that_is_gone(world: World, endpoint: str) -> None:
    world.observe("traffic", instance_id="77", zone=ZONE, instance_name="was-here", device="d", read=1)
    (series,) = listed(endpoint, READ)
    assert (series.resource.labels["instance_id"], series.metric.labels["instance_name"]) == ("77", "was-here")


def test_nothing_described_is_no_series(reader: World, endpoint: str) -> None:
    assert listed(endpoint, READ) == []


@pytest.mark.parametrize("size", [1, 7, 60, 100, 180, 100_000])
def test_pages_are_counted_in_points_and_may_cut_a_series(reader: World, endpoint: str, size: int) -> None:
    for device in range(3):
        reader.observe("traffic", instance="reader", device=f"d{device}", read=device + 1)
    whole: dict[str, list[float]] = {}
    for series in listed(endpoint, READ, page_size=size):
        whole.setdefault(series.metric.labels["device_name"], []).extend(values(series))
    assert whole == {f"d{device}": [(device + 1) * MIB * MINUTE] * 60 for device in range(3)}
    assert reader.counts() == {"monitoring.timeSeries.list": math.ceil(180 / size)}


def test_headers_only(reader: World, endpoint: str) -> None:
    for device in range(3):
        reader.observe("traffic", instance="reader", device=f"d{device}", read=1)
    found = listed(endpoint, READ, view=VIEW.HEADERS, page_size=2)
    assert [(series.metric.labels["device_name"], len(series.points)) for series in found] == [
        ("d0", 0),
        ("d1", 0),
        ("d2", 0),
    ]
    assert reader.counts() == {"monitoring.timeSeries.list": 2}


@pytest.mark.parametrize(
    ("more", "found"),
    [
        (' AND metric.labels.device_name = "b"', "b"),
        (' AND metric.label.device_name = one_of("a", "c")', "ac"),
        (' AND (metric.labels.device_name = "a" OR metric.labels.device_name = "b")', "ab"),
        (' AND NOT metric.labels.device_name = "a"', "bc"),
        (' AND metric.labels.device_name != "a"', "bc"),
        (' AND metric.labels.device_name = starts_with("c")', "c"),
        (' AND metric.labels.device_name = monitoring.regex.full_match("a|c")', "ac"),
        (' AND resource.labels.zone = "us-central1-b" AND resource.type = "gce_instance"', "abc"),
        (' AND resource.labels.zone = "us-east1-d"', ""),
        (' AND resource.labels.nothing = "x"', ""),
    ],
)
def test_filters(reader: World, endpoint: str, more: str, found: str) -> None:
    for device in "abc":
        reader.observe("traffic", instance="reader", device=device, read=1)
    assert "".join(series.metric.labels["device_name"] for series in listed(endpoint, READ, more=more)) == found


@pytest.mark.parametrize(
    ("metric", "fields", "match"),
    [
        (READ, {"more": " AND"}, "has no comparison"),
        (READ, {"more": ' AND nonsense = "x"'}, "Unknown selector"),
        (READ, {"more": ' AND metric.labels.x = one_of("' + '","'.join(["1"] * 101) + '")'}, "101 arguments"),
        (READ, {"more": f' AND metric.labels.x = "{"1" * 2000}"'}, "the limit is 2048"),
        (READ, {"more": f' AND metric.type = "{UPTIME}"'}, "names 2"),
        (READ, {"align": "ALIGN_DELTA", "period": 30}, "at least 60 seconds"),
        (PEAK, {"align": "ALIGN_RATE"}, "ALIGN_RATE"),
        (READ, {"hours": -1}, "must be before"),
    ],
)
def test_a_query_that_google_would_refuse(
    world: World, endpoint: str, metric: str, fields: dict[str, Any], match: str
) -> None:
    with pytest.raises(InvalidArgument, match=match):
        listed(endpoint, metric, **fields)


def test_a_metric_that_does_not_exist(endpoint: str) -> None:
    with pytest.raises(NotFound, match="Cannot find metric"):
        listed(endpoint, "tpu.googleapis.com/no/such")


def test_the_other_metrics(world: World, endpoint: str) -> None:
    world.add(Part.BUCKETS, name="ckpt")
    world.add(Part.ROUTERS, name="nat", region="us-central1", nats=[{"name": "out"}])
    world.observe("duty", zone=ZONE, worker="w0", chips=4, percent=1.5)
    world.observe("bytes", bucket="ckpt", kinds={"live": 5, "soft-deleted": 7.5})
    world.observe("requests", bucket="ckpt", zone=ZONE, per_second={"cache_hit=true": 2})
    world.observe("nat", router="nat", gateway="out", mibps=3)
    duty = listed(endpoint, "tpu.googleapis.com/accelerator/duty_cycle")
    assert [(one.metric.labels["accelerator_id"], set(values(one))) for one in duty] == [
        (str(chip), {1.5}) for chip in range(4)
    ]
    assert dict(duty[0].resource.labels) == {"resource_container": "acme-tpu-dev", "location": ZONE, "worker_id": "w0"}
    sizes = listed(endpoint, "storage.googleapis.com/storage/v2/total_bytes", hours=48)
    assert {one.metric.labels["type"]: values(one) for one in sizes} == {"live": [5, 5], "soft-deleted": [7.5, 7.5]}
    (hits,) = listed(endpoint, "storage.googleapis.com/anywhere_cache/request_count", align="ALIGN_DELTA")
    assert (values(hits), hits.metric.labels["cache_hit"]) == ([7200], "true")
    (nat,) = listed(endpoint, "router.googleapis.com/nat/received_bytes_count", align="ALIGN_DELTA")
    assert (values(nat), nat.resource.labels["gateway_name"]) == ([3 * MIB * HOUR], "out")


def test_a_value_that_is_no_number(world: World, endpoint: str) -> None:
    world.observe(
        "duty", zone=ZONE, worker="w0", percent={"level": 3, "bursts": [{"at": "now-5m", "minutes": 1, "level": "NaN"}]}
    )
    (series,) = listed(endpoint, "tpu.googleapis.com/accelerator/duty_cycle")
    assert [index for index, value in enumerate(values(series)) if math.isnan(value)] == [4]


def point(value: float) -> dict[str, Any]:
    return {"interval": {"end_time": NOW}, "value": {"double_value": value}}


def test_metrics_that_are_written_are_kept(world: World, endpoint: str) -> None:
    metric = {"type": "custom.googleapis.com/spotrail/idle", "labels": {"env": "dev"}}
    series = {"metric": metric, "resource": {"type": "global"}, "points": [point(2.5)]}
    client = monitoring(endpoint)
    client.create_time_series(request={"name": "projects/acme-tpu-dev", "time_series": [series]})
    assert world.written[0]["metric"] == metric
    assert world.written[0]["points"][0]["value"] == {"doubleValue": 2.5}
    for wrong, match in (
        ({**series, "metric": {"type": READ}}, "not writable"),
        ({**series, "points": [point(1), point(2)]}, "must have one point"),
    ):
        with pytest.raises(InvalidArgument, match=match):
            client.create_time_series(request={"name": "projects/acme-tpu-dev", "time_series": [wrong]})
    with pytest.raises(InvalidArgument, match="more than 200"):
        client.create_time_series(request={"name": "projects/acme-tpu-dev", "time_series": [series] * 201})
