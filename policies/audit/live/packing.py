"""From the messages of Cloud Monitoring to packed series: millions of points without an object for each.

Aligned series have the same times: these are taken apart once and then only compared, which is half of the work.
"""

from __future__ import annotations

import sys
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from operator import le, lt
from typing import Any, Final, TypeAlias, final

from policies.audit.files.series_file import Columns
from policies.audit.record import Kind, Series

_KINDS: Final[Mapping[int, Kind]] = {1: Kind.GAUGE, 2: Kind.DELTA, 3: Kind.CUMULATIVE}
"""By the number of `google.api.MetricDescriptor.MetricKind`."""
_GAUGE: Final = 1
_INT64: Final = 2
_FIELDS: Final[Mapping[int, str]] = {_INT64: "int64_value", 3: "double_value"}
"""Where the number is, by the number of `google.api.MetricDescriptor.ValueType`."""
_MICRO: Final = 1e6
_GRIDS: Final = 8
"""Grids of a query that are kept: most have one, and the parts of it at the ends of pages."""
AT_ONCE: Final = 3
"""Queries whose pages are taken apart at the same time: each page is some tens of MB."""

_Labels: TypeAlias = tuple[tuple[str, str], ...]
_Key: TypeAlias = tuple[_Labels, str, _Labels, int, int]


