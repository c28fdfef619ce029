"""Instances of Compute Engine, TPU hosts (`ct6e-*`) among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.capacity import Capacity, vm_capacity
from policies.estimate.hosts import Fleet, Terms, fleet_parts, machine_type_of
from policies.estimate.location import locate
from policies.estimate.market import Market, Part, bill, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput, Unpriced
from policies.estimate.registry import Priced
from policies.estimate.shape_titles import shape_title
from policies.estimate.surcharges import surcharge_parts
from policies.estimate.traffic import traffic_parts
from policies.estimate.volume import IN_POOL, Inputs, read_volume, volume_parts
from policies.hardware.machines import machine
from policies.hardware.slices import shapes
from policies.resources import Opaque, Resource, dig

INSTANCE: Final = "gcp:compute/instance:Instance"
BOOT: Final = ("bootDisk", "initializeParams")
STOPPED: Final = "TERMINATED"
SUSPENDED: Final = "SUSPENDED"
KEEPS_MEMORY: Final = "a suspended machine bills the memory that it keeps"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """Machine, boot disk, local SSDs, external addresses. Attached disks are resources of their own."""
    location = locate(resource, market.resources, "zone")
    if isinstance(location, UnknownInput):
        return bill(resource, "", "instance", (location,))
    machine_type = machine_type_of(resource)
    capacity = vm_capacity(resource, market)
    disks = (*boot_disk_parts(resource, market, location), *traffic_parts(market, resource, location))
    if isinstance(machine_type, UnknownInput) or isinstance(capacity, UnknownInput):
        unseen = [part for part in (machine_type, capacity) if isinstance(part, UnknownInput)]
        return bill(resource, location, "instance", (*unseen, *disks))
    fleet = Fleet(machine_type=machine_type, terms=Terms.of(location, capacity, market.usage_of(resource)))
    status = resource.value("desiredStatus")
    if status == STOPPED:
        return bill(resource, location, f"{machine_type} · stopped", disks)
    if status == SUSPENDED:
        return bill(resource, location, f"{machine_type} · suspended", (_kept_memory(market, fleet), *disks))
    parts = (
        *fleet_parts(market, resource, fleet),
        *surcharge_parts(market, resource, fleet, resource.value(*BOOT, "image")),
        *disks,
    )
    return bill(resource, location, _title(fleet, capacity), parts)


def boot_disk_parts(resource: Resource, market: Market, location: str) -> Iterator[Part]:
    """The boot disk that comes with an instance; one that is attached from elsewhere bills for itself."""
    boot = resource.value("bootDisk")
    if isinstance(boot, Opaque):
        yield unknown(boot, "bootDisk", decides="what the boot disk costs")
        return
    if dig(resource.inputs, "bootDisk", "source"):
        return
    if resource.value(*BOOT, "storagePool"):
        yield IN_POOL
        return
    image = UnknownInput(path=".".join((*BOOT, "size")), reason="not set: the size of the image decides")
    replicas = resource.value(*BOOT, "replicaZones")
    volume = read_volume(resource, Inputs(at=BOOT), (image, ""), regional=bool(replicas))
    if isinstance(volume, UnknownInput):
        yield volume
        return
    yield from volume_parts(market, volume, location, name="boot disk")


def _kept_memory(market: Market, fleet: Fleet) -> Part:
    known = machine(fleet.machine_type)
    if known is None:
        return Unpriced(item="instance.suspended.memory", reason=f"{KEEPS_MEMORY}; that of its type is not known")
    memory, place = known.memory_gib, fleet.terms.location
    return market.line("memory kept", "instance.suspended.memory", memory, "GiB-hour", place, note=KEEPS_MEMORY)


def _title(fleet: Fleet, capacity: Capacity) -> str:
    """A single TPU host is a slice of its own."""
    slice = shapes().get(f"v6e-{fleet.chips}")
    return shape_title(slice, capacity) if slice and slice.hosts == 1 else fleet.title


PRICED: Final = Priced(types=(INSTANCE,), price=price)
