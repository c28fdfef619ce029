"""Hours that were seen only in part. Cloud Monitoring gives an hour of one sample the same point as an hour of sixty.

So the samples are counted too, and a point covers as much of its hour as there are samples: its amount was moved in
that time, and the rest of the hour was not seen.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from policies.audit.record import Series

SAMPLE_S: Final = 60
"""Compute Engine writes a point a minute."""

_Key: TypeAlias = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]


def as_sampled(amounts: Sequence[Series], counts: Sequence[Series]) -> tuple[Series, ...]:
    """The amounts of aligned periods, each over the time that was sampled; a period without a sample has no point.

    `counts` has the number of samples at the end of each of the same periods.
    """
    counted = {_key(series): series for series in counts}
    return tuple(_sampled(series, counted.get(_key(series))) for series in amounts)


def _key(series: Series) -> _Key:
    return tuple(sorted(series.metric_labels.items())), tuple(sorted(series.resource_labels.items()))


def _sampled(series: Series, counts: Series | None) -> Series:
    if counts is not None and _whole(series, counts):
        return series
    seen: Mapping[float, float] = {} if counts is None else dict(zip(counts.ends, counts.values, strict=True))
    kept = [point for point in series.points() if seen.get(point.end, 0) > 0]
    return replace(
        series,
        starts=array("d", [max(point.start, point.end - SAMPLE_S * seen[point.end]) for point in kept]),
        ends=array("d", [point.end for point in kept]),
        values=array("d", [point.value for point in kept]),
    )


def _whole(series: Series, counts: Series) -> bool:
    """Whether every period has all its samples."""
    if not counts.values or counts.ends != series.ends:
        return False
    longest = max(map(float.__sub__, series.ends, series.starts))
    return min(counts.values) * SAMPLE_S >= longest
