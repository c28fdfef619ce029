"""The guard's own metrics in Cloud Monitoring: written at the end of a run, and one of them read at its beginning."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from policies.audit.live.access import Clients
from policies.audit.live.failures import CloudError, told
from policies.guard.gauges import RESOURCE, STACK_LABEL, Gauge

WRITE: Final = "monitoring.timeSeries.create"
READ: Final = "monitoring.timeSeries.list"
REMEMBERED: Final = datetime.timedelta(hours=25)
"""For so long the digest of what was told is looked for: longer than the seldomest guard sleeps."""
FRACTIONAL: Final = frozenset({Gauge.IDLE_DOLLARS, Gauge.IDLE_MIBPS})


def write_figures(
    clients: Clients, project: str, stack: str, values: Mapping[Gauge, Decimal], at: datetime.datetime
) -> None:
    """Write one point of each gauge. Raises CloudError."""
    from google.cloud import monitoring_v3

    series = [_series(monitoring_v3, project, stack, gauge, value, at) for gauge, value in values.items()]
    with told(WRITE):
        clients.asked(WRITE)
        request = monitoring_v3.CreateTimeSeriesRequest(name=f"projects/{project}", time_series=series)
        clients.monitoring.create_time_series(request=request, **clients.how(WRITE))


def last_told(clients: Clients, project: str, stack: str, at: datetime.datetime) -> int | None:
    """The digest of what was told last; None where none is known. Telling twice is better than never, so that a
    failure to read is none."""
    from google.api_core.exceptions import NotFound
    from google.cloud import monitoring_v3

    request = monitoring_v3.ListTimeSeriesRequest(
        name=f"projects/{project}",
        filter=f'metric.type = "{Gauge.TOLD.type}" AND metric.labels.{STACK_LABEL} = "{stack}"',
        interval=monitoring_v3.TimeInterval(start_time=at - REMEMBERED, end_time=at),
    )
    try:
        with told(READ):
            clients.asked(READ)
            try:
                found = list(clients.monitoring.list_time_series(request=request, **clients.how(READ)))
            except NotFound:  # nobody has ever written it
                return None
    except CloudError as error:
        clients.say(f"what was told last is not known: {error}")
        return None
    points = [point for series in found for point in series.points]
    if not points:
        return None
    newest = max(points, key=_ended)
    return int(newest.value.int64_value)


def _ended(point: Any) -> float:
    return float(point.interval.end_time.timestamp())


def _series(monitoring: Any, project: str, stack: str, gauge: Gauge, value: Decimal, at: datetime.datetime) -> Any:
    typed = {"double_value": float(value)} if gauge in FRACTIONAL else {"int64_value": int(value)}
    series = monitoring.TimeSeries(
        metric_kind="GAUGE",
        value_type="DOUBLE" if gauge in FRACTIONAL else "INT64",
        points=[monitoring.Point(interval=monitoring.TimeInterval(end_time=at), value=monitoring.TypedValue(**typed))],
    )
    series.metric.type = gauge.type
    series.metric.labels[STACK_LABEL] = stack
    series.resource.type = RESOURCE
    series.resource.labels["project_id"] = project
    return series