@final
class Packer:
    """Keeps one copy of what the series of all metrics share: times and labels. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._columns = Columns()
        self._labels: dict[_Labels, Mapping[str, str]] = {}
        self._words: dict[str, str] = {}
        self.turn = threading.BoundedSemaphore(AT_ONCE)
        """Held by a query while its pages come."""

    def packing(self) -> Packing:
        """Takes the pages of one query."""
        return Packing(self)

    def column(self, column: array[float]) -> array[float]:
        """The column, or an equal one that another series has."""
        with self._lock:
            return self._columns.shared(column)

    def labels(self, labels: _Labels) -> Mapping[str, str]:
        """The labels, or equal ones that another series has."""
        with self._lock:
            if labels not in self._labels:
                words = self._words
                self._labels[labels] = {
                    words.setdefault(key, key): words.setdefault(text, text) for key, text in labels
                }
            return self._labels[labels]


@final
@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class _Grid:
    """The times of the points of a message."""

    times: Sequence[Any]
    """The TimeInterval messages, by which another series of the same times is known."""
    gauge: bool
    starts: array[float]
    ends: array[float]
    sound: bool
    """Whether every point may be kept: an amount is over some time."""


@final
class _Grids:
    """The grids that were seen last. One a query, so that threads do not meet."""

    def __init__(self, column: Callable[[array[float]], array[float]]) -> None:
        self._column = column
        self._grids: list[_Grid] = []

    def find(self, times: Sequence[Any], gauge: bool) -> _Grid | None:
        """The grid of exactly these times; None where there is none."""
        for at, grid in enumerate(self._grids):
            if len(grid.times) == len(times) and grid.gauge is gauge and grid.times == times:
                if at:
                    self._grids.insert(0, self._grids.pop(at))
                return grid
        return None

    def add(self, times: Sequence[Any], gauge: bool) -> _Grid:
        """A new grid of these times."""
        ends = array("d", [_seconds(time.end_time) for time in times])
        starts = array(
            "d",
            [_seconds(time.start_time) if time.HasField("start_time") else _seconds(time.end_time) for time in times],
        )
        grid = _Grid(
            times=_copied(times),
            gauge=gauge,
            starts=self._column(starts),
            ends=self._column(ends),
            sound=all(map(le if gauge else lt, starts, ends)),
        )
        self._grids = [grid, *self._grids[: _GRIDS - 1]]
        return grid


def _copied(times: Sequence[Any]) -> Sequence[Any]:
    """The same in a message of their own: those of a page would keep the whole page in memory."""
    from google.cloud import monitoring_v3

    holder = monitoring_v3.TimeSeries.pb(monitoring_v3.TimeSeries())
    for time in times:
        holder.points.add().interval.CopyFrom(time)
    return [point.interval for point in holder.points]


@final
class _Points:
    """The points of one series so far."""

    __slots__ = ("ends", "shared", "starts", "unreadable", "values")

    def __init__(self) -> None:
        self.starts, self.ends, self.values = array("d"), array("d"), array("d")
        self.unreadable = 0
        self.shared = False

    def own(self) -> None:
        """Takes copies of columns that others have too, before more points come."""
        if self.shared:
            self.starts, self.ends, self.shared = array("d", self.starts), array("d", self.ends), False

    def share(self, packer: Packer) -> None:
        """Gives up its columns for equal ones that others have."""
        if not self.shared:
            self.starts, self.ends, self.shared = packer.column(self.starts), packer.column(self.ends), True


@final
class Packing:
    """The series of one query. A series may go on in a later page."""

    def __init__(self, packer: Packer) -> None:
        self._packer = packer
        self._grids = _Grids(packer.column)
        self._found: dict[_Key, _Points] = {}

    def add(self, page: Iterable[Any]) -> None:
        """Take the TimeSeries messages of a page. A series of no known kind says nothing."""
        for series in page:
            if series.metric_kind not in _KINDS:
                continue
            points = self._found.setdefault(_key(series), _Points())
            _take(series, points, self._grids)
            points.share(self._packer)

    def series(self) -> tuple[Series, ...]:
        """All series, in the order in which they began."""
        return tuple(self._series(key, points) for key, points in self._found.items())

    def _series(self, key: _Key, points: _Points) -> Series:
        metric_labels, resource_type, resource_labels, kind, value_type = key
        return Series(
            metric_labels=self._packer.labels(metric_labels),
            resource_type=resource_type,
            resource_labels=self._packer.labels(resource_labels),
            kind=_KINDS[kind],
            whole=value_type == _INT64,
            starts=points.starts,
            ends=points.ends,
            values=points.values,
            unreadable=points.unreadable,
        )


def _key(series: Any) -> _Key:
    metric, resource = series.metric, series.resource
    return (
        tuple(sorted(metric.labels.items())),
        sys.intern(resource.type),
        tuple(sorted(resource.labels.items())),
        series.metric_kind,
        series.value_type,
    )


def _take(series: Any, into: _Points, grids: _Grids) -> None:
    """The points of a message that have a finite number, and of an amount a length; the others are counted."""
    if series.value_type not in _FIELDS:
        into.unreadable += len(series.points)
        return
    points, gauge = list(series.points), series.metric_kind == _GAUGE
    times = [point.interval for point in points]
    values = [point.value for point in points]
    numbers = _numbers(values, _FIELDS[series.value_type])
    grid = grids.find(times, gauge) or grids.add(times, gauge)
    if None in numbers or not grid.sound:
        _take_some(grid, numbers, into)
        return
    if not into.values:
        into.starts, into.ends, into.shared = grid.starts, grid.ends, True
    else:
        into.own()
        into.starts.extend(grid.starts)
        into.ends.extend(grid.ends)
    into.values.extend(numbers)


def _take_some(grid: _Grid, numbers: Sequence[float | None], into: _Points) -> None:
    into.own()
    for start, end, number in zip(grid.starts, grid.ends, numbers, strict=True):
        if number is None or start > end or (start == end and not grid.gauge):
            into.unreadable += 1
            continue
        into.starts.append(start)
        into.ends.append(end)
        into.values.append(number)


def _numbers(values: Sequence[Any], field: str) -> list[Any]:
    """The number of each value; None for what is no finite number."""
    numbers = [getattr(value, field) for value in values]
    if all(numbers) and all(map(isfinite, numbers)):
        return numbers
    # A value of another type reads as 0, which would be a false zero.
    return [
        number if isfinite(number) and (number or value.WhichOneof("value") == field) else None
        for value, number in zip(values, numbers, strict=True)
    ]


def _seconds(stamp: Any) -> float:
    nanos = stamp.nanos
    return stamp.seconds + nanos // 1000 / _MICRO if nanos else stamp.seconds  # type: ignore[no-any-return]
