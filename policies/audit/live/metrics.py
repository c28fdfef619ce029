"""How things are used: one query a metric for the whole project, aligned by Cloud Monitoring, most of them to the hour.

Minute points are read only for the volumes whose verdict needs them. A metric that a project never had is not an error
of the API's making: it has no series.
Source: https://cloud.google.com/monitoring/api/ref_v3/rpc/google.monitoring.v3#metricservice
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

from policies.audit.live.access import Clients
from policies.audit.live.failures import CloudError, plain
from policies.audit.live.packing import Packer
from policies.audit.live.paging import pages
from policies.audit.live.sampling import as_sampled
from policies.audit.record import Metric, Missing, Series, Window

HOUR: Final = datetime.timedelta(hours=1)
CHIP: Final = datetime.timedelta(minutes=10)
"""Chips are judged by the last hour: an hour of one sample would say too little."""
MINUTE: Final = datetime.timedelta(minutes=1)
LAG: Final = datetime.timedelta(minutes=5)
"""Points of the last minutes have not all come in."""
METHOD: Final = "monitoring.timeSeries.list"
MINUTES_OF: Final = (Metric.READ_BYTES, Metric.WRITE_BYTES)
"""The metrics of which minute points are read."""
SAMPLED: Final = Metric.READ_BYTES
"""The metric whose samples are counted too, as its coverage decides whether a volume may be called idle."""
MOST_MINUTES: Final = 10_000_000
"""Minute points that are read at most: a quarter of a gigabyte would be twice as many."""
_PAGE: Final = 50_000
"""Points of a page: half of what Google gives, so that the pages that are open take tens of megabytes."""
_LONGEST_FILTER: Final = 2000
"""Characters; Google takes 2,048."""
_MOST_NAMES: Final = 100
"""Alternatives of one `one_of`."""
_NEVER_HAD: Final = "Cannot find metric"

Pair: TypeAlias = tuple[str, str]
"""Id of an instance and the device name of a volume on it."""

_ALIGNERS: Final[Mapping[Metric, str]] = {
    Metric.READ_BYTES: "ALIGN_DELTA",
    Metric.WRITE_BYTES: "ALIGN_DELTA",
    Metric.MAX_READ_BYTES: "ALIGN_MAX",
    Metric.UPTIME: "ALIGN_DELTA",
    Metric.CPU: "ALIGN_MEAN",
    Metric.DUTY_CYCLE: "ALIGN_MAX",
    Metric.BUCKET_BYTES: "ALIGN_MAX",
    Metric.NAT_RECEIVED: "ALIGN_DELTA",
    Metric.CACHE_HITS: "ALIGN_DELTA",
}


@final
@dataclass(kw_only=True)
class FoundSeries:
    """What came of a metric."""

    series: tuple[Series, ...] = ()
    missing: list[Missing] = field(default_factory=list)


def window_before(now: datetime.datetime, length: datetime.timedelta) -> Window:
    """The window of that length that ends five minutes before `now`, at a full minute."""
    end = (now - LAG).astimezone(datetime.UTC).replace(second=0, microsecond=0)
    return Window(start=end - length, end=end)


def readers(
    clients: Clients, project: str, window: Window, packer: Packer
) -> Mapping[Metric, Callable[[], FoundSeries]]:
    """The questions about every metric, by the hour. Each raises CloudError where nothing came."""
    return {metric: _reader(clients, project, window, packer, metric) for metric in Metric}


def _reader(
    clients: Clients, project: str, window: Window, packer: Packer, metric: Metric
) -> Callable[[], FoundSeries]:
    def read() -> FoundSeries:
        found = _read(clients, packer, metric, hourly_request(project, window, metric))
        if metric is not SAMPLED or not found.series:
            return found
        try:
            request = _request(project, window, filter_of(metric), "ALIGN_COUNT", HOUR)
            counts = _read(clients, packer, metric, request)
        except CloudError as error:
            found.missing.append(Missing(part=f"{metric.value} samples", why=f"{error}"))
            return found
        return FoundSeries(series=as_sampled(found.series, counts.series), missing=[*found.missing, *counts.missing])

    return read


def minute_readers(
    clients: Clients, project: str, window: Window, packer: Packer, pairs: Sequence[Pair]
) -> Mapping[tuple[Metric, int], Callable[[], FoundSeries]]:
    """The questions about the minutes of these pairs: many pairs a query, by metric and number of the query."""
    return {
        (metric, number): _minute_reader(clients, project, window, packer, metric, chunk)
        for metric in MINUTES_OF
        for number, chunk in enumerate(chunks(pairs))
    }


def _minute_reader(
    clients: Clients, project: str, window: Window, packer: Packer, metric: Metric, chunk: Sequence[Pair]
) -> Callable[[], FoundSeries]:
    def read() -> FoundSeries:
        found = _read(
            clients, packer, metric, _request(project, window, filter_of(metric, chunk), _ALIGNERS[metric], MINUTE)
        )
        wanted = set(chunk)
        # The filter cannot say pairs: it lets through each of these machines with each of these names.
        return FoundSeries(
            series=tuple(series for series in found.series if _pair(series) in wanted), missing=found.missing
        )

    return read


def affordable(window: Window) -> int:
    """For so many pairs minute points of the window are read at most."""
    minutes = (window.end - window.start) // MINUTE
    return max(1, MOST_MINUTES // (minutes * len(MINUTES_OF)))


def chunks(pairs: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
    """The pairs in so many parts that the filter of each is short enough."""
    chunk: list[Pair] = []
    for pair in sorted(set(pairs)):
        longer = [*chunk, pair]
        if chunk and (len(longer) > _MOST_NAMES or len(filter_of(Metric.WRITE_BYTES, longer)) > _LONGEST_FILTER):
            yield tuple(chunk)
            longer = [pair]
        chunk = longer
    if chunk:
        yield tuple(chunk)


def _read(clients: Clients, packer: Packer, metric: Metric, request: Any) -> FoundSeries:
    """All pages of a query. What came before a page fails is kept, and said to be cut."""
    from google.api_core.exceptions import NotFound

    packing = packer.packing()
    missing: list[Missing] = []
    came = 0
    try:
        with packer.turn:
            for page in pages(clients, METHOD, clients.monitoring.list_time_series, request):
                raw = type(page).pb(page)
                packing.add(raw.time_series)
                missing += [Missing(part=metric.value, why=plain(each.message)) for each in raw.execution_errors]
                came += 1
                # Not two pages in memory.
                del page, raw
    except CloudError as error:
        if isinstance(error.__cause__, NotFound) and _NEVER_HAD in str(error.__cause__):
            return FoundSeries()
        if not came:
            raise
        missing.append(Missing(part=metric.value, why=f"{error} (after {came} pages)"))
    return FoundSeries(series=packing.series(), missing=missing)


def hourly_request(project: str, window: Window, metric: Metric) -> Any:
    """The query for a metric of the whole project, as a ListTimeSeriesRequest."""
    period = CHIP if metric is Metric.DUTY_CYCLE else HOUR
    return _request(project, window, filter_of(metric), _ALIGNERS[metric], period)


def _request(project: str, window: Window, text: str, aligner: str, period: datetime.timedelta) -> Any:
    from google.cloud import monitoring_v3

    return monitoring_v3.ListTimeSeriesRequest(
        name=f"projects/{project}",
        filter=text,
        interval=monitoring_v3.TimeInterval(start_time=window.start, end_time=window.end),
        aggregation=monitoring_v3.Aggregation(
            alignment_period=period, per_series_aligner=getattr(monitoring_v3.Aggregation.Aligner, aligner)
        ),
        view=monitoring_v3.ListTimeSeriesRequest.TimeSeriesView.FULL,
        page_size=_PAGE,
    )


def filter_of(metric: Metric, pairs: Sequence[Pair] = ()) -> str:
    """The filter for a metric; with pairs, of each of their machines with each of their names."""
    every = f'metric.type = "{metric.value}"'
    if not pairs:
        return every
    ids, names = ({pair[at] for pair in pairs} for at in (0, 1))
    return f"{every} AND resource.labels.instance_id = {_one_of(ids)} AND metric.labels.device_name = {_one_of(names)}"


def _one_of(texts: set[str]) -> str:
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in sorted(texts))
    return f"one_of({', '.join(f'{chr(34)}{text}{chr(34)}' for text in quoted)})"


def _pair(series: Series) -> Pair:
    return series.resource_labels.get("instance_id", ""), series.metric_labels.get("device_name", "")
