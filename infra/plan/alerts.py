"""The queries of the alert policies, as text that Prometheus and Cloud Monitoring read alike.

Absence is never zero, and never interrupts anything:
- a bound holds over a window in which the data must be there (`COVERAGE` of it): a gap does not start the clock again,
  as the duration of a condition would, and a volume without telemetry is not idle;
- byte counters are summed over all readers of a volume as rates, so that a host that comes or goes is no jump;
- what has no series by itself, such as a volume that nobody has attached, is counted by the guard's own metrics, and
  a guard that writes none of them is an alert of its own.
A condition is billed by the month, so what the guard found is one condition with a series for each kind of finding.
Source: https://cloud.google.com/monitoring/promql/promql-in-alerting
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final, final

from infra.plan.promql import selector, window
from policies.audit.record import Metric
from policies.guard.gauges import RESOURCE, STACK_LABEL, Gauge

ACTIVE_CHIPS: Final = "compute.googleapis.com/instance/tpu/active_chips"
COVERAGE: Final = Fraction(9, 10)
"""Part of the steps of a window that must have data before anything is said of it."""
RATE_MINUTES: Final = 10
CHIP_MINUTES: Final = 10
MISSED_RUNS: Final = 2
"""So many runs of the guard may fail before its last figures count no more."""
PATIENCE_MINUTES: Final = 30
"""For a run that is late, and for the first one of a new stack."""
FINDING_LABEL: Final = "finding"


@final
@dataclass(frozen=True, kw_only=True)
class Alert:
    """When to tell somebody."""

    query: str
    """PromQL; whatever it returns is an incident."""
    hold_minutes: int = 0
    """So long it must return the same series."""
    every_minutes: int = 10
    """How often it is asked."""


def chips_beyond(chips: int) -> Alert:
    """More TPU chips at work in the project than `chips`, for ten minutes."""
    return Alert(query=_throughout(f"sum({selector(ACTIVE_CHIPS)})", f"> {chips}", CHIP_MINUTES, 1), every_minutes=1)


def idle_volume(device_name: str, below: int, hours: int) -> Alert:
    """A volume that all its readers together read at less than `below` bytes per second, for `hours` hours."""
    read = selector(Metric.READ_BYTES.value, monitored_resource="gce_instance", device_name=device_name)
    rate = f"sum(rate({read}[{window(RATE_MINUTES)}]))"
    return Alert(query=_throughout(rate, f"< {below}", hours * 60, RATE_MINUTES))


def guard_silent(stack: str, every_hours: int) -> Alert:
    """No run of the guard that did its work: two are missed, and the next has had half an hour."""
    query = f"absent_over_time({_gauge(Gauge.LAST_RUN, stack)}[{window(MISSED_RUNS * every_hours * 60)}])"
    return Alert(query=query, hold_minutes=every_hours * 60 + PATIENCE_MINUTES)


def guard_findings(stack: str, every_hours: int, dollars: int) -> Alert:
    """What the guard last found: more than `dollars` a month idle, or anything that nobody should leave standing."""
    bounds = {
        Gauge.IDLE_DOLLARS: dollars,
        Gauge.UNATTACHED_VOLUMES: 0,
        Gauge.STALE_HEARTBEATS: 0,
        Gauge.EXPIRED_SLICES: 0,
        Gauge.UNSEEN_PARTS: 0,
    }
    lookback = window(MISSED_RUNS * every_hours * 60)

    def found() -> Iterator[str]:
        for gauge, bound in bounds.items():
            last = f"last_over_time({_gauge(gauge, stack)}[{lookback}]) > {bound}"
            yield f'label_replace({last}, "{FINDING_LABEL}", "{gauge.value}", "", "")'

    return Alert(query=" or ".join(found()))


def _gauge(gauge: Gauge, stack: str) -> str:
    return selector(gauge.type, monitored_resource=RESOURCE, **{STACK_LABEL: stack})


def _throughout(value: str, bound: str, minutes: int, step: int) -> str:
    """`value` keeps `bound` (`< 5`, `> 8`) at every step of the window that has data, and enough of them have."""
    over = f"[{window(minutes)}:{window(step)}]"
    extreme = "max" if bound.startswith("<") else "min"
    enough = ceil(COVERAGE * minutes / step)
    return f"{extreme}_over_time({value}{over}) {bound} and count_over_time({value}{over}) >= {enough}"
