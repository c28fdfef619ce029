"""The file form of a record: what is written is read back, and what cannot be is refused with its place."""

import datetime
import io
import json
import math
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.audit.files.record_file import RecordError, read_record, write_record
from policies.audit.record import Kind, Metric, Missing, Part, Point, Record, Series, Window

READ = Metric.READ_BYTES.value
DISK = {"name": "llama", "sizeGb": "500", "provisionedThroughput": "12000", "users": []}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "schema": "spotrail.record/1",
        "project": "p1",
        "recorded_at": "2026-11-15T10:00:00Z",
        "window": {"start": "2026-11-08T09:55:00Z", "end": "2026-11-15T09:55:00Z"},
        "inventory": {"compute.disks": [DISK]},
        "metrics": {READ: [series_json()]},
        "missing": [],
    } | changes


def series_json(*points: Any, **changes: Any) -> dict[str, Any]:
    return {
        "metric": {"type": READ, "labels": {"device_name": "llama"}},
        "resource": {"type": "gce_instance", "labels": {"instance_id": "17", "zone": "us-central1-b"}},
        "metricKind": "DELTA",
        "valueType": "INT64",
        "points": list(points),
    } | changes


def point(value: Any, start: str = "2026-11-15T08:00:00Z", end: str = "2026-11-15T09:00:00Z") -> dict[str, Any]:
    return {"interval": {"startTime": start, "endTime": end}, "value": value}


def read(content: object) -> Record:
    text = content if isinstance(content, str) else json.dumps(content)
    return read_record("-", io.BytesIO(text.encode("utf-8", "surrogatepass")))


def write(record: Record) -> str:
    stream = io.StringIO()
    write_record(record, stream)
    return stream.getvalue()


def read_series(*points: Any, **changes: Any) -> Series:
    (series,) = read(document(metrics={READ: [series_json(*points, **changes)]})).series(Metric.READ_BYTES)
    return series


def content(record: Record) -> Any:
    """Everything that a record says, in a form that compares."""
    lines = {
        metric: [
            (
                *(dict(part) for part in (series.metric_labels, series.resource_labels)),
                (series.resource_type, series.kind, series.whole, series.unreadable),
                list(series.points()),
            )
            for series in found
        ]
        for metric, found in record.metrics.items()
    }
    head = (record.project, record.recorded_at, record.window, record.missing, record.notes)
    return head, dict(record.inventory), lines


def test_a_record_in_the_words_of_google_is_read() -> None:
    later = point({"int64Value": "6291456000"})
    earlier = point({"int64Value": "0"}, "2026-11-15T00:59:00-07:00", "2026-11-15T01:00:00.250-07:00")
    record = read(document(metrics={READ: [series_json(later, earlier)]}, missing=[{"part": "tpu.nodes", "why": "x"}]))
    assert record.project == "p1"
    assert record.recorded_at == datetime.datetime(2026, 11, 15, 10, tzinfo=datetime.UTC)
    assert record.window.end - record.window.start == datetime.timedelta(days=7)
    assert record.items(Part.DISKS) == (DISK,)
    assert record.missing == (Missing(part="tpu.nodes", why="x"),)
    (series,) = record.series(Metric.READ_BYTES)
    nine = datetime.datetime(2026, 11, 15, 9, tzinfo=datetime.UTC).timestamp()
    eight = nine - 3600
    assert list(series.points()) == [Point(eight, nine, 6291456000.0), Point(eight - 60, eight + 0.25, 0.0)]
    assert (series.kind, series.whole, series.unreadable) == (Kind.DELTA, True, 0)
    assert series.metric_labels == {"device_name": "llama"}
    assert series.resource_labels == {"instance_id": "17", "zone": "us-central1-b"}


def test_an_absent_part_was_not_asked_for_and_an_empty_one_was() -> None:
    record = read(document(inventory={"tpu.nodes": []}, metrics={}))
    assert record.seen(Part.NODES)
    assert not record.seen(Part.DISKS)
    assert not record.seen(Metric.READ_BYTES)
    del (bare := document())["inventory"], bare["metrics"], bare["missing"]
    assert content(read(bare))[1:] == ({}, {})


def test_what_is_no_finite_number_is_counted_and_never_enters() -> None:
    values = [
        {"doubleValue": "NaN"},
        {"doubleValue": "Infinity"},
        {"doubleValue": math.nan},
        {"doubleValue": -math.inf},
        {"int64Value": "NaN"},
        {"int64Value": "many"},
        {"doubleValue": None},
        {"boolValue": True},
        {"int64Value": True},
        {"int64Value": "9" * 400},
        {"distributionValue": {"count": "3", "mean": 2.0}},
        {},
        None,
    ]
    series = read_series(*map(point, values), point({"doubleValue": 0.5}), valueType="DOUBLE")
    assert [at.value for at in series.points()] == [0.5]
    assert series.unreadable == len(values)
    assert read(document(metrics={READ: [series_json()]})).series(Metric.READ_BYTES)[0].unreadable == 0


