"""Time series for tests, written as (start, end, value) in seconds."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from policies.audit.record import Kind, Series

Points: TypeAlias = Sequence[tuple[float, float, float]]

MINUTE = 60
HOUR = 3600
MIB = 1 << 20


def series(
    points: Points,
    *,
    kind: Kind = Kind.DELTA,
    instance: str = "1",
    device: str = "d",
    zone: str = "us-central1-b",
    whole: bool = True,
) -> Series:
    """A series of one volume of one machine, its points in the order given."""
    return Series(
        metric_labels={"device_name": device},
        resource_type="gce_instance",
        resource_labels={"instance_id": instance, "zone": zone},
        kind=kind,
        whole=whole,
        starts=array("d", [start for start, _, _ in points]),
        ends=array("d", [end for _, end, _ in points]),
        values=array("d", [value for _, _, value in points]),
    )


def at_rate(mibps: float, start: float, end: float, step: float = HOUR) -> list[tuple[float, float, float]]:
    """DELTA points of one rate in MiB/s, newest first, as the API gives them."""
    count = int((end - start) / step)
    return [(start + at * step, start + (at + 1) * step, mibps * MIB * step) for at in reversed(range(count))]


def rates(mibps: Iterable[float], start: float = 0, step: float = HOUR) -> list[tuple[float, float, float]]:
    """DELTA points of these rates in MiB/s, one after the other."""
    return [(start + at * step, start + (at + 1) * step, rate * MIB * step) for at, rate in enumerate(mibps)]
