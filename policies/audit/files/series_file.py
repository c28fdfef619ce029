"""Time series in the REST JSON of Monitoring v3, from and to packed columns.

Source: https://cloud.google.com/monitoring/api/ref_v3/rest/v3/TimeSeries
"""

from __future__ import annotations

import datetime
import json
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Final, TypeAlias, final

from policies.audit.record import Kind, Metric, Series
from policies.audit.times import epoch
from policies.errors import InputError

WHOLE: Final = "INT64"
REAL: Final = "DOUBLE"
UNREADABLE: Final = "unreadable"
"""The one member that Monitoring has not: how many points had no number. Written only where there were any."""
_KEPT: Final = 1 << 16

Fault: TypeAlias = "Callable[[str, str], InputError]"
"""Makes the error of a place inside the series (`.points[3].interval`) and a rule."""


@final
class Columns:
    """Keeps one copy of what many series share: ten thousand volumes have the same 168 hours."""

    def __init__(self) -> None:
        self._kept: dict[bytes, array[float]] = {}

    def shared(self, column: array[float]) -> array[float]:
        """The column, or an equal one that was seen before."""
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        return self._kept.setdefault(column.tobytes(), column)


@final
class SeriesReader:
    """From TimeSeries of REST JSON to Series."""

    def __init__(self) -> None:
        self._columns = Columns()
        self._times: dict[str, float] = {}

    def read(self, found: Any, metric: Metric, fault: Fault) -> Series:
        """The series; raises what `fault` makes of everything that cannot be."""
        if not isinstance(found, Mapping):
            raise fault("", f"is {_shown(found)}; it must be a TimeSeries object")
        labels = _part(found, "metric", fault)
        if labels.get("type", metric.value) != metric.value:
            raise fault(".metric.type", f"is {_shown(labels['type'])}; the list is of {metric.value}")
        resource = _part(found, "resource", fault)
        kind = _kind(found, fault)
        points = found.get("points") or []
        if not isinstance(points, list):
            raise fault(".points", f"is {_shown(points)}; it must be a list")
        starts, ends, values = self._columns_of(points, kind, fault)
        return Series(
            metric_labels=_labels(labels, ".metric.labels", fault),
            resource_type=str(resource.get("type", "")),
            resource_labels=_labels(resource, ".resource.labels", fault),
            kind=kind,
            whole=_whole(found, points),
            starts=self._columns.shared(starts),
            ends=self._columns.shared(ends),
            values=values,
            unreadable=len(points) - len(values) + _lost(found, fault),
        )

    def _columns_of(self, points: list[Any], kind: Kind, fault: Fault) -> tuple[array[float], ...]:
        """Starts, ends and values of the points that have a finite number."""
        starts, ends, values = array("d"), array("d"), array("d")
        for number, point in enumerate(points):
            try:
                interval, quantity = point["interval"], number_of(point.get("value") or {})
                end = self._epoch(interval["endTime"])
                start = self._epoch(interval["startTime"]) if "startTime" in interval else end
            except (InputError, KeyError, TypeError, AttributeError) as error:
                raise fault(f".points[{number}]", f"{_why(error)}; {_POINT}") from None
            if start > end or (start == end and kind is not Kind.GAUGE):
                raise fault(f".points[{number}].interval", f"is {_shown(interval)}; it must start before it ends")
            if quantity is not None:
                starts.append(start)
                ends.append(end)
                values.append(quantity)
        return starts, ends, values

    def _epoch(self, text: str) -> float:
        known = self._times.get(text)
        if known is None:
            if len(self._times) >= _KEPT:
                self._times.clear()
            known = self._times[text] = epoch(text)
        return known


def number_of(value: Mapping[str, Any]) -> float | None:
    """The finite number that a TypedValue holds; None for every other: NaN, infinite, a text, a distribution."""
    found = value.get("int64Value", value.get("doubleValue"))
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return None
    try:
        number = float(found)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def written(series: Series, metric: Metric, times: MutableMapping[float, str]) -> str:
    """The series as one line of JSON. `times` keeps the texts of times from one series to the next."""
    if not all(map(math.isfinite, series.values)):
        raise ValueError(f"a series of {metric.value} has a value that is no finite number; JSON has none")
    whole = series.whole and all(map(float.is_integer, series.values))
    head = {
        "metric": {"type": metric.value, "labels": dict(series.metric_labels)},
        "resource": {"type": series.resource_type, "labels": dict(series.resource_labels)},
        "metricKind": series.kind.value,
        "valueType": WHOLE if whole else REAL,
    }
    lost = {UNREADABLE: series.unreadable} if series.unreadable else {}
    text = json.dumps(head | lost, allow_nan=False)
    return f'{text[:-1]}, "points": [{", ".join(_points(series, whole, times))}]}}'


def _points(series: Series, whole: bool, times: MutableMapping[float, str]) -> Iterator[str]:
    if len(times) >= _KEPT:
        times.clear()
    for start, end, value in series.points():
        number = f'{{"int64Value": "{int(value)}"}}' if whole else f'{{"doubleValue": {value!r}}}'
        began, ended = times.get(start) or _time(start, times), times.get(end) or _time(end, times)
        yield f'{{"interval": {{"startTime": "{began}", "endTime": "{ended}"}}, "value": {number}}}'


def _time(seconds: float, times: MutableMapping[float, str]) -> str:
    times[seconds] = text = rfc3339(datetime.datetime.fromtimestamp(seconds, datetime.UTC))
    return text


def rfc3339(when: datetime.datetime) -> str:
    """The time as Google writes it: `2026-05-01T00:59:00Z`, with six digits of a second where it has a fraction."""
    return when.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")


_POINT: Final = (
    'a point is {"interval": {"startTime": "2026-05-01T00:59:00Z", "endTime": "2026-05-01T01:00:00Z"}, '
    '"value": {"int64Value": "0"}}'
)


def _part(found: Mapping[str, Any], name: str, fault: Fault) -> Mapping[str, Any]:
    part = found.get(name)
    if not isinstance(part, Mapping):
        raise fault(f".{name}", f'is {_shown(part)}; it must be an object such as {{"type": ..., "labels": {{...}}}}')
    return part


def _labels(part: Mapping[str, Any], path: str, fault: Fault) -> Mapping[str, str]:
    labels = part.get("labels") or {}
    if not isinstance(labels, Mapping) or not all(isinstance(label, str) for label in labels.values()):
        raise fault(path, f"is {_shown(labels)}; labels are texts by their name")
    return dict(labels)


def _kind(found: Mapping[str, Any], fault: Fault) -> Kind:
    try:
        return Kind(found.get("metricKind"))
    except ValueError:
        kinds = ", ".join(kind.value for kind in Kind)
        raise fault(".metricKind", f"is {_shown(found.get('metricKind'))}; it must be one of {kinds}") from None


def _whole(found: Mapping[str, Any], points: list[Any]) -> bool:
    """Whether the values are INT64; where the series does not say so, its first value does."""
    kind = found.get("valueType")
    return kind == WHOLE if kind else not points or "int64Value" in (points[0].get("value") or {})


def _lost(found: Mapping[str, Any], fault: Fault) -> int:
    count = found.get(UNREADABLE, 0)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise fault(f".{UNREADABLE}", f"is {_shown(count)}; it must be a whole number of at least 0")
    return count


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"has no {error.args[0]}"
    return f"{error}" if isinstance(error, InputError) else "is no point"


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:80]
