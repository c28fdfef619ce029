"""Which quotas a stack runs into: what it needs of each, beside what a new project has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

from policies.estimate import fill_environment
from policies.hardware.disks import disk_types
from policies.hardware.errors import HardwareError
from policies.hardware.machines import machine
from policies.hardware.quotas import quota
from policies.hardware.slices import chips_of_machine, shape, shape_of_topology
from policies.hardware.zones import is_zone, region_of
from policies.report.plan import QuotaNeed
from policies.resources import Opaque, Resource, ResourceSet, Value, dig

INSTANCE: Final = "gcp:compute/instance:Instance"
TEMPLATE: Final = "gcp:compute/instanceTemplate:InstanceTemplate"
GROUP: Final = "gcp:compute/instanceGroupManager:InstanceGroupManager"
DISK: Final = "gcp:compute/disk:Disk"
NODE: Final = "gcp:tpu/v2Vm:V2Vm"
QUEUED: Final = "gcp:tpu/v2QueuedResource:V2QueuedResource"
JOB: Final = "gcp:cloudrunv2/job:Job"
FILLING: Final = "with what filling a model version takes for a while"
WORDS: Final[Mapping[tuple[str, str, str], str]] = {
    ("tpu-v6e-chips", "gce", "spot"): "v6e spot chips",
    ("tpu-v6e-chips", "gce", "on-demand"): "v6e on-demand chips",
    ("tpu-v6e-chips", "tpu-vm", "spot"): "v6e spot chips of the Cloud TPU API",
    ("tpu-v6e-chips", "tpu-vm", "on-demand"): "v6e on-demand chips of the Cloud TPU API",
    ("hyperdisk-ml-gib", "", ""): "GiB of hyperdisk-ml",
    ("hyperdisk-ml-throughput", "", ""): "MiB/s of hyperdisk-ml",
    ("hyperdisk-balanced-gib", "", ""): "GiB of hyperdisk-balanced",
    ("hyperdisk-balanced-throughput", "", ""): "MiB/s of hyperdisk-balanced",
    ("hyperdisk-balanced-iops", "", ""): "IOPS of hyperdisk-balanced",
    ("pd-standard-gib", "", ""): "GiB of pd-standard",
    ("pd-ssd-gib", "", ""): "GiB of pd-balanced and pd-ssd",
    ("vcpus", "", ""): "vCPUs",
    ("external-addresses", "", ""): "external addresses",
}
"""What each pool counts, by resource, backend and capacity."""
HYPERDISK: Final = ("hyperdisk-ml", "hyperdisk-balanced")
PERSISTENT: Final = {"pd-standard": "pd-standard-gib", "pd-balanced": "pd-ssd-gib", "pd-ssd": "pd-ssd-gib"}


@final
@dataclass(frozen=True, kw_only=True)
class _Draw:
    resource: str
    zone: str
    amount: int
    backend: str = ""
    capacity: str = ""
    note: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class _Bytes:
    type: Value
    gib: Value
    throughput: Value = None
    iops: Value = None


def quota_needs(resources: ResourceSet) -> tuple[QuotaNeed, ...]:
    """The quotas that `resources` run into, chips first.

    Values that nobody knows yet are not counted. Chips of a reservation count as on demand. Zero external addresses
    are said too, since that is what a stack should need.
    """
    found: dict[tuple[str, str], QuotaNeed] = {}
    for draw in _draws(resources):
        pool = quota(draw.resource, draw.backend, draw.capacity)
        location = draw.zone if pool.scope == "zone" else region_of(draw.zone)
        before = found.get((pool.name, location))
        notes = dict.fromkeys(filter(None, (*(before.note.split("; ") if before else ()), pool.name, draw.note)))
        found[pool.name, location] = QuotaNeed(
            metric=WORDS[draw.resource, draw.backend, draw.capacity],
            location=location,
            needed=(before.needed if before else 0) + draw.amount,
            default=pool.default,
            note="; ".join(notes),
        )
    return tuple(found.values())


def _draws(resources: ResourceSet) -> Iterator[_Draw]:
    drawn = [
        *(draw for node in resources.of_type(NODE) for draw in _of_node(node)),
        *(draw for queued in resources.of_type(QUEUED) for draw in _of_queued(queued)),
        *(draw for one in resources.of_type(INSTANCE) for draw in _of_instance(one)),
        *(draw for group in resources.of_type(GROUP) for draw in _of_group(group, resources)),
        *(draw for disk in resources.of_type(DISK) for draw in _of_disk(disk)),
        *_of_fills(resources.of_type(JOB)),
    ]
    order = ("tpu-v6e-chips", "hyperdisk-ml-gib", "hyperdisk-ml-throughput")
    return iter(sorted(drawn, key=lambda draw: order.index(draw.resource) if draw.resource in order else len(order)))


def _of_node(node: Resource) -> Iterator[_Draw]:
    zone = _zone(node.value("zone"))
    if not zone:
        return
    chips = _chips(node.value("acceleratorType"), node.value("acceleratorConfig", "topology"))
    terms = node.value("schedulingConfig")
    spot = dig(terms, "spot") is True or dig(terms, "preemptible") is True
    capacity = "spot" if spot else "on-demand"
    if chips:
        yield _Draw(resource="tpu-v6e-chips", zone=zone, amount=chips, backend="tpu-vm", capacity=capacity)
    if node.value("networkConfig", "enableExternalIps") is True:
        yield _Draw(resource="external-addresses", zone=zone, amount=1, note="and one for each further host of a node")


def _of_queued(queued: Resource) -> Iterator[_Draw]:
    zone = _zone(queued.value("zone"))
    specs = queued.value("tpu", "nodeSpecs")
    for spec in specs if zone and isinstance(specs, tuple) else ():
        chips = _chips(dig(spec, "node", "acceleratorType"), None)
        if chips:
            yield _Draw(resource="tpu-v6e-chips", zone=zone, amount=chips, backend="tpu-vm", capacity="on-demand")


def _of_instance(one: Resource) -> Iterator[_Draw]:
    zone = _zone(one.value("zone"))
    if not zone:
        return
    yield from _of_host(one, zone, 1)
    boot = one.value("bootDisk", "initializeParams")
    yield from _of_bytes(zone, _bytes(boot, "type", "size"))


def _of_group(group: Resource, resources: ResourceSet) -> Iterator[_Draw]:
    zone, size = _zone(group.value("zone")), group.integer("targetSize")
    if not zone or not isinstance(size, int):
        return
    for template in resources.references(group, "versions", TEMPLATE):
        yield from _of_host(template, zone, size)
        for disk in _listed(template.value("disks")):
            if dig(disk, "source") is None:
                yield from _of_bytes(zone, _bytes(disk, "diskType", "diskSizeGb"), size)


def _of_host(host: Resource, zone: str, times: int) -> Iterator[_Draw]:
    """Chips or vCPUs, and external addresses, of `times` machines like `host`."""
    name = host.value("machineType")
    if isinstance(name, str):
        yield from _of_machine(host, name.rsplit("/", 1)[-1], zone, times)
    addresses = sum(len(_listed(dig(card, "accessConfigs"))) for card in _listed(host.value("networkInterfaces")))
    yield _Draw(resource="external-addresses", zone=zone, amount=addresses * times)


def _of_machine(host: Resource, name: str, zone: str, times: int) -> Iterator[_Draw]:
    chips, known = chips_of_machine(name), machine(name)
    if chips is not None:
        spot = (
            host.value("scheduling", "provisioningModel") == "SPOT" or host.value("scheduling", "preemptible") is True
        )
        capacity = "spot" if spot else "on-demand"
        yield _Draw(resource="tpu-v6e-chips", zone=zone, amount=chips * times, backend="gce", capacity=capacity)
    elif known is not None:
        yield _Draw(resource="vcpus", zone=zone, amount=_ceiling(known.vcpus) * times)


def _of_disk(disk: Resource) -> Iterator[_Draw]:
    zone = _zone(disk.value("zone"))
    if zone:
        yield from _of_bytes(zone, _bytes(disk.inputs, "type", "size"))


def _of_bytes(zone: str, disk: _Bytes, times: int = 1, note: str = "") -> Iterator[_Draw]:
    """GiB, MiB/s and IOPS of `times` disks; where a figure is left to Google, its default."""
    size = _whole(disk.gib)
    if not isinstance(disk.type, str) or size is None:
        return
    kind = disk.type.rsplit("/", 1)[-1]
    if kind in PERSISTENT:
        yield _Draw(resource=PERSISTENT[kind], zone=zone, amount=size * times, note=note)
    if kind not in HYPERDISK:
        return
    yield _Draw(resource=f"{kind}-gib", zone=zone, amount=size * times, note=note)
    known = disk_types()[kind]
    for name, limits, value in (("throughput", known.throughput, disk.throughput), ("iops", known.iops, disk.iops)):
        if limits is None:
            continue
        amount = limits.default_at(size) if value is None else _whole(value)
        if amount is not None:
            yield _Draw(resource=f"{kind}-{name}", zone=zone, amount=amount * times, note=note)


def _of_fills(jobs: Iterable[Resource]) -> Iterator[_Draw]:
    """What jobs make while they run, as they say in their environment; both jobs of a volume say the same."""
    said = {tuple(sorted(_environment(job).items())) for job in jobs}
    for pairs in sorted(said):
        made = dict(pairs)
        zone = _zone(made.get(fill_environment.ZONE))
        if not zone:
            continue
        yield from _of_bytes(zone, _said(made, fill_environment.STAGING_TYPE), note=FILLING)
        yield from _of_bytes(zone, _said(made, fill_environment.BOOT_TYPE), note=FILLING)
        hydrator = machine(made.get(fill_environment.MACHINE, ""))
        if hydrator is not None:
            yield _Draw(resource="vcpus", zone=zone, amount=_ceiling(hydrator.vcpus), note=FILLING)


def _environment(job: Resource) -> Mapping[str, str]:
    container = dig(job.value("template", "template", "containers"), 0)
    pairs = ((dig(one, "name"), dig(one, "value")) for one in _listed(dig(container, "envs")))
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}


def _bytes(disk: Value, type_key: str, size_key: str) -> _Bytes:
    return _Bytes(
        type=dig(disk, type_key),
        gib=dig(disk, size_key),
        throughput=dig(disk, "provisionedThroughput"),
        iops=dig(disk, "provisionedIops"),
    )


def _said(made: Mapping[str, str], type_name: str) -> _Bytes:
    prefix = type_name.removesuffix("_TYPE")
    return _Bytes(
        type=made.get(type_name),
        gib=made.get(f"{prefix}_GIB"),
        throughput=made.get(f"{prefix}_THROUGHPUT"),
        iops=made.get(f"{prefix}_IOPS"),
    )


def _chips(accelerator_type: Value, topology: Value) -> int:
    try:
        if isinstance(accelerator_type, str):
            return shape(accelerator_type).chips
        return shape_of_topology(topology).chips if isinstance(topology, str) else 0
    except HardwareError:
        return 0


def _zone(value: Value) -> str:
    return value if isinstance(value, str) and is_zone(value) else ""


def _listed(value: Value) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else ()


def _whole(value: Value) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool | Opaque) else None


def _ceiling(value: Decimal) -> int:
    return int(value.to_integral_value(rounding="ROUND_CEILING"))
