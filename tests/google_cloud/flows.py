"""How much something moves over time, said compactly: a level, levels by the hour, bursts, stretches without points."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from tests.google_cloud.instants import instant


@final
@dataclass(frozen=True, kw_only=True)
class Burst:
    """Another level for a while, once or again and again."""

    start: float
    """Seconds of the epoch."""
    seconds: float
    level: float
    every: float = 0.0
    """Seconds from one start to the next, before and after `start`; 0 for once."""

    def covers(self, moment: float) -> bool:
        passed = moment - self.start
        return 0 <= (passed % self.every if self.every else passed) < self.seconds


@final
@dataclass(frozen=True, kw_only=True)
class Flow:
    """A level over time. Of a counter it is the amount a second, of a gauge the value."""

    level: float = 0.0
    hours: tuple[float, ...] = ()
    """24 levels by the hour of the day in UTC, in place of `level`."""
    bursts: tuple[Burst, ...] = ()
    """The first that covers a moment wins."""
    missing: tuple[tuple[float, float], ...] = ()
    """Stretches without points, in seconds of the epoch."""
    begin: float = -math.inf
    """Before which there are no points."""
    end: float = math.inf
    """After which there are none."""
    shuffled: bool = False
    """Whether neighbouring points come in the wrong order."""

    @property
    def steady(self) -> bool:
        """Whether it has one level for ever, without a gap."""
        return not (self.hours or self.bursts or self.missing) and self.begin == -math.inf and self.end == math.inf

    def at(self, moment: float) -> float:
        """The level at a moment."""
        for burst in self.bursts:
            if burst.covers(moment):
                return burst.level
        return self.hours[int(moment // 3600) % 24] if self.hours else self.level

    def present(self, end: float) -> bool:
        """Whether there is a point that ends then."""
        return self.begin < end <= self.end and not any(start < end <= stop for start, stop in self.missing)


def flow(spec: Any, now: datetime.datetime, *, scale: float = 1.0, begin: float | None = None) -> Flow:
    """A flow from a world file: a number, or a mapping.

    `{"level": 100, "hours": {"9-17": 800}, "bursts": [{"at": "now-2d", "minutes": 5, "level": 900, "every_hours": 24}],
    "missing": [["now-3d", "now-2d"]], "begin": "now-5d", "end": "now-1h", "shuffled": true}`; levels times `scale`.
    """
    fields: Mapping[str, Any] = spec if isinstance(spec, Mapping) else {"level": spec}
    unknown = set(fields) - {"level", "hours", "bursts", "missing", "begin", "end", "shuffled"}
    if unknown:
        raise ValueError(f"a flow has no {', '.join(sorted(unknown))}: {spec}")

    def seconds(text: str) -> float:
        return instant(text, now).timestamp()

    level = float(fields.get("level", 0.0)) * scale
    started = -math.inf if begin is None else begin
    return Flow(
        level=level,
        hours=_hours(fields.get("hours", {}), level, scale),
        bursts=tuple(
            Burst(
                start=seconds(burst["at"]),
                seconds=60.0 * burst["minutes"],
                level=float(burst["level"]) * scale,
                every=3600.0 * burst.get("every_hours", 0),
            )
            for burst in fields.get("bursts", ())
        ),
        missing=tuple((seconds(start), seconds(stop)) for start, stop in fields.get("missing", ())),
        begin=seconds(fields["begin"]) if "begin" in fields else started,
        end=seconds(fields["end"]) if "end" in fields else math.inf,
        shuffled=bool(fields.get("shuffled", False)),
    )


def _hours(spec: Mapping[str, Any], level: float, scale: float) -> tuple[float, ...]:
    """`{"9-17": 800}` is 800 from 9:00 to 17:00, and the plain level at the other hours."""
    if not spec:
        return ()
    levels = [level] * 24
    for span, value in spec.items():
        first, last = map(int, span.split("-"))
        levels[first:last] = [float(value) * scale] * (last - first)
    return tuple(levels)