def test_a_number_beyond_every_double_is_not_a_number() -> None:
    text = json.dumps(document(metrics={READ: [series_json(point({"doubleValue": 0.5}))]}))
    (series,) = read(text.replace("0.5", "1e999")).series(Metric.READ_BYTES)
    assert (len(series), series.unreadable) == (0, 1)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ({"int64Value": "0"}, 0.0),
        ({"int64Value": 7}, 7.0),
        ({"int64Value": "-3"}, -3.0),
        ({"doubleValue": "0.25"}, 0.25),
        ({"doubleValue": 3}, 3.0),
        ({"doubleValue": 1e-320}, 1e-320),
        ({"int64Value": "9223372036854775807"}, 2.0**63),
    ],
)
def test_numbers_are_read_as_json_of_protobuf_writes_them(value: Any, number: float) -> None:
    assert [at.value for at in read_series(point(value)).points()] == [number]


def test_the_type_of_values_that_is_not_said_is_that_of_the_first() -> None:
    silent = {"valueType": None}
    assert not read_series(point({"doubleValue": 0.5}), **silent).whole
    assert read_series(point({"int64Value": "5"}), **silent).whole
    assert read_series(point(None), **silent).whole is False


def test_a_gauge_is_at_an_instant() -> None:
    gauge = read_series(
        {"interval": {"endTime": "1970-01-01T01:00:00Z"}, "value": {"doubleValue": 3}}, metricKind="GAUGE"
    )
    assert list(gauge.points()) == [Point(3600, 3600, 3)]
    assert gauge.kind is Kind.GAUGE


def test_series_of_the_same_hours_share_their_times() -> None:
    lines = [series_json(point({"int64Value": str(number)})) for number in range(3)]
    first, second, third = read(document(metrics={READ: lines})).series(Metric.READ_BYTES)
    assert first.starts is second.starts is third.starts
    assert first.ends is second.ends
    assert [first.values[0], second.values[0]] == [0, 1]


