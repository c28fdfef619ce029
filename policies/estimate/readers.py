"""From where a stack reads its data: the places of its TPU hosts."""

from __future__ import annotations

from typing import Final

from policies.estimate.hosts import machine_type_of
from policies.estimate.location import locate
from policies.hardware.slices import chips_of_machine
from policies.resources import Resource, ResourceSet

TPUS: Final = ("gcp:tpu/v2Vm:V2Vm", "gcp:tpu/v2QueuedResource:V2QueuedResource")
INSTANCE: Final = "gcp:compute/instance:Instance"
GROUPS: Final = (
    "gcp:compute/instanceGroupManager:InstanceGroupManager",
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
)
TEMPLATES: Final = (
    "gcp:compute/instanceTemplate:InstanceTemplate",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
)


def tpu_places(resources: ResourceSet) -> tuple[str, ...]:
    """The zones and regions of the TPU hosts of a stack, each once, in order; those that nobody can see left out."""
    hosts = (
        *resources.of_type(*TPUS),
        *(vm for vm in resources.of_type(INSTANCE) if _is_tpu_host(vm)),
        *(group for group in resources.of_type(*GROUPS) if _has_tpu_template(group, resources)),
    )
    places = (locate(host, resources) for host in hosts)
    return tuple(dict.fromkeys(place for place in places if isinstance(place, str)))


def _is_tpu_host(machine: Resource) -> bool:
    found = machine_type_of(machine)
    return isinstance(found, str) and chips_of_machine(found) is not None


def _has_tpu_template(group: Resource, resources: ResourceSet) -> bool:
    return any(_is_tpu_host(template) for template in resources.references(group, "versions", *TEMPLATES))
