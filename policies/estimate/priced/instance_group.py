"""Managed instance groups: the money of an instance template stands here, times the size of the group."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

from policies.estimate.capacity import vm_capacity
from policies.estimate.groups import GROUP, REGION_GROUP, group_location, group_size, group_template
from policies.estimate.hosts import Fleet, Terms, fleet_parts, local_ssd_line, machine_type_of
from policies.estimate.market import Market, Part, bill, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.estimate.shape_titles import shape_title
from policies.estimate.surcharges import surcharge_parts
from policies.estimate.traffic import traffic_parts
from policies.estimate.volume import Inputs, read_volume, volume_parts
from policies.hardware.slices import Shape, shapes
from policies.resources import Opaque, Resource, ResourceSet, Value

POLICY: Final = "gcp:compute/resourcePolicy:ResourcePolicy"


class _Entry(enum.Enum):
    """What an entry of a template's disks makes of each host."""

    NEW = "a disk of its own"
    SCRATCH = "a local SSD"
    ATTACHED = "a disk that exists already and bills for itself"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """Every host of the group, as its template describes it."""
    location = group_location(resource, market.resources)
    size = group_size(resource, market.resources)
    if size == 0:
        place = location if isinstance(location, str) else ""
        return bill(resource, place, "instance group · no hosts", (), free="its target size is 0")
    template = group_template(resource, market.resources)
    unseen = [part for part in (location, size, template) if isinstance(part, UnknownInput)]
    if isinstance(location, UnknownInput) or isinstance(size, UnknownInput) or isinstance(template, UnknownInput):
        return bill(resource, location if isinstance(location, str) else "", "instance group", unseen)
    machine_type = machine_type_of(template)
    capacity = vm_capacity(template, market)
    disks = tuple(_disk_parts(template, market, location, size))
    if isinstance(machine_type, UnknownInput) or isinstance(capacity, UnknownInput):
        unseen = [part for part in (machine_type, capacity) if isinstance(part, UnknownInput)]
        return bill(resource, location, "instance group", (*unseen, *disks))
    terms = Terms.of(location, capacity, market.usage_of(resource))
    fleet = Fleet(machine_type=machine_type, terms=terms, count=size)
    slice = _slice(resource, market.resources, fleet)
    parts = (
        *fleet_parts(market, template, fleet),
        *_scratch_parts(template, market, fleet),
        *surcharge_parts(market, template, fleet, _boot_image(template)),
        *disks,
        *traffic_parts(market, resource, location),
    )
    return bill(resource, location, shape_title(slice, capacity) if slice else fleet.title, parts)


def _slice(group: Resource, resources: ResourceSet, fleet: Fleet) -> Shape | None:
    """The slice that the hosts form, where a workload policy makes one slice of them."""
    for policy in resources.references(group, "resourcePolicies", POLICY):
        topology = policy.value("workloadPolicy", "acceleratorTopology")
        for shape in shapes().values():
            if shape.topology == topology and (shape.hosts, shape.chips) == (fleet.count, fleet.chips):
                return shape
    return None


def _disk_parts(template: Resource, market: Market, location: str, count: int) -> Iterator[Part]:
    """The disks that every host gets of its own. A disk that exists already bills for itself."""
    disks = template.items("disks")
    if isinstance(disks, Opaque):
        yield unknown(disks, "disks", decides="what the disks of a host cost")
        return
    for index in range(len(disks)):
        at = ("disks", index)
        entry = _entry(template, index)
        if isinstance(entry, UnknownInput):
            yield entry
        if entry is not _Entry.NEW:
            continue
        if template.value(*at, "storagePool"):
            yield f"disk {index} of each host stands in a storage pool, which bills for it"
            continue
        image = UnknownInput(path=f"disks[{index}].diskSizeGb", reason="not set: the size of its source decides")
        volume = read_volume(template, Inputs(at=at, type="diskType", size="diskSizeGb"), (image, ""))
        if isinstance(volume, UnknownInput):
            yield volume
            continue
        name = "boot disk" if template.value(*at, "boot") is True else f"disk {index}"
        yield from volume_parts(market, volume, location, count=count, name=name)


def _boot_image(template: Resource) -> Value:
    """What the hosts boot from: the image of the disk that is marked, else of the first."""
    disks = template.items("disks")
    places = range(0 if isinstance(disks, Opaque) else len(disks))
    boot = next((place for place in places if template.value("disks", place, "boot") is True), 0)
    return template.value("disks", boot, "sourceImage")


def _scratch_parts(template: Resource, market: Market, fleet: Fleet) -> Iterator[Part]:
    disks = template.items("disks")
    for index in range(0 if isinstance(disks, Opaque) else len(disks)):
        if _entry(template, index) is not _Entry.SCRATCH:
            continue
        gib = template.integer("disks", index, "diskSizeGb")
        if isinstance(gib, Opaque):
            yield unknown(gib, "disks", index, "diskSizeGb", decides="how much local SSD bills")
        elif gib:
            yield local_ssd_line(market, gib, fleet)
        else:
            yield UnknownInput(path=f"disks[{index}].diskSizeGb", reason="not set; it decides how much local SSD bills")


def _entry(template: Resource, index: int) -> _Entry | UnknownInput:
    """What one entry of a template's disks is."""
    at = ("disks", index)
    entry, kind = template.value(*at), template.value(*at, "type")
    if isinstance(entry, Opaque):
        return unknown(entry, *at, decides="what the disks of a host cost")
    if isinstance(kind, Opaque):
        return unknown(kind, *at, "type", decides="whether it is a local SSD")
    if kind == "SCRATCH":
        return _Entry.SCRATCH
    return _Entry.NEW if template.value(*at, "source") in (None, "") else _Entry.ATTACHED


PRICED: Final = Priced(types=(GROUP, REGION_GROUP), price=price)
