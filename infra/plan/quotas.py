"""Which quotas a stack runs into: what it needs of each, beside what a new project has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

from policies.hardware.disks import disk_types
from policies.hardware.errors import HardwareError
from policies.hardware.machines import machine
from policies.hardware.quotas import quota
from policies.hardware.slices import chips_of_machine, shape, shape_of_topology
from policies.hardware.zones import is_zone, region_of
from policies.resources import Opaque, Resource, ResourceSet, Value, dig

INSTANCE: Final = "gcp:compute/instance:Instance"
TEMPLATE: Final = "gcp:compute/instanceTemplate:InstanceTemplate"
GROUP: Final = "gcp:compute/instanceGroupManager:InstanceGroupManager"
DISK: Final = "gcp:compute/disk:Disk"
NODE: Final = "gcp:tpu/v2Vm:V2Vm"
QUEUED: Final = "gcp:tpu/v2QueuedResource:V2QueuedResource"
JOB: Final = "gcp:cloudrunv2/job:Job"
FILLING: Final = "with what filling a model version takes for an hour"
HYPERDISK: Final = ("hyperdisk-ml", "hyperdisk-balanced")
PERSISTENT: Final = {"pd-standard": "pd-standard-gib", "pd-balanced": "pd-ssd-gib", "pd-ssd": "pd-ssd-gib"}


@final
@dataclass(frozen=True, kw_only=True)
class QuotaNeed:
    """What a stack needs of one quota in one place."""

    metric: str
    """The id by which Google knows the quota."""
    location: str
    """Zone or region: a project has one such pool each."""
    needed: int
    """What the whole stack takes of it, at the most."""
    default: int | None
    """What a new project has; None where that is not known."""
    note: str = ""
    """What the reader should know: unit, and what is not counted."""


@final
@dataclass(frozen=True, kw_only=True)
class _Draw:
    resource: str
    zone: str
    amount: int
    backend: str = ""
    capacity: str = ""
    note: str = ""


def quota_needs(resources: ResourceSet) -> tuple[QuotaNeed, ...]:
    """The quotas that `resources` run into, chips first, in the order of the table.

    Values that nobody knows yet are not counted. Chips of a reservation count as on demand.
    """
    sums: dict[tuple[str, str], int] = {}
    notes: dict[tuple[str, str], dict[str, None]] = {}
    found: dict[tuple[str, str], int | None] = {}
    for draw in _draws(resources):
        pool = quota(draw.resource, draw.backend, draw.capacity)
        location = draw.zone if pool.scope == "zone" else region_of(draw.zone)
        key = (pool.name, location)
        sums[key] = sums.get(key, 0) + draw.amount
        found[key] = pool.default
        notes.setdefault(key, {}).update(dict.fromkeys(filter(None, (pool.unit, draw.note))))
    return tuple(
        QuotaNeed(
            metric=name, location=place, needed=total, default=found[name, place], note="; ".join(notes[name, place])
        )
        for (name, place), total in sums.items()
    )


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
    yield from _of_bytes(zone, dig(boot, "type"), dig(boot, "size"), dig(boot, "provisionedThroughput"), 1)


def _of_group(group: Resource, resources: ResourceSet) -> Iterator[_Draw]:
    zone, size = _zone(group.value("zone")), group.integer("targetSize")
    if not zone or not isinstance(size, int):
        return
    for template in resources.references(group, "versions", TEMPLATE):
        yield from _of_host(template, zone, size)
        for disk in _listed(template.value("disks")):
            if dig(disk, "source") is None:
                throughput = dig(disk, "provisionedThroughput")
                yield from _of_bytes(zone, dig(disk, "diskType"), dig(disk, "diskSizeGb"), throughput, size)


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
        yield from _of_bytes(zone, disk.value("type"), disk.value("size"), disk.value("provisionedThroughput"), 1)


def _of_bytes(zone: str, type: Value, gib: Value, throughput: Value, times: int, note: str = "") -> Iterator[_Draw]:
    size = _whole(gib)
    if not isinstance(type, str) or size is None:
        return
    kind = type.rsplit("/", 1)[-1]
    if kind in PERSISTENT:
        yield _Draw(resource=PERSISTENT[kind], zone=zone, amount=size * times, note=note)
    if kind in HYPERDISK:
        yield _Draw(resource=f"{kind}-gib", zone=zone, amount=size * times, note=note)
        limits = disk_types()[kind].throughput
        provisioned = _whole(throughput) or (limits.default_at(size) if limits and throughput is None else None)
        if provisioned is not None:
            yield _Draw(resource=f"{kind}-throughput", zone=zone, amount=provisioned * times, note=note)


def _of_fills(jobs: Iterable[Resource]) -> Iterator[_Draw]:
    """What jobs make while they run, as they say in their environment; both jobs of a volume say the same."""
    said = {tuple(sorted(_environment(job).items())) for job in jobs}
    for pairs in sorted(said):
        made = dict(pairs)
        zone = _zone(made.get("SPOTRAIL_ZONE"))
        if not zone:
            continue
        size, throughput = made.get("SPOTRAIL_STAGING_GIB"), made.get("SPOTRAIL_STAGING_THROUGHPUT")
        yield from _of_bytes(zone, made.get("SPOTRAIL_STAGING_TYPE"), size, throughput, 1, FILLING)
        boot, gib = made.get("SPOTRAIL_HYDRATOR_BOOT_TYPE"), made.get("SPOTRAIL_HYDRATOR_BOOT_GIB")
        yield from _of_bytes(zone, boot, gib, None, 1, FILLING)
        hydrator = machine(made.get("SPOTRAIL_HYDRATOR_MACHINE", ""))
        if hydrator is not None:
            yield _Draw(resource="vcpus", zone=zone, amount=_ceiling(hydrator.vcpus), note=FILLING)


def _environment(job: Resource) -> Mapping[str, str]:
    container = dig(job.value("template", "template", "containers"), 0)
    pairs = ((dig(one, "name"), dig(one, "value")) for one in _listed(dig(container, "envs")))
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}


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
