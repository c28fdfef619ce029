"""Prometheus' own rule tester over the queries of the alert policies."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.plan.alerts import Alert

NAME = "Asked"
REASON = "promtool is not installed (Debian: apt-get install --no-install-recommends prometheus)"


def ensure_promtool() -> str:
    """The program; skips the test where there is none, unless this is CI."""
    found = shutil.which("promtool")
    if found is None and not os.environ.get("CI"):
        pytest.skip(REASON)
    assert found, REASON
    return found


def fires(
    folder: Path, alert: Alert, series: Mapping[str, str], minutes: Sequence[int], labels: Sequence[Mapping[str, str]]
) -> None:
    """Assert that at each of `minutes` the alert fires with exactly these label sets; points are a minute apart."""
    told = [{"exp_labels": dict(each)} for each in labels]
    _run(folder, alert, series, [{"eval_time": f"{at}m", "alertname": NAME, "exp_alerts": told} for at in minutes])


def silent(folder: Path, alert: Alert, series: Mapping[str, str], minutes: Sequence[int]) -> None:
    """Assert that at none of `minutes` the alert fires."""
    fires(folder, alert, series, minutes, ())


def _run(folder: Path, alert: Alert, series: Mapping[str, str], asked: list[dict[str, Any]]) -> None:
    rule = {"alert": NAME, "expr": alert.query, "for": f"{alert.hold_minutes}m"}
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": [rule]}]}), "utf-8")
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": asked,
    }
    whole = {"rule_files": ["rules.yaml"], "evaluation_interval": f"{alert.every_minutes}m", "tests": [test]}
    (folder / "tests.yaml").write_text(yaml.safe_dump(whole), "utf-8")
    line = [ensure_promtool(), "test", "rules", "tests.yaml"]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
