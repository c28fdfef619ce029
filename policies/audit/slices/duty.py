"""What the chips of a slice did: duty cycles by worker, and since when all of them do nothing.

A worker is named in several ways: by the id of the node or instance, by its name, by either with a number behind it.
Source: https://docs.cloud.google.com/monitoring/api/metrics_gcp_t_z (tpu.googleapis.com/accelerator/duty_cycle)
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, final

from policies.audit.links import last
from policies.audit.record import Metric, Record, Series
from policies.audit.telemetry.grid import grid_of
from policies.audit.telemetry.spans import Span, Spans, common, length, micros, moment, united

_NUMBERED: Final = re.compile(r"(?P<host>.+?)-(?:w-?)?\d+")
"""`pod-w-3`, `4611686018427387904-3`: a worker of a node."""
_NAMES: Final = ("worker_id", "instance_id", "instance_name", "node_id", "node_name")


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Worker:
    """The duty cycles of one worker of a slice."""

    name: str
    series: tuple[Series, ...]
    """One a chip."""


@final
@dataclass(frozen=True, kw_only=True)
class Activity:
    """What the workers of a slice did in a span of time."""

    workers: int
    """Those with at least one point."""
    peak: Decimal | None
    """The highest duty cycle of any chip, in percent; None without a point."""
    last_busy: datetime.datetime | None
    """The end of the last point above the threshold; None where there is none."""
    covered: tuple[Spans, ...]
    """For each worker, the times that its points cover."""
    step: int
    """Microseconds from one point to the next, of the coarsest worker."""

    def coverage(self, start: datetime.datetime, end: datetime.datetime) -> Fraction:
        """Of a span, the part that the points of the least covered worker cover; 0 without workers.

        The newest point may be up to one step older than the end: it has not been due yet.
        """
        opens, closes = micros(start), micros(end)
        newest = max((spans[-1][1] for spans in self.covered if spans), default=opens)
        closes = newest if 0 <= closes - newest < self.step else closes
        if closes <= opens or not self.covered:
            return Fraction(0)
        span: Spans = ((opens, closes),)
        return min(Fraction(length(common(span, spans)), closes - opens) for spans in self.covered)


@final
class DutyCycles:
    """All duty cycles of a record, by the zone and the names of their workers."""

    def __init__(self, record: Record) -> None:
        self._window: Span = (micros(record.window.start), micros(record.window.end))
        self._by_host: dict[tuple[str, str], dict[str, list[Series]]] = {}
        for series in record.series(Metric.DUTY_CYCLE):
            zone = series.resource_labels.get("location") or series.resource_labels.get("zone", "")
            worker = next(_names(series), "")
            for host in dict.fromkeys(_hosts(series)):
                self._by_host.setdefault((zone.lower(), host), {}).setdefault(worker, []).append(series)

    def workers(self, zone: str, hosts: Iterable[str]) -> tuple[Worker, ...]:
        """The workers that go by any of those names (ids and names of nodes or instances) in that zone."""
        found: dict[str, list[Series]] = {}
        for host in hosts:
            for worker, series in self._by_host.get((zone.lower(), host), {}).items():
                kept = found.setdefault(worker, [])
                kept.extend(each for each in series if each not in kept)
        return tuple(Worker(name=name, series=tuple(series)) for name, series in sorted(found.items()))

    def activity(self, workers: Iterable[Worker], threshold: Decimal) -> Activity:
        """What those workers did over the window; a chip works while its duty cycle is above the threshold."""
        covered: list[Spans] = []
        busy, step, peak = None, 0, None
        for worker in workers:
            grids = [grid_of(series, self._window) for series in worker.series]
            spans = united(span for grid in grids for span in grid.covered)
            if not spans:
                continue
            covered.append(spans)
            step = max(step, *(max(grid.owns, default=0) for grid in grids))
            for series in worker.series:
                for end, value in _points(series, self._window):
                    peak = value if peak is None else max(peak, value)
                    if value > threshold:
                        busy = end if busy is None else max(busy, end)
        return Activity(
            workers=len(covered),
            peak=None if peak is None else Decimal(repr(float(peak))),
            last_busy=None if busy is None else moment(busy),
            covered=tuple(covered),
            step=step,
        )


def _points(series: Series, window: Span) -> Iterator[tuple[int, float]]:
    grid = grid_of(series, window)
    for at in range(len(grid)):
        yield grid.ends[at], series.values[at if grid.kept is None else grid.kept[at]]


def _names(series: Series) -> Iterator[str]:
    labels: Mapping[str, str]
    for labels in (series.resource_labels, series.metric_labels):
        yield from (last(labels[key]) for key in _NAMES if labels.get(key))


def _hosts(series: Series) -> Iterator[str]:
    for name in _names(series):
        yield name
        numbered = _NUMBERED.fullmatch(name)
        if numbered:
            yield numbered["host"]
