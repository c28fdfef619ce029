"""From where a stack reads its data: the places of its TPU hosts."""

from __future__ import annotations

from typing import Final

from policies.estimate.groups import GROUP, REGION_GROUP, TEMPLATES, group_location
from policies.estimate.hosts import machine_type_of
from policies.estimate.inner_pools import pools_inside
from policies.estimate.location import locate
from policies.estimate.model import UnknownInput
from policies.estimate.node_counts import NODE_POOL, pool_location
from policies.hardware.slices import chips_of_machine
from policies.resources import Resource, ResourceError, ResourceSet

TPUS: Final = ("gcp:tpu/v2Vm:V2Vm", "gcp:tpu/v2QueuedResource:V2QueuedResource")
INSTANCE: Final = "gcp:compute/instance:Instance"
GROUPS: Final = (GROUP, REGION_GROUP)


def tpu_places(resources: ResourceSet) -> tuple[str, ...]:
    """The zones and regions of the TPU hosts of a stack, each once, in order; those that nobody can see left out."""
    hosts = (*resources.of_type(*TPUS, INSTANCE, *GROUPS, NODE_POOL), *pools_inside(resources))
    places = (_place(host, resources) for host in hosts)
    return tuple(dict.fromkeys(place for place in places if place is not None))


def _place(host: Resource, resources: ResourceSet) -> str | None:
    """Where a TPU host is; None for any other machine, and where an input is refused: its own price says that."""
    try:
        found = _location(host, resources) if _has_tpus(host, resources) else None
    except ResourceError:
        return None
    return found if isinstance(found, str) else None


def _location(host: Resource, resources: ResourceSet) -> str | UnknownInput:
    if host.type in GROUPS:
        return group_location(host, resources)
    if host.type != NODE_POOL:
        return locate(host, resources)
    zone = host.text("nodeLocations", 0)
    return zone if isinstance(zone, str) else pool_location(host, resources)


def _has_tpus(host: Resource, resources: ResourceSet) -> bool:
    if host.type in TPUS:
        return True
    if host.type == NODE_POOL:
        named = host.text("nodeConfig", "machineType")
        return isinstance(named, str) and chips_of_machine(named) is not None
    described = resources.references(host, "versions", *TEMPLATES) if host.type in GROUPS else (host,)
    types = (machine_type_of(machine) for machine in described)
    return any(isinstance(found, str) and chips_of_machine(found) is not None for found in types)
