"""Flows become points: one a sample, or aligned to periods, as Cloud Monitoring does it.

Aligned periods are counted back from the end of the query; a period without a sample has no point. A sample describes
the stretch before it, so that a burst of five minutes is five points.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from google.cloud import monitoring_v3

from tests.google_cloud.descriptors import DELTA, DOUBLE, GAUGE, INT64, Descriptor
from tests.google_cloud.errors import Refusal
from tests.google_cloud.flows import Flow

Aligner = monitoring_v3.Aggregation.Aligner


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """The points of one series, newest first."""

    ends: Sequence[int]
    """Seconds of the epoch."""
    nanos: int
    """Added to every end."""
    span: int
    """Length of the interval of each point in seconds; 0 of a gauge."""
    values: Sequence[float]
    kind: Any
    whole: bool
    """INT64, else DOUBLE."""


@final
@dataclass(frozen=True, kw_only=True)
class Query:
    """Which stretch of time, and how it is aligned. After `start`, up to `end`."""

    start: int
    end: int
    nanos: int
    """Of start and end alike."""
    aligner: int = 0
    """A value of `Aggregation.Aligner`; 0 for the samples as they are."""
    period: int = 0


def check(query: Query, descriptor: Descriptor) -> None:
    """Refuse an alignment that does not fit the metric."""
    if query.aligner == Aligner.ALIGN_NONE:
        return
    if query.period < 60:
        raise Refusal(400, "badRequest", "Field aggregation.alignment_period must be at least 60 seconds.")
    if query.aligner in (Aligner.ALIGN_DELTA, Aligner.ALIGN_RATE):
        if descriptor.kind != DELTA:
            name = Aligner(query.aligner).name
            message = f"Field aggregation.perSeriesAligner had an invalid value of {name}: the metric kind is GAUGE."
            raise Refusal(400, "badRequest", message)
    elif query.aligner not in _REDUCE:
        raise Refusal(501, "notImplemented", f"the loopback has no aligner {query.aligner}")


def column(flow: Flow, descriptor: Descriptor, query: Query) -> Column:
    """The points of a flow, as a metric of that description."""
    # A start or an end outside the query changes nothing: machines of one habit and different ages share their points.
    begin = flow.begin if flow.begin > query.start else -math.inf
    end = flow.end if flow.end < query.end else math.inf
    return _made(replace(flow, begin=begin, end=end), descriptor, query)


@functools.lru_cache(maxsize=512)
def _made(flow: Flow, descriptor: Descriptor, query: Query) -> Column:
    if query.aligner == Aligner.ALIGN_NONE:
        return _raw(flow, descriptor, query)
    ends = _period_ends(query)
    if flow.steady and query.period % descriptor.sample_s == 0:
        one = _value(descriptor, flow.at(0.0))
        return _column(
            query, descriptor, ends, [_reduced(query, [one] * (query.period // descriptor.sample_s))] * len(ends)
        )
    found = [(end, samples) for end in ends if (samples := _samples(flow, descriptor, end - query.period, end))]
    return _column(query, descriptor, [end for end, _ in found], [_reduced(query, samples) for _, samples in found])


def _column(query: Query, descriptor: Descriptor, ends: Sequence[int], values: Sequence[float]) -> Column:
    delta = query.aligner == Aligner.ALIGN_DELTA
    whole = descriptor.values == INT64 and query.aligner not in (Aligner.ALIGN_RATE, Aligner.ALIGN_MEAN)
    return Column(
        ends=ends,
        nanos=query.nanos,
        span=query.period if delta else 0,
        values=values,
        kind=DELTA if delta else GAUGE,
        whole=whole or query.aligner == Aligner.ALIGN_COUNT,
    )


@functools.lru_cache(maxsize=64)
def _period_ends(query: Query) -> tuple[int, ...]:
    return tuple(range(query.end, query.start, -query.period))


def _raw(flow: Flow, descriptor: Descriptor, query: Query) -> Column:
    step = descriptor.sample_s
    last = query.end // step * step
    ends = [end for end in range(last, query.start, -step) if flow.present(end)]
    values = [_value(descriptor, flow.at(end - step)) for end in ends]
    if flow.shuffled:
        order = [index ^ 1 if index ^ 1 < len(ends) else index for index in range(len(ends))]
        ends, values = [ends[index] for index in order], [values[index] for index in order]
    return Column(
        ends=ends,
        nanos=0,
        span=step if descriptor.kind == DELTA else 0,
        values=values,
        kind=descriptor.kind,
        whole=descriptor.values == INT64,
    )


def _samples(flow: Flow, descriptor: Descriptor, start: int, end: int) -> list[float]:
    step = descriptor.sample_s
    first = start // step * step + step
    return [_value(descriptor, flow.at(at - step)) for at in range(first, end + 1, step) if flow.present(at)]


def _value(descriptor: Descriptor, level: float) -> float:
    value = level * descriptor.sample_s if descriptor.kind == DELTA else level
    return value if descriptor.values == DOUBLE else round(value)


def _reduced(query: Query, samples: Sequence[float]) -> float:
    if query.aligner == Aligner.ALIGN_RATE:
        return sum(samples) / query.period
    return sum(samples) if query.aligner == Aligner.ALIGN_DELTA else _REDUCE[query.aligner](samples)


_REDUCE: Final[Mapping[int, Callable[[Sequence[float]], float]]] = {
    Aligner.ALIGN_MAX: max,
    Aligner.ALIGN_MIN: min,
    Aligner.ALIGN_SUM: sum,
    Aligner.ALIGN_MEAN: statistics.fmean,
    Aligner.ALIGN_COUNT: len,
}
