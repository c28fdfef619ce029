"""Cloud Monitoring's metrics by the names that they have in its PromQL.

A metric type becomes a name by rule: the first `/` turns into `:`, every other character that PromQL does not know in
a name into `_`. So `compute.googleapis.com/instance/disk/read_bytes_count` is
`compute_googleapis_com:instance_disk_read_bytes_count`. Labels of the metric and of the monitored resource are labels;
`monitored_resource` tells resources apart where a metric is written on several.
Source: https://cloud.google.com/monitoring/promql/promql-mapping
"""

from __future__ import annotations

import json
import re
from typing import Final

_STRANGE: Final = re.compile(r"[^a-zA-Z0-9_:]")


def metric_name(metric_type: str) -> str:
    """The name in PromQL of a metric type."""
    host, _, path = metric_type.partition("/")
    return ":".join(_STRANGE.sub("_", part) for part in (host, path))


def selector(metric_type: str, **labels: str) -> str:
    """A vector selector: `name{label="value"}`, the labels in the order in which they are given."""
    matchers = ",".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in labels.items())
    return f"{metric_name(metric_type)}{{{matchers}}}" if matchers else metric_name(metric_type)


def window(minutes: int) -> str:
    """A duration: hours where it is a whole number of them, else minutes."""
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"
