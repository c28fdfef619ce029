"""docs/guard.md, held against what it is about."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from infra.components.guard_job import APPLY_PERMISSIONS
from policies.audit.remedies.planning import ENDINGS, PROTECT
from policies.guard import gauges
from policies.guard.gauges import Gauge
from policies.guard.labels import SCHEDULE_LABEL
from policies.guard.telling import SCHEMA
from policies.guard.webhook import TRIES

TEXT = (Path(__file__).parents[3] / "docs" / "guard.md").read_text("utf-8")


def test_the_permissions_are_those_of_the_role() -> None:
    assert set(re.findall(r"\| `([a-z]+\.[A-Za-z]+\.[a-z]+)` \|$", TEXT, re.MULTILINE)) == set(APPLY_PERMISSIONS)
    assert len(ENDINGS) == len([line for line in TEXT.splitlines() if "past its `ttl`" in line])


def test_the_metrics_are_those_that_it_writes() -> None:
    said = dict(re.findall(r"^\| `([a-z_]+)` \| (.*) \|$", TEXT, re.MULTILINE))
    source = inspect.getsource(gauges)
    real = dict(re.findall(r'^    [A-Z_]+ = "([a-z_]+)"\n    """(.*)"""$', source, re.MULTILINE))
    assert set(real) == {gauge.value for gauge in Gauge}
    assert said == real


def test_labels_schema_and_tries_are_right() -> None:
    assert f"`{'='.join(PROTECT)}`" in TEXT
    assert f"`{SCHEDULE_LABEL}`" in TEXT
    assert f"`{SCHEMA}`" in TEXT
    assert TRIES == 3