# What the files may say, each with the place and the rule in the message.
REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"schema": "spotrail.record/2"},
        r'schema is "spotrail.record/2"; this version of spotrail reads spotrail.record/1',
    ),
    ({"schema": "spotrail.audit/1"}, r'schema is "spotrail.audit/1": a report, not a record; record it again'),
    ({"schema": 1}, r"schema is 1; a record begins with"),
    ({"project": ""}, r'standard input: project is ""; it must be text'),
    ({"project": 7}, r"project is 7; it must be text"),
    ({"recorded_at": "yesterday"}, r'recorded_at "yesterday" is no time'),
    ({"window": {"start": "2026-11-15T10:00:00Z"}}, r"window is .*; it must be .*end"),
    ({"window": {"start": "2026-11-15T10:00:00", "end": "2026-11-15T10:00:00Z"}}, r"window.start .* is no time"),
    ({"inventory": []}, r"inventory: line 1, column \d+: an object must begin here, not '\['"),
    ({"inventory": {"compute.disks": {}}}, r"inventory.compute.disks: line 1.*: a list must begin here, not '{'"),
    ({"inventory": {"compute.disks": [DISK, 3]}}, r"inventory.compute.disks\[1\] is 3; it must be a resource"),
    ({"missing": {}}, r"missing is {}; it must be a list"),
    ({"missing": [{"part": "tpu.nodes"}]}, r"missing\[0\] is .*; it must be .*why"),
    ({"missing": [{"part": 3, "why": ""}]}, r"missing\[0\].part is 3; it must be text"),
    ({"notes": [3]}, r"notes\[0\] is 3; it must be text"),
    ({"metrics": {READ: [3]}}, r"read_bytes_count\[0\] is 3; it must be a TimeSeries object"),
]
BROKEN_SERIES: list[tuple[dict[str, Any], str]] = [
    ({"metric": None}, r"read_bytes_count\[0\].metric is null; it must be an object"),
    ({"metric": {"type": "x/y"}}, r"\[0\].metric.type is \"x/y\"; the list is of compute"),
    ({"metric": {"labels": {"device_name": 3}}}, r"\[0\].metric.labels is .*; labels are texts by their name"),
    ({"resource": "gce_instance"}, r"\[0\].resource is \"gce_instance\"; it must be an object"),
    ({"metricKind": "METER"}, r"\[0\].metricKind is \"METER\"; it must be one of GAUGE, DELTA, CUMULATIVE"),
    ({"metricKind": None}, r"\[0\].metricKind is null; it must be one of"),
    ({"points": 3}, r"\[0\].points is 3; it must be a list"),
    ({"unreadable": -1}, r"\[0\].unreadable is -1; it must be a whole number"),
    ({"points": [3]}, r"\[0\].points\[0\] is no point; a point is"),
    ({"points": [{"value": {"int64Value": "1"}}]}, r"\[0\].points\[0\] has no interval; a point is"),
    ({"points": [{"interval": {}}]}, r"\[0\].points\[0\] has no endTime; a point is"),
    ({"points": [point({}, end="soon")]}, r'\[0\].points\[0\] "soon" is no time'),
    ({"points": [point({}, end="2026-11-15T07:59:00Z")]}, r"points\[0\].interval is .*; it must start before it ends"),
    ({"points": [point({}, end="2026-11-15T08:00:00Z")]}, r"points\[0\].interval is .*; it must start before it ends"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_cannot_be_is_refused_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        read(document(**changes))


@pytest.mark.parametrize(("changes", "message"), BROKEN_SERIES)
def test_a_series_that_cannot_be_is_refused_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        read_series(**changes)


@pytest.mark.parametrize("name", ["schema", "project", "recorded_at", "window"])
def test_what_a_record_must_have(name: str) -> None:
    bare = document()
    del bare[name]
    with pytest.raises(RecordError, match=f"standard input: {name} is absent"):
        read(bare)


GOOD = json.dumps(document())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "standard input: it is empty"),
        ("[]", r"line 1, column 1: an object must begin here, not '\['"),
        ("reading ...", "an object must begin here, not 'r'"),
        (GOOD[:-1], "the text ends there: it was cut"),
        (GOOD[:40], "the text ends there: it was cut"),
        (GOOD + "{}", "text stands after the end of the record"),
        (GOOD.replace('"project"', '"schema": "spotrail.record/1", "project"'), 'the member "schema" stands twice'),
        (GOOD.replace('"name"', '"name": "x", "name"'), r'disks\[0\]: .*the member "name" stands twice in one object'),
        (GOOD.replace('"500"', "NaN"), r"disks\[0\]: .*NaN is not JSON; a value that is not known is null"),
        (GOOD.replace('"500"', "1e999"), r"disks\[0\]: .*1e999 is beyond every number"),
        (GOOD.replace('"500"', "9" * 5000), r"disks\[0\]: .*more than 4,300 digits"),
        (GOOD.replace('"500"', "[" * 90_000 + "]" * 90_000), r"disks\[0\]: .*nested too deep"),
        (GOOD.replace('"500",', '"500"'), r"disks\[0\]: line 1, column \d+: the JSON is broken"),
        (GOOD.replace('"missing"', "missing"), "a member must begin with its name in double quotes"),
        (GOOD.replace('"project": "p1",', '"project": "p1"'), "a comma or } must stand here"),
        (GOOD.replace('"inventory":', '"inventory"'), 'a colon after "inventory" must begin here'),
    ],
)
def test_broken_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        read(text)


def test_the_line_of_a_mistake_is_named_far_into_a_large_file() -> None:
    record = read(document(inventory={"compute.disks": [DISK | {"name": f"disk-{at}"} for at in range(20_000)]}))
    lines = write(record).splitlines()
    assert len("\n".join(lines)) > 1 << 20
    at = next(number for number, line in enumerate(lines) if "disk-19998" in line)
    lines[at] = lines[at].replace('"500"', '"500" "GB"')
    with pytest.raises(RecordError, match=rf"compute.disks\[19998\]: line {at + 1:,}, column 4\d: the JSON is broken"):
        read("\n".join(lines))


def test_encodings_of_other_systems(tmp_path: Path) -> None:
    path = tmp_path / "week.json"
    for encoding in ("utf-8-sig", "utf-16"):
        path.write_text(GOOD, encoding=encoding)
        assert content(read_record(str(path))) == content(read(GOOD))
    path.write_bytes(GOOD.encode().replace(b"llama", b"\xff\xfe"))
    with pytest.raises(RecordError, match=r"week\.json: after line 1: bytes that are no UTF-8"):
        read_record(str(path))
    path.write_bytes(b"\x1f\x8b\x08\x00 packed")
    with pytest.raises(RecordError, match=r"week\.json: this is a packed file; unpack it first"):
        read_record(str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"week\.json: cannot be read: No such file"):
        read_record(str(tmp_path / "week.json"))
    with pytest.raises(RecordError, match="cannot be read: Is a directory"):
        read_record(str(tmp_path))
    with pytest.raises(RecordError, match="cannot be read: embedded null"):
        read_record("a\0b")


def test_a_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(RecordError, match="standard input is closed; name a file"):
        read_record("-")


def test_half_a_surrogate_pair_is_mended() -> None:
    record = read(GOOD.replace("llama", "\\ud83d llama \\ud83d\\ude00"))
    assert record.items(Part.DISKS)[0]["name"] == "\N{REPLACEMENT CHARACTER} llama \N{GRINNING FACE}"


