"""The dashboard of a stack, as the JSON of Cloud Monitoring's dashboards.

A mosaic of 48 columns. The queries are PromQL, as those of the alerts; what the guard counts is on it beside what the
machines report, and a stack without a guard has fewer tiles.
Source: https://cloud.google.com/monitoring/api/ref_v3/rest/v1/projects.dashboards
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NotRequired, TypedDict, final

from infra.plan.alerts import ACTIVE_CHIPS
from infra.plan.promql import selector
from policies.audit.record import Metric
from policies.guard.gauges import RESOURCE, STACK_LABEL, Gauge

COLUMNS: Final = 48
TILES_A_ROW: Final = 2
HEIGHT: Final = 16
BYTES_PER_MIB: Final = 1024 * 1024
TEN_MINUTES: Final = "10m"
LOOKBACK: Final = "25h"
"""The guard writes a point a run; a line between two is drawn."""


class TimeSeriesQuery(TypedDict):
    """Where the points of one line come from."""

    prometheusQuery: str


class DataSet(TypedDict):
    """One line, or many, of a chart."""

    timeSeriesQuery: TimeSeriesQuery
    plotType: str
    legendTemplate: str


class Threshold(TypedDict):
    """A level that is drawn across a chart."""

    label: str
    value: float


class XyChart(TypedDict):
    """A chart over time."""

    dataSets: list[DataSet]
    thresholds: list[Threshold]


class Text(TypedDict):
    """Words on the dashboard."""

    content: str
    format: str


class Widget(TypedDict):
    """What a tile shows."""

    title: str
    xyChart: NotRequired[XyChart]
    text: NotRequired[Text]


class Tile(TypedDict):
    """Where a widget stands."""

    xPos: int
    yPos: int
    width: int
    height: int
    widget: Widget


class MosaicLayout(TypedDict):
    """All tiles."""

    columns: int
    tiles: list[Tile]


class Dashboard(TypedDict):
    """The whole."""

    displayName: str
    labels: dict[str, str]
    mosaicLayout: MosaicLayout


@final
@dataclass(frozen=True, kw_only=True)
class Shown:
    """What the dashboard of a stack is about."""

    stack: str
    chips: int
    """TPU chips that the stack declares."""
    volumes: tuple[tuple[str, int], ...]
    """Device name and provisioned MiB/s of each."""
    monthly: int
    """The budget."""
    currency: str
    guarded: bool
    """Whether a guard writes metrics of its own."""


def dashboard(shown: Shown) -> Dashboard:
    """The dashboard: money first, then what it is paid for."""
    return Dashboard(
        displayName=f"spotrail {shown.stack}",
        labels={"spotrail": "", f"stack-{shown.stack}": ""},
        mosaicLayout=MosaicLayout(columns=COLUMNS, tiles=list(_placed(list(_widgets(shown))))),
    )


def dashboard_json(shown: Shown) -> str:
    """As text; the same for the same stack, so that a preview shows no difference."""
    return json.dumps(dashboard(shown), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _placed(widgets: Sequence[Widget]) -> Iterator[Tile]:
    width = COLUMNS // TILES_A_ROW
    for index, widget in enumerate(widgets):
        row, column = divmod(index, TILES_A_ROW)
        yield Tile(xPos=column * width, yPos=row * HEIGHT, width=width, height=HEIGHT, widget=widget)


def _widgets(shown: Shown) -> Iterator[Widget]:
    yield _budget(shown)
    if shown.guarded:
        yield _chart(f"Idle, {shown.currency} a month", [_last(Gauge.IDLE_DOLLARS, shown)])
        yield _chart("Idle, MiB/s that are billed and not read", [_last(Gauge.IDLE_MIBPS, shown)])
    chips = f"sum({selector(ACTIVE_CHIPS)})"
    yield _chart("TPU chips at work in the project", [_line(chips, "at work")], [("declared", shown.chips)])
    for device, provisioned in shown.volumes:
        yield _volume(device, provisioned)
    if shown.guarded:
        counted = (Gauge.UNATTACHED_VOLUMES, Gauge.EXPIRED_SLICES, Gauge.STALE_HEARTBEATS, Gauge.UNSEEN_PARTS)
        yield _chart("What the guard found", [_last(gauge, shown) for gauge in counted])


def _budget(shown: Shown) -> Widget:
    content = (
        f"**{shown.monthly:,} {shown.currency}** a month is the budget of `{shown.stack}`.\n\n"
        "Billing data is hours to a day old: what was spent stands in Billing, under Budgets & alerts. "
        "What is idle now stands here."
    )
    return Widget(title="Budget", text=Text(content=content, format="MARKDOWN"))


def _volume(device: str, provisioned: int) -> Widget:
    read = selector(Metric.READ_BYTES.value, monitored_resource="gce_instance", device_name=device)
    rate = f"sum(rate({read}[{TEN_MINUTES}])) / {BYTES_PER_MIB}"
    return _chart(f"{device}: MiB/s read, all hosts", [_line(rate, "read")], [("provisioned", provisioned)])


def _last(gauge: Gauge, shown: Shown) -> DataSet:
    series = selector(gauge.type, monitored_resource=RESOURCE, **{STACK_LABEL: shown.stack})
    return _line(f"last_over_time({series}[{LOOKBACK}])", gauge.value.replace("_", " "))


def _line(query: str, legend: str) -> DataSet:
    return DataSet(timeSeriesQuery=TimeSeriesQuery(prometheusQuery=query), plotType="LINE", legendTemplate=legend)


def _chart(title: str, lines: list[DataSet], levels: Sequence[tuple[str, int]] = ()) -> Widget:
    thresholds = [Threshold(label=label, value=float(value)) for label, value in levels]
    return Widget(title=title, xyChart=XyChart(dataSets=lines, thresholds=thresholds))
