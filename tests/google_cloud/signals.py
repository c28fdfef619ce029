"""What the metrics of a world show: one signal a time series, and the sections of a world file that describe them.

`world.observe("traffic", instance="trainer-0", device="llama", read=300, write=0)`: MiB/s, each a flow (see `flows`);
`cpu` instance, utilization (0..1) · `uptime` instance, running (1 = all the time), in place of what its times say ·
`duty` zone, worker, chips, percent · `bytes` bucket, storage_class, kinds {"live-object": ..., "soft-deleted-object":
...}; without kinds what is in it now ·
`requests` bucket, zone, a flow a second per label set · `nat` region, router, gateway, mibps ·
`signals` anything else: metric, metric_labels, resource_labels, flow.
Every instance reports its uptime while it runs, as on Google Cloud; one with `silent` does not.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

from policies.audit.record import Metric, Part
from tests.google_cloud.descriptors import DESCRIPTORS
from tests.google_cloud.flows import Flow, flow
from tests.google_cloud.shapes import Item, last

if TYPE_CHECKING:
    from tests.google_cloud.world import World

MIB: Final = 2**20


@final
@dataclass(frozen=True, kw_only=True)
class Signal:
    """One time series: what it is called, and how it moves."""

    metric: str
    metric_labels: Mapping[str, str]
    resource_labels: Mapping[str, str]
    flow: Flow

    def facts(self) -> dict[str, str]:
        """For filters."""
        return {
            "metric.type": self.metric,
            "resource.type": DESCRIPTORS[self.metric].resource,
            **{f"metric.labels.{name}": value for name, value in self.metric_labels.items()},
            **{f"resource.labels.{name}": value for name, value in self.resource_labels.items()},
        }


@final
class Signals:
    """The signals of a world by metric. `version` changes whenever one is added."""

    def __init__(self) -> None:
        self._by_metric: dict[str, list[Signal]] = {}
        self._uptime: dict[str, Signal | None] = {}
        self.version = 0

    def add(self, *signals: Signal) -> None:
        self.version += 1
        for signal in signals:
            self._by_metric.setdefault(signal.metric, []).append(signal)

    def override_uptime(self, instance_id: str, signal: Signal | None) -> None:
        """What an instance reports of its uptime, in place of what its times say; None for nothing."""
        self.version += 1
        self._uptime[instance_id] = signal

    def of(self, metric: str, world: World) -> Iterator[Signal]:
        """All of a metric."""
        yield from self._by_metric.get(metric, ())
        if metric == Metric.UPTIME.value:
            yield from filter(None, self._uptime.values())
            own = (item for item in world.items(Part.INSTANCES) if item["id"] not in self._uptime)
            yield from (_uptime(world, item, Flow(level=1.0)) for item in own)


def _traffic(world: World, spec: Mapping[str, Any]) -> None:
    for metric, direction in (
        (Metric.READ_BYTES.value, "read"),
        (Metric.WRITE_BYTES.value, "write"),
        (Metric.MAX_READ_BYTES.value, "read"),
    ):
        labels = {
            "device_name": spec["device"],
            "device_type": "permanent",
            "storage_type": spec.get("type", "hyperdisk-ml"),
        }
        world.signals.add(_of_instance(world, spec, metric, labels, flow(spec.get(direction, 0), world.now, scale=MIB)))


def _cpu(world: World, spec: Mapping[str, Any]) -> None:
    world.signals.add(_of_instance(world, spec, Metric.CPU.value, {}, flow(spec["utilization"], world.now)))


def _uptime_given(world: World, spec: Mapping[str, Any]) -> None:
    item = world.named(Part.INSTANCES, spec["instance"])
    running = flow(spec.get("running", 1.0), world.now)
    world.signals.override_uptime(item["id"], None if spec.get("silent") else _uptime(world, item, running))


def _of_instance(world: World, spec: Mapping[str, Any], metric: str, labels: Mapping[str, str], moves: Flow) -> Signal:
    """A series of an instance of the inventory by name, or of one that is gone, by `instance_id` and `zone`."""
    if "instance" in spec:
        return _series(world, world.named(Part.INSTANCES, spec["instance"]), metric, labels, moves)
    name = spec.get("instance_name", "gone")
    return Signal(
        metric=metric,
        metric_labels={"instance_name": name, **labels},
        resource_labels={"project_id": world.project, "instance_id": spec["instance_id"], "zone": spec["zone"]},
        flow=moves,
    )


def _uptime(world: World, item: Item, moves: Flow) -> Signal:
    return _series(world, item, Metric.UPTIME.value, {}, moves)


def _series(world: World, item: Item, metric: str, labels: Mapping[str, str], moves: Flow) -> Signal:
    """Within the time in which the instance ran: nothing is reported by a machine that is off."""
    started = _seconds(item.get("lastStartTimestamp", item["creationTimestamp"]))
    off = item["status"] not in ("RUNNING", "STOPPING", "SUSPENDING", "REPAIRING")
    stopped = item.get("lastStopTimestamp", item.get("lastSuspendedTimestamp", item["creationTimestamp"]))
    if off:
        started = _seconds(item["creationTimestamp"])
    return Signal(
        metric=metric,
        metric_labels={"instance_name": item["name"], **labels},
        resource_labels={"project_id": world.project, "instance_id": item["id"], "zone": last(item["zone"])},
        flow=replace(
            moves,
            begin=max(moves.begin, started),
            end=min(moves.end, _seconds(stopped) if off else math.inf),
        ),
    )


def _seconds(text: Any) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


def _duty(world: World, spec: Mapping[str, Any]) -> None:
    moves = flow(spec["percent"], world.now)
    for chip in range(spec.get("chips", 1)):
        world.signals.add(
            Signal(
                metric=Metric.DUTY_CYCLE.value,
                metric_labels={"accelerator_id": str(chip)},
                resource_labels={
                    "resource_container": world.project,
                    "location": spec["zone"],
                    "worker_id": str(spec["worker"]),
                },
                flow=moves,
            )
        )


def _bytes(world: World, spec: Mapping[str, Any]) -> None:
    bucket = world.get(Part.BUCKETS, spec["bucket"])
    kinds = spec["kinds"] if "kinds" in spec else world.objects.bytes_of(bucket["name"], world.now)
    for kind, amount in kinds.items():
        world.signals.add(
            Signal(
                metric=Metric.BUCKET_BYTES.value,
                metric_labels={"storage_class": spec.get("storage_class", bucket["storageClass"]), "type": kind},
                resource_labels=_bucket_labels(world, bucket),
                flow=flow(amount, world.now),
            )
        )


def _requests(world: World, spec: Mapping[str, Any]) -> None:
    bucket = world.get(Part.BUCKETS, spec["bucket"])
    for labels, amount in spec["per_second"].items():
        pairs = dict(pair.split("=") for pair in labels.split(","))
        world.signals.add(
            Signal(
                metric=Metric.CACHE_HITS.value,
                metric_labels={"cache_zone": spec["zone"], **pairs},
                resource_labels=_bucket_labels(world, bucket),
                flow=flow(amount, world.now),
            )
        )


def _bucket_labels(world: World, bucket: Item) -> dict[str, str]:
    return {"project_id": world.project, "bucket_name": bucket["name"], "location": bucket["location"].lower()}


def _nat(world: World, spec: Mapping[str, Any]) -> None:
    router = world.named(Part.ROUTERS, spec["router"])
    world.signals.add(
        Signal(
            metric=Metric.NAT_RECEIVED.value,
            metric_labels={"ip_protocol": "6", "nat_project_number": world.number},
            resource_labels={
                "project_id": world.project,
                "region": last(router["region"]),
                "router_id": router["id"],
                "gateway_name": spec["gateway"],
            },
            flow=flow(spec["mibps"], world.now, scale=MIB),
        )
    )


def _signal(world: World, spec: Mapping[str, Any]) -> None:
    world.signals.add(
        Signal(
            metric=spec["metric"],
            metric_labels=spec.get("metric_labels", {}),
            resource_labels=spec.get("resource_labels", {}),
            flow=flow(spec["flow"], world.now),
        )
    )


SECTIONS: Final[Mapping[str, Callable[[World, Mapping[str, Any]], None]]] = {
    "traffic": _traffic,
    "cpu": _cpu,
    "uptime": _uptime_given,
    "duty": _duty,
    "bytes": _bytes,
    "requests": _requests,
    "nat": _nat,
    "signals": _signal,
}
