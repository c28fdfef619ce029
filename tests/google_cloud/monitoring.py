"""Cloud Monitoring: ListTimeSeries, fast enough for millions of points, and CreateTimeSeries, which only records."""

from __future__ import annotations

import bisect
import itertools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from google.cloud import monitoring_v3
from google.protobuf import json_format
from google.rpc import code_pb2, status_pb2  # type: ignore[import-untyped]

from tests.google_cloud import filters, wire
from tests.google_cloud.alignment import Aligner, Column, Query, check, column
from tests.google_cloud.descriptors import DESCRIPTORS, DOUBLE, INT64, Descriptor
from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import Call, FaultKind
from tests.google_cloud.signals import Signal
from tests.google_cloud.world import World

MOST_POINTS: Final = 100_000
"""The most that a page has."""
MOST_WRITTEN: Final = 200
"""Series that one CreateTimeSeries may have."""
_KEPT: Final = 8
_HEADERS: Final = monitoring_v3.ListTimeSeriesRequest.TimeSeriesView.HEADERS


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class _Answer:
    """All of what a query finds; pages are cut from it."""

    descriptor: Descriptor
    query: Query
    signals: Sequence[Signal]
    ends: Sequence[int]
    """Of each signal, the number of points up to and with its own."""


@final
class Monitoring:
    """The metric service of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._answers: OrderedDict[tuple[Any, ...], _Answer] = OrderedDict()

    def list_time_series(self, request: Any, call: Call) -> bytes:
        """A page of series, as bytes. A series may go on in the next page, as on Google Cloud."""
        answer = self._answer(request, call.unreachable())
        size = min(request.page_size or MOST_POINTS, MOST_POINTS)
        start = int(request.page_token or 0)
        headers = request.view == _HEADERS
        total = len(answer.signals) if headers else (answer.ends[-1] if answer.ends else 0)
        last = min(start + size, total)
        token = str(start) if call.struck(FaultKind.LOOP) else str(last) if last < total else ""
        if headers:
            found = [_header(signal, answer, None) for signal in answer.signals[start:last]]
        else:
            found = _cut(answer, start, last)
        return wire.page(found, token, map(_away, sorted(call.unreachable())))

    def create_time_series(self, request: Any, call: Call) -> bytes:
        """Keeps what was written."""
        if len(request.time_series) > MOST_WRITTEN:
            raise Refusal(400, "badRequest", f"Field timeSeries had an invalid value: more than {MOST_WRITTEN} series.")
        for series in request.time_series:
            _check_written(series)
            self._world.written.append(json_format.MessageToDict(monitoring_v3.TimeSeries.pb(series)))
        return b""

    def _answer(self, request: Any, away: frozenset[str]) -> _Answer:
        """Found once for all pages of a query."""
        interval, aggregation = request.interval, request.aggregation
        period = int(aggregation.alignment_period.total_seconds()) if aggregation.alignment_period else 0
        start, end = interval.start_time, interval.end_time
        if not (start and end and start < end):
            raise Refusal(400, "badRequest", "Field interval.start_time must be before interval.end_time.")
        if aggregation.cross_series_reducer:
            raise Refusal(501, "notImplemented", "the loopback reduces no series")
        query = Query(
            start=int(start.timestamp()),
            end=int(end.timestamp()),
            nanos=getattr(end, "nanosecond", 0),
            aligner=int(aggregation.per_series_aligner),
            period=period if aggregation.per_series_aligner else 0,
        )
        key = (request.filter, query, away, self._world.signals.version)
        if key not in self._answers or not request.page_token:
            self._answers[key] = self._find(request.filter, query, away)
        while len(self._answers) > _KEPT:
            self._answers.popitem(last=False)
        return self._answers[key]

    def _find(self, text: str, query: Query, away: frozenset[str]) -> _Answer:
        metric, test = filters.metric_type(text), filters.parsed(text)
        if metric not in DESCRIPTORS:
            message = f'Cannot find metric(s) that match type = "{metric}". If a metric was created recently, it could '
            raise Refusal(404, "notFound", message + "take up to 10 minutes to become available.")
        descriptor = DESCRIPTORS[metric]
        check(query, descriptor)
        signals = self._world.signals.of(metric, self._world)
        found = [
            signal for signal in signals if test(signal.facts()) and not away & set(signal.resource_labels.values())
        ]
        counts = [len(column(signal.flow, descriptor, query).ends) for signal in found]
        some = [(signal, count) for signal, count in zip(found, counts, strict=True) if count]
        return _Answer(
            descriptor=descriptor,
            query=query,
            signals=[signal for signal, _ in some],
            ends=list(itertools.accumulate(count for _, count in some)),
        )


def _cut(answer: _Answer, start: int, last: int) -> list[bytes]:
    """The series that have the points `[start:last]`, each with its part of them."""
    found: list[bytes] = []
    index = bisect.bisect_right(answer.ends, start)
    while start < last:
        signal = answer.signals[index]
        points = column(signal.flow, answer.descriptor, answer.query)
        before = answer.ends[index] - len(points.ends)
        stop = min(last, answer.ends[index])
        found.append(_header(signal, answer, points) + wire.points(points, start - before, stop - before))
        start, index = stop, index + 1
    return found


def _header(signal: Signal, answer: _Answer, points: Column | None) -> bytes:
    shown = points or column(signal.flow, answer.descriptor, answer.query)
    series = monitoring_v3.TimeSeries.pb(monitoring_v3.TimeSeries())
    series.metric.type = signal.metric
    series.metric.labels.update(signal.metric_labels)
    series.resource.type = answer.descriptor.resource
    series.resource.labels.update(signal.resource_labels)
    series.metric_kind = shown.kind
    series.value_type = INT64 if shown.whole else DOUBLE
    series.unit = (
        f"{answer.descriptor.unit}/s" if answer.query.aligner == Aligner.ALIGN_RATE else answer.descriptor.unit
    )
    return bytes(series.SerializeToString())


def _away(place: str) -> bytes:
    """What the answer says of a zone whose series it could not read."""
    message = f"Time series of {place} could not be read."
    return bytes(status_pb2.Status(code=code_pb2.UNAVAILABLE, message=message).SerializeToString())


def _check_written(series: Any) -> None:
    if not series.metric.type.startswith(("custom.googleapis.com/", "external.googleapis.com/")):
        message = f"Field timeSeries[0].metric.type had an invalid value of {series.metric.type!r}: it is not writable."
        raise Refusal(400, "badRequest", message)
    if len(series.points) != 1:
        raise Refusal(400, "badRequest", "Field timeSeries[0].points had an invalid value: it must have one point.")
