"""When points of a machine were due."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from policies.audit.record import Series
from policies.audit.telemetry.spans import MICRO
from policies.audit.volumes.joins import Host, Standing
from policies.audit.volumes.running import ran
from tests.policies.audit.points import HOUR, rates, series

MIDNIGHT = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
START = int(MIDNIGHT.timestamp())
WINDOW = (START * MICRO, (START + 24 * HOUR) * MICRO)
BEFORE = "2026-04-01T00:00:00Z"


def clock(hour: float) -> str:
    return (MIDNIGHT + datetime.timedelta(hours=hour)).isoformat()


def up(*hours: float) -> Series:
    """A machine that was up for so many seconds of each hour."""
    return series([(START + at * HOUR, START + (at + 1) * HOUR, hour) for at, hour in enumerate(hours)], whole=False)


FULL = [3600.0] * 24


@pytest.mark.parametrize(
    ("standing", "item", "uptime", "expected"),
    [
        (Standing.RUNS, {"lastStartTimestamp": BEFORE}, [], [(0, 24)]),
        (Standing.RUNS, {"lastStartTimestamp": clock(6)}, [], [(6, 24)]),
        (Standing.RUNS, {"creationTimestamp": clock(4)}, [], [(4, 24)]),
        (Standing.RUNS, {}, [], [(0, 24)]),
        (Standing.RUNS, {"lastStartTimestamp": clock(30)}, [], []),
        # It ran before its last start too, and its uptime says when.
        (Standing.RUNS, {"lastStartTimestamp": clock(6)}, [0.0, 3600.0, 1800.0, 0.0], [(1, 3), (6, 24)]),
        # It was started at half past five, and the hour of that has uptime.
        (
            Standing.RUNS,
            {"lastStartTimestamp": clock(5.5), "lastStopTimestamp": clock(2)},
            [3600.0, 3600.0, 0.0, 0.0, 0.0, 1800.0],
            [(0, 2), (5.5, 24)],
        ),
        # It runs, whatever its telemetry says: three hours of uptime do not make the other twenty-one undue.
        (Standing.RUNS, {"lastStartTimestamp": BEFORE}, [3600.0] * 3, [(0, 24)]),
        # Without a start only the uptime knows.
        (Standing.RUNS, {}, [0.0, *[3600.0] * 5], [(1, 6)]),
        (Standing.OFF, {"lastStartTimestamp": BEFORE, "lastStopTimestamp": clock(5)}, [], [(0, 5)]),
        (Standing.OFF, {"lastStartTimestamp": clock(2), "lastSuspendedTimestamp": clock(5)}, [], [(2, 5)]),
        (Standing.OFF, {"lastStartTimestamp": clock(5), "lastStopTimestamp": clock(2)}, [], []),
        (Standing.OFF, {"lastStartTimestamp": BEFORE}, [], []),
        (Standing.OFF, {}, [3600.0, 3600.0], [(0, 2)]),
        (Standing.OFF, {}, [], []),
    ],
)
def test_when_a_machine_ran(
    standing: Standing, item: dict[str, Any], uptime: list[float], expected: list[tuple[int, int]]
) -> None:
    found = ran(Host(name="vm", standing=standing, item=item), [up(*uptime)] if uptime else [], WINDOW)
    assert [((start - WINDOW[0]) / MICRO / HOUR, (end - WINDOW[0]) / MICRO / HOUR) for start, end in found] == expected


def test_uptime_of_another_day_is_not_of_the_window() -> None:
    later = series(rates([1.0] * 3, START + 48 * HOUR))
    assert ran(Host(name="vm", standing=Standing.OFF, item={}), [later], WINDOW) == ()
