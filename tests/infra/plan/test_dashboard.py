from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.plan.dashboard import COLUMNS, Shown, dashboard, dashboard_json
from policies.guard.gauges import Gauge
from tests.infra.alerts.promtool import ensure_promtool

DEV = Shown(stack="dev", chips=8, volumes=(("vol-a", 1200), ("vol-b", 400)), monthly=4000, currency="USD", guarded=True)
UNGUARDED = replace(DEV, guarded=False)


def charts(shown: Shown) -> dict[str, Any]:
    tiles = dashboard(shown)["mosaicLayout"]["tiles"]
    return {tile["widget"]["title"]: tile["widget"]["xyChart"] for tile in tiles if "xyChart" in tile["widget"]}


def queries(shown: Shown) -> Iterator[str]:
    for chart in charts(shown).values():
        for line in chart["dataSets"]:
            yield line["timeSeriesQuery"]["prometheusQuery"]


def test_it_has_money_volumes_chips_and_the_budget() -> None:
    assert list(charts(DEV)) == [
        "Idle, USD a month",
        "Idle, MiB/s that are billed and not read",
        "TPU chips at work in the project",
        "vol-a: MiB/s read, all hosts",
        "vol-b: MiB/s read, all hosts",
        "What the guard found",
    ]
    first = dashboard(DEV)["mosaicLayout"]["tiles"][0]["widget"]
    assert first["title"] == "Budget"
    assert "**4,000 USD** a month is the budget of `dev`" in first["text"]["content"]


def test_what_is_read_stands_against_what_is_provisioned() -> None:
    chart = charts(DEV)["vol-a: MiB/s read, all hosts"]
    assert chart["thresholds"] == [{"label": "provisioned", "value": 1200.0}]
    assert chart["dataSets"][0]["timeSeriesQuery"]["prometheusQuery"] == (
        "sum(rate(compute_googleapis_com:instance_disk_read_bytes_count"
        '{monitored_resource="gce_instance",device_name="vol-a"}[10m])) / 1048576'
    )
    assert charts(DEV)["TPU chips at work in the project"]["thresholds"] == [{"label": "declared", "value": 8.0}]


def test_every_gauge_of_the_guard_that_means_something_to_people_is_drawn() -> None:
    drawn = " ".join(queries(DEV))
    kept = {Gauge.LAST_RUN, Gauge.TOLD}
    assert {gauge for gauge in Gauge if f"spotrail_{gauge.value}{{" not in drawn} == kept
    assert 'stack="dev"' in drawn


def test_without_a_guard_nothing_of_it_is_drawn() -> None:
    assert not [query for query in queries(UNGUARDED) if "spotrail_" in query]
    assert len(charts(UNGUARDED)) == 3


@pytest.mark.parametrize("shown", [DEV, UNGUARDED, replace(DEV, volumes=())])
def test_no_tile_stands_on_another_or_beside_the_mosaic(shown: Shown) -> None:
    taken: set[tuple[int, int]] = set()
    for tile in dashboard(shown)["mosaicLayout"]["tiles"]:
        columns = range(tile["xPos"], tile["xPos"] + tile["width"])
        cells = {(x, y) for x in columns for y in range(tile["yPos"], tile["yPos"] + tile["height"])}
        assert columns.stop <= COLUMNS
        assert not cells & taken
        taken |= cells


def test_the_text_is_the_same_each_time_and_strict_json() -> None:
    text = dashboard_json(DEV)
    assert text == dashboard_json(replace(DEV))
    assert json.loads(text, parse_constant=pytest.fail) == dashboard(DEV)


def test_prometheus_reads_every_query(tmp_path: Path) -> None:
    rules = [{"record": f"line_{index}", "expr": query} for index, query in enumerate(queries(DEV))]
    assert len(rules) == 9
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}), "utf-8")
    line = [ensure_promtool(), "check", "rules", str(file)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_google_takes_the_json() -> None:
    """By the message type of the API, which refuses an unknown field and a wrong type."""
    types = "google.cloud.monitoring_dashboard_v1"
    monitoring_dashboard_v1 = pytest.importorskip(types, reason="google-cloud-monitoring-dashboards is not installed")
    from google.protobuf import json_format

    message = json_format.Parse(dashboard_json(DEV), monitoring_dashboard_v1.Dashboard.pb()())
    assert len(message.mosaic_layout.tiles) == 7
    with pytest.raises(json_format.ParseError, match="xPosition"):
        json_format.Parse(dashboard_json(DEV).replace('"xPos"', '"xPosition"'), message)