def test_what_this_version_does_not_know_is_noted_and_left_out() -> None:
    found = document(
        inventory={"compute.disk": [DISK, DISK], "compute.disks": [DISK]},
        metrics={"x.googleapis.com/y": [series_json(point({"doubleValue": math.nan}))]},
        extra={"a": [1, {"b": math.inf}]},
    )
    record = read(found)
    assert record.inventory == {Part.DISKS: (DISK,)}
    assert record.metrics == {}
    assert record.notes == (
        'inventory has "compute.disk", which this version of spotrail does not judge (did you mean compute.disks?)',
        'metrics has "x.googleapis.com/y", which this version of spotrail does not judge',
        'the record has a member "extra", which this version of spotrail does not know',
    )


def test_a_written_record_is_strict_json_of_google() -> None:
    first = series_json(point({"int64Value": "6291456000"}), point({"int64Value": "0"}))
    second = series_json(point({"doubleValue": 0.1}), metricKind="GAUGE", valueType="DOUBLE")
    found = document(metrics={READ: [first, second]}, missing=[{"part": "tpu.nodes us-east1-d", "why": "told 503"}])
    assert json.loads(write(read(found)), parse_constant=pytest.fail) == found


def record_of(value: float) -> Record:
    series = Series(
        metric_labels={},
        resource_type="",
        resource_labels={},
        kind=Kind.GAUGE,
        starts=array("d", [0]),
        ends=array("d", [0]),
        values=array("d", [value]),
    )
    now = datetime.datetime(2026, 11, 15, tzinfo=datetime.UTC)
    window = Window(start=now - datetime.timedelta(days=1), end=now)
    return Record(project="p", recorded_at=now, window=window, metrics={Metric.CPU: (series,)})


def test_a_series_of_whole_numbers_that_has_halves_is_written_as_it_is() -> None:
    assert [at.value for at in read(write(record_of(0.5))).series(Metric.CPU)[0].points()] == [0.5]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_never_written(value: float) -> None:
    with pytest.raises(ValueError, match="has a value that is no finite number"):
        write(record_of(value))


# Times to the microsecond between 1970 and 2100, as the columns hold them.
moments = st.integers(0, 4_102_444_800 * 10**6).map(lambda micros: micros / 10**6)
texts = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
items = st.lists(st.dictionaries(texts, values, max_size=4), max_size=3).map(tuple)


@st.composite
def series_of(draw: st.DrawFn) -> Series:
    kind, whole = draw(st.sampled_from(Kind)), draw(st.booleans())
    numbers = st.integers(-(2**53), 2**63 - 1).map(float) if whole else st.floats(allow_nan=False, allow_infinity=False)
    found = draw(st.lists(st.tuples(moments, st.integers(1, 10**10), numbers), max_size=4))
    length = 0.0 if kind is Kind.GAUGE else 1e-6
    return Series(
        metric_labels=draw(st.dictionaries(texts, texts, max_size=2)),
        resource_type=draw(texts),
        resource_labels=draw(st.dictionaries(texts, texts, max_size=2)),
        kind=kind,
        whole=whole,
        starts=array("d", [start for start, _, _ in found]),
        ends=array("d", [round(start + micros * length, 6) for start, micros, _ in found]),
        values=array("d", [value for _, _, value in found]),
        unreadable=draw(st.integers(0, 3)),
    )


@st.composite
def records(draw: st.DrawFn) -> Record:
    begin = datetime.datetime.fromtimestamp(draw(moments), draw(st.timezones()))
    return Record(
        project=draw(st.text(min_size=1, max_size=9)),
        recorded_at=begin,
        window=Window(start=begin, end=begin + datetime.timedelta(days=draw(st.integers(1, 30)))),
        inventory=draw(st.dictionaries(st.sampled_from(Part), items, max_size=3)),
        metrics=draw(
            st.dictionaries(st.sampled_from(Metric), st.lists(series_of(), max_size=3).map(tuple), max_size=3)
        ),
        missing=tuple(draw(st.lists(st.builds(Missing, part=st.text(min_size=1), why=texts), max_size=2))),
        notes=tuple(draw(st.lists(texts, max_size=2))),
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(records())
def test_what_is_written_is_read_back(record: Record) -> None:
    again = read(write(record))
    assert content(again) == content(record)
    assert write(again) == write(record)


@given(st.integers(1, 9), st.booleans())
def test_pieces_of_any_size_give_the_same_record(size: int, wide: bool) -> None:
    class Slow(io.BytesIO):
        def read(self, most: int | None = -1) -> bytes:
            return super().read(4 if most == 4 else size)

    text = GOOD.replace("llama", "🦙 \\ud83d\\ude00") if wide else GOOD
    assert content(read_record("-", Slow(text.encode()))) == content(read(text))
