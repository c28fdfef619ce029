"""What a resource is as machines: whether they are TPU hosts, how many, on which terms, described by what."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from policies.estimate.capacity import Capacity, node_capacity, tpu_capacity, vm_capacity
from policies.estimate.groups import group_location
from policies.estimate.inner_pools import pools_inside
from policies.estimate.location import last_segment, locate
from policies.estimate.market import Market
from policies.estimate.model import UnknownInput
from policies.estimate.node_counts import NODE_POOL, as_asked, cluster_of, nodes, places, pool_location, shown_place
from policies.hardware.errors import HardwareError
from policies.hardware.slices import Shape, shape, shape_of_topology
from policies.resources import UNKNOWN, Opaque, Resource, ResourceError, ResourceSet, Value, dig
from policies.rules.model import Context
from policies.usage import Usage

NODE: Final = "gcp:tpu/v2Vm:V2Vm"
QUEUED: Final = "gcp:tpu/v2QueuedResource:V2QueuedResource"
INSTANCE: Final = "gcp:compute/instance:Instance"
TEMPLATES: Final = (
    "gcp:compute/instanceTemplate:InstanceTemplate",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
)
GROUPS: Final = (
    "gcp:compute/instanceGroupManager:InstanceGroupManager",
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
)
SLICES: Final = (NODE, QUEUED, INSTANCE, *GROUPS, NODE_POOL)
"""Types that bill TPU chips. A group bills for what its template describes."""
DESCRIBED: Final = (INSTANCE, *TEMPLATES)
"""Types that describe machines of Compute Engine."""
_TPU_SERIES: Final = re.compile(r"ct[0-9]")


def description_of(resource: Resource, resources: ResourceSet) -> Resource | None:
    """What describes its machines: the template of a group, else itself. None for a group whose template is no part
    of the stack."""
    if resource.type not in GROUPS:
        return resource
    return next(iter(resources.references(resource, "versions", *TEMPLATES)), None)


def groups_of(template: Resource, resources: ResourceSet) -> tuple[Resource, ...]:
    """The groups that make machines of a template: by what Pulumi recorded, else by the name that they give."""
    if template.type not in TEMPLATES:
        return ()
    candidates = resources.referrers(template, "versions", *GROUPS)
    return tuple(group for group in candidates if description_of(group, resources) is template)


def machine_type(resource: Resource) -> str | Opaque | None:
    """The machine type of an instance, template or node pool, without the link around it."""
    found = resource.text(*(("nodeConfig",) if resource.type == NODE_POOL else ()), "machineType")
    return last_segment(found) if isinstance(found, str) else found


def boot_source(instance: Resource) -> Value:
    """The disk of its own that an instance was told to boot from.

    Not what the provider answers: that names the disk that came with the instance.
    """
    return dig(instance.inputs, "bootDisk", "source")


def is_tpu(resource: Resource, resources: ResourceSet) -> bool | Opaque:
    """Whether its machines are TPU hosts; Opaque where the machine type is not known."""
    if resource.type in (NODE, QUEUED):
        return True
    described = description_of(resource, resources)
    found = machine_type(described) if described else None
    return found if isinstance(found, Opaque) else bool(found and _TPU_SERIES.match(found))


def slices_of(resources: ResourceSet) -> tuple[Resource, ...]:
    """Whatever may bill TPU chips in a stack, the pools inside clusters among it."""
    return (*resources.of_type(*SLICES), *pools_inside(resources))


@lru_cache(maxsize=1)
def may_have_tpus(context: Context) -> bool:
    """Whether anything in the stack is, or may turn out to be, a TPU host. Read once a judgement."""
    return any(is_tpu(each, context.resources) is not False for each in slices_of(context.resources))


def machines_of(resource: Resource, resources: ResourceSet) -> int | Opaque:
    """How many machines it makes: the hosts of a slice (all slices of a queued resource), the size of a group (of all
    groups of a template), the nodes of a pool in all its zones, else 1."""
    if resource.type == NODE:
        return _hosts(shape_of(resource))
    if resource.type == QUEUED:
        specs = resource.items("tpu", "nodeSpecs")
        if isinstance(specs, Opaque):
            return specs
        return _added(_hosts(shape_of(resource, "tpu", "nodeSpecs", place, "node")) for place in range(len(specs)))
    if resource.type in GROUPS:
        size = resource.integer("targetSize")
        return 0 if size is None else size
    if resource.type in TEMPLATES:
        return _added(machines_of(group, resources) for group in groups_of(resource, resources))
    return _pool_nodes(resource, resources) if resource.type == NODE_POOL else 1


def place_of(resource: Resource, resources: ResourceSet) -> str | UnknownInput:
    """The zone or region of whatever bills chips; a node pool may have that of its cluster, or a zone in its region."""
    if resource.type in GROUPS:
        return group_location(resource, resources)
    if resource.type != NODE_POOL:
        return locate(resource, resources)
    found = pool_location(resource, resources)
    pool, cluster = as_asked(resource), cluster_of(resource, resources)
    return found if isinstance(found, UnknownInput) else shown_place(pool, cluster, found)


def shape_of(node: Resource, *at: str | int) -> Shape | Opaque | None:
    """The shape of a TPU of the TPU API, which the block `at` describes; None where what it says is no v6e shape, or
    nothing is said."""
    name = node.text(*at, "acceleratorType")
    grid = node.text(*at, "acceleratorConfig", "topology")
    for found in (name, grid):
        if isinstance(found, Opaque):
            return found
    try:
        if isinstance(name, str):
            return shape(name)
        return shape_of_topology(grid) if isinstance(grid, str) else None
    except HardwareError:
        return None


def _pool_nodes(pool: Resource, resources: ResourceSet) -> int | Opaque:
    location, found = pool_location(pool, resources), nodes(as_asked(pool), ())
    if isinstance(location, UnknownInput) or isinstance(found, UnknownInput):
        return UNKNOWN
    where = places(as_asked(pool), (), cluster_of(pool, resources), location)
    if isinstance(where, UnknownInput) or where.unseen or found.unseen:
        return UNKNOWN
    return found.count if found.total else found.count * sum(where.zones.values())


def _hosts(found: Shape | Opaque | None) -> int | Opaque:
    return found if isinstance(found, Opaque) else found.hosts if found else 1


def _added(counts: Iterable[int | Opaque]) -> int | Opaque:
    total = 0
    for count in counts:
        if isinstance(count, Opaque):
            return UNKNOWN
        total += count
    return total


def asked_terms(described: Resource, context: Context) -> Capacity | UnknownInput:
    """The terms on which a TPU node, instance, template or node pool asks for capacity, as the estimate reads them.

    Raises ResourceError for flags that contradict each other.
    """
    if context.resources.get(described.urn) is not described:  # a part of a resource, or one side of a step
        return _read_terms(described, context)
    known = _known_terms(context)
    found = known.get(described.urn)
    if found is None:
        found = known[described.urn] = _read_terms(described, context)
    return found


@lru_cache(maxsize=1)
def _known_terms(context: Context) -> dict[str, Capacity | UnknownInput]:
    """The terms of what stands in the stack, by URN: several rules ask for them."""
    return {}


def _read_terms(described: Resource, context: Context) -> Capacity | UnknownInput:
    market = _market(context)
    if described.type == NODE_POOL:
        return node_capacity(as_asked(described), market)
    return (tpu_capacity if described.type == NODE else vm_capacity)(described, market)


@lru_cache(maxsize=1)
def _market(context: Context) -> Market:
    """What the estimate reads terms with. Made once a judgement."""
    return Market(resources=context.resources, usage=Usage(), book=context.book, as_of=context.as_of)


def terms_of(resource: Resource, context: Context) -> Capacity | UnknownInput | None:
    """The terms of whatever bills chips; None where they contradict each other, which TPU-CAPACITY-CONFLICT reports,
    and for a group whose template is no part of the stack."""
    if resource.type == QUEUED:
        return Capacity.ON_DEMAND
    described = description_of(resource, context.resources)
    try:
        return None if described is None else asked_terms(described, context)
    except ResourceError:
        return None
