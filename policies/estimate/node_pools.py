"""The price of the nodes of GKE: machines, boot disks, local SSDs and addresses, in a pool or inside a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, final

from policies.estimate.capacity import Capacity, node_capacity
from policies.estimate.hosts import (
    SCRATCH_GIB,
    Fleet,
    Terms,
    accelerator_parts,
    address_line,
    local_ssd_line,
    machine_parts,
)
from policies.estimate.location import last_segment
from policies.estimate.market import Market, Part, joined, unknown
from policies.estimate.model import UnknownInput
from policies.estimate.node_counts import Nodes, Places, nodes, places
from policies.estimate.shape_titles import shape_title
from policies.estimate.surcharges import WINDOWS, confidential_line, licence_line
from policies.estimate.volume import Inputs, read_volume, volume_parts
from policies.hardware.machines import BootDiskStatus, boot_disk_verdict
from policies.hardware.slices import shapes
from policies.hardware.zones import is_zone, region_of
from policies.resources import Opaque, Resource, dig, dotted

DEFAULT_MACHINE: Final = "e2-medium"
"""What GKE takes where no machine type is set. Source: https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/NodeConfig"""
DEFAULT_DISKS: Final = ("pd-balanced", "hyperdisk-balanced")
"""What GKE boots a node from where no disk type is set: the second where the machine does not take the first."""
DEFAULT_GIB: Final = 100
SSD_COUNTS: Final = (
    ("localSsdCount",),
    ("localNvmeSsdBlockConfig", "localSsdCount"),
    ("ephemeralStorageLocalSsdConfig", "localSsdCount"),
    ("ephemeralStorageConfig", "localSsdCount"),
)


@final
@dataclass(frozen=True, kw_only=True)
class Pool:
    """A group of equal nodes, and where it is described."""

    resource: Resource
    """The node pool, or the cluster that has it inside; its inputs alone, for an answer lists other pools too."""
    at: tuple[str | int, ...] = ()
    cluster: Resource | None
    location: str


def pool_title(pool: Pool, market: Market) -> str:
    """`v6e-16 · 4 hosts · 16 chips · spot`, `3 × e2-medium · not spot`; the kind alone where that is not known."""
    machine, terms, size, zones = _machine(pool), _terms(pool, market), nodes(pool.resource, pool.at), _places(pool)
    if isinstance(machine, UnknownInput) or isinstance(terms, UnknownInput):
        return "node pool"
    if isinstance(size, UnknownInput) or isinstance(zones, UnknownInput) or size.unseen:
        return f"node pool · {machine}"
    many = size.count if size.total else size.count * sum(zones.zones.values())
    fleet = Fleet(machine_type=machine, terms=Terms(location="", capacity=terms, share=Fraction(1)), count=many)
    topology = pool.resource.value(*pool.at, "placementPolicy", "tpuTopology")
    for shape in shapes().values():
        if shape.topology == topology and (shape.hosts, shape.chips) == (many, fleet.chips):
            return shape_title(shape, terms)
    return fleet.title


def pool_parts(pool: Pool, market: Market, owner: Resource) -> Iterator[Part]:
    """Everything that the nodes of a pool bill. `owner` is the resource whose usage holds for them."""
    found = (_machine(pool), _terms(pool, market), nodes(pool.resource, pool.at), _places(pool))
    machine, terms, size, zones = found
    if (
        isinstance(machine, UnknownInput)
        or isinstance(terms, UnknownInput)
        or isinstance(size, UnknownInput)
        or isinstance(zones, UnknownInput)
    ):
        yield from (part for part in found if isinstance(part, UnknownInput))
        return
    yield from (each.unseen for each in (size, zones) if each.unseen is not None)
    for place, many in _spread(size, zones):
        if many:
            held = Terms.of(place, terms, market.usage_of(owner))
            note = joined(held.said, zones.note, _machine_note(pool))
            fleet = Fleet(machine_type=machine, terms=replace(held, said=note), count=many)
            yield from _node_parts(pool, market, fleet)


def _spread(size: Nodes, zones: Places) -> Iterator[tuple[str, int]]:
    """How many nodes bill where. A total over several zones has the prices of their region."""
    if not size.total:
        yield from ((place, size.count * many) for place, many in zones.zones.items())
    elif len(zones.zones) == 1:
        yield next(iter(zones.zones)), size.count
    else:
        first = next(iter(zones.zones))
        yield region_of(first) if is_zone(first) else first, size.count


def _node_parts(pool: Pool, market: Market, fleet: Fleet) -> Iterator[Part]:
    yield from machine_parts(market, fleet)
    yield from accelerator_parts(pool.resource, fleet.count, *pool.at, "nodeConfig")
    yield from _surcharge_parts(pool, market, fleet)
    yield from _ssd_parts(pool, market, fleet)
    yield from _boot_parts(pool, market, fleet)
    private = private_nodes(pool.resource, pool.at, pool.cluster)
    if isinstance(private, UnknownInput):
        yield private
    elif not private:
        yield address_line(market, fleet.count, fleet.terms)


def _machine(pool: Pool) -> str | UnknownInput:
    path = (*pool.at, "nodeConfig", "machineType")
    found = pool.resource.text(*path)
    if isinstance(found, Opaque):
        return unknown(found, *path, decides="what a node costs")
    return last_segment(found) if found else DEFAULT_MACHINE


def _machine_note(pool: Pool) -> str:
    named = pool.resource.value(*pool.at, "nodeConfig", "machineType")
    return "" if named else f"machine type not set: GKE takes {DEFAULT_MACHINE}"


def _terms(pool: Pool, market: Market) -> Capacity | UnknownInput:
    return node_capacity(pool.resource, market, *pool.at)


def _places(pool: Pool) -> Places | UnknownInput:
    return places(pool.resource, pool.at, pool.cluster, pool.location)


def _boot_parts(pool: Pool, market: Market, fleet: Fleet) -> Iterator[Part]:
    config = (*pool.at, "nodeConfig")
    if pool.resource.items(*config, "storagePools"):
        yield "the boot disks of its nodes stand in a storage pool, which bills for them"
        return
    nested = pool.resource.value(*config, "bootDisk")
    if isinstance(nested, Opaque):
        yield unknown(nested, *config, "bootDisk", decides="what the boot disks cost")
        return
    names = (
        Inputs(at=(*config, "bootDisk"), type="diskType", size="sizeGb")
        if nested
        else Inputs(at=config, type="diskType", size="diskSizeGb")
    )
    volume = read_volume(pool.resource, names, (DEFAULT_GIB, f"size not set: GKE makes {DEFAULT_GIB} GiB"))
    if isinstance(volume, UnknownInput):
        yield volume
        return
    if volume.type_note:
        kind = _default_disk(fleet.machine_type)
        if kind is None:
            reason = f"not set, and what {fleet.machine_type} boots from is not known"
            yield UnknownInput(path="nodeConfig.diskType", reason=reason)
            return
        volume = replace(volume, type=kind, type_note=f"type not set: GKE takes {kind}")
    yield from volume_parts(market, volume, fleet.terms.location, count=fleet.count, name="boot disk")


def _default_disk(machine: str) -> str | None:
    boots = (kind for kind in DEFAULT_DISKS if boot_disk_verdict(machine, kind).status is BootDiskStatus.OK)
    return next(boots, None)


def _surcharge_parts(pool: Pool, market: Market, fleet: Fleet) -> Iterator[Part]:
    config = (*pool.at, "nodeConfig")
    image, confidential = pool.resource.text(*config, "imageType"), pool.resource.value(*config, "confidentialNodes")
    if isinstance(image, str) and image.lower().startswith(WINDOWS):
        yield licence_line(market, fleet, WINDOWS)
    if isinstance(confidential, Opaque):
        yield unknown(confidential, *config, "confidentialNodes", decides="whether confidential computing bills")
    elif dig(confidential, "enabled"):
        yield confidential_line(market, fleet)
    if pool.resource.value(*config, "secondaryBootDisks"):
        path = dotted((*config, "secondaryBootDisks"))
        yield UnknownInput(path=path, reason="each node has one more disk, as large as its image, which is not known")


def _ssd_parts(pool: Pool, market: Market, fleet: Fleet) -> Iterator[Part]:
    disks = 0
    for keys in SSD_COUNTS:
        path = (*pool.at, "nodeConfig", *keys)
        found = pool.resource.integer(*path)
        if isinstance(found, Opaque):
            yield unknown(found, *path, decides="how much local SSD bills")
        else:
            disks += found or 0
    if disks:
        yield local_ssd_line(market, disks * SCRATCH_GIB, fleet)


def private_nodes(pool: Resource, at: tuple[str | int, ...], cluster: Resource | None) -> bool | UnknownInput:
    """Whether nodes have internal addresses only: as the pool at the path `at` says, else as its cluster says."""
    path = (*at, "networkConfig", "enablePrivateNodes")
    asked: list[tuple[Resource, tuple[str | int, ...]]] = [(pool, path)]
    if cluster is not None:
        asked.append((cluster, ("privateClusterConfig", "enablePrivateNodes")))
    for resource, where in asked:
        found = resource.flag(*where)
        if isinstance(found, Opaque):
            return unknown(found, *where, decides="whether each node has an external address")
        if found is not None:
            return found
    if cluster is not None:
        return False
    reason = "not set, and the cluster is not in this stack; it decides whether each node has an external address"
    return UnknownInput(path="networkConfig.enablePrivateNodes", reason=reason)
