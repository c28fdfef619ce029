"""The metrics that the loopback Google Cloud has, as Cloud Monitoring describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from google.api import metric_pb2  # type: ignore[import-untyped]

GAUGE: Final = metric_pb2.MetricDescriptor.GAUGE
DELTA: Final = metric_pb2.MetricDescriptor.DELTA
INT64: Final = metric_pb2.MetricDescriptor.INT64
DOUBLE: Final = metric_pb2.MetricDescriptor.DOUBLE
DAY: Final = 86400


@final
@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """What a metric is."""

    type: str
    kind: Any
    """GAUGE or DELTA."""
    values: Any
    """INT64 or DOUBLE."""
    unit: str
    resource: str
    """Type of the monitored resource."""
    sample_s: int = 60
    """Seconds from one point to the next."""


def _disk(name: str, kind: Any) -> Descriptor:
    kind_type = f"compute.googleapis.com/instance/disk/{name}"
    return Descriptor(type=kind_type, kind=kind, values=INT64, unit="By", resource="gce_instance")


DESCRIPTORS: Final[Mapping[str, Descriptor]] = {
    descriptor.type: descriptor
    for descriptor in (
        _disk("read_bytes_count", DELTA),
        _disk("write_bytes_count", DELTA),
        _disk("max_read_bytes_count", GAUGE),
        _disk("max_write_bytes_count", GAUGE),
        Descriptor(
            type="compute.googleapis.com/instance/uptime",
            kind=DELTA,
            values=DOUBLE,
            unit="s{uptime}",
            resource="gce_instance",
        ),
        Descriptor(
            type="compute.googleapis.com/instance/cpu/utilization",
            kind=GAUGE,
            values=DOUBLE,
            unit="10^2.%",
            resource="gce_instance",
        ),
        Descriptor(
            type="tpu.googleapis.com/accelerator/duty_cycle",
            kind=GAUGE,
            values=DOUBLE,
            unit="%",
            resource="tpu.googleapis.com/GceTpuWorker",
        ),
        Descriptor(
            type="storage.googleapis.com/storage/v2/total_bytes",
            kind=GAUGE,
            values=DOUBLE,
            unit="By",
            resource="gcs_bucket",
            sample_s=DAY,
        ),
        Descriptor(
            type="storage.googleapis.com/anywhere_cache/request_count",
            kind=DELTA,
            values=INT64,
            unit="1",
            resource="gcs_bucket",
        ),
        Descriptor(
            type="router.googleapis.com/nat/received_bytes_count",
            kind=DELTA,
            values=INT64,
            unit="By",
            resource="nat_gateway",
        ),
    )
}
