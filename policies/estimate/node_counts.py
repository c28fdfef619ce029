"""How many nodes a GKE pool has, and where: nodes are counted a zone, and an autoscaler leaves a range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from policies.estimate.location import locate, places_named, segment_after
from policies.estimate.market import unknown
from policies.estimate.model import UnknownInput
from policies.hardware.zones import is_zone
from policies.resources import Opaque, Resource, ResourceSet

CLUSTER: Final = "gcp:container/cluster:Cluster"
NODE_POOL: Final = "gcp:container/nodePool:NodePool"
ZONES: Final = "in how many zones nodes bill"
"""What the zones of a pool decide."""
REGIONAL_ZONES: Final = 3
"""Zones of a regional cluster that names none. Source: https://cloud.google.com/kubernetes-engine/docs/concepts/regional-clusters"""


@final
@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the nodes of a pool are."""

    zones: Mapping[str, int]
    """For each place, how many zones it stands for: 1 for a zone, 3 for a region whose zones nobody named."""
    note: str = ""
    """How that is known, where the program does not say."""
    unseen: UnknownInput | None = None
    """Why there may be more."""


@final
@dataclass(frozen=True, kw_only=True)
class Nodes:
    """How many nodes a pool has at least."""

    count: int
    total: bool = False
    """Whether that is of all zones together; else it is in each."""
    unseen: UnknownInput | None = None
    """Why there may be more."""


def cluster_of(pool: Resource, resources: ResourceSet) -> Resource | None:
    """The cluster of a node pool as its program asked for it, where it is in the stack."""
    found = next(iter(resources.references(pool, "cluster", CLUSTER)), None)
    return None if found is None else as_asked(found)


def as_asked(resource: Resource) -> Resource:
    """A pool or cluster without the answer of the provider, which lists other pools and chosen zones too.

    One that was imported has nothing but that answer, and keeps it.
    """
    return replace(resource, outputs={}) if resource.inputs else resource


def cluster_location(cluster: Resource, resources: ResourceSet) -> str | UnknownInput:
    """The zone or region of a cluster: its own, else the provider's zone; a region of the provider does not count."""
    return locate(cluster, resources, "location", "zone")


def pool_location(pool: Resource, resources: ResourceSet) -> str | UnknownInput:
    """The zone or region of a node pool: its own, else that of its cluster."""
    own, cluster = pool.text("location"), cluster_of(pool, resources)
    if own is None and cluster is not None:
        return cluster_location(cluster, resources)
    named = pool.text("cluster")
    if own is None and isinstance(named, str):
        found = next((at for key in ("locations", "zones") if (at := segment_after(named, key))), None)
        if found:
            return found.lower()
    return locate(pool, resources, "location", "zone")


def shown_place(pool: Resource, cluster: Resource | None, location: str) -> str:
    """Where a pool is, for a reader and for a look at prices: its zone where all its nodes are in one."""
    found = places(pool, (), cluster, location)
    return location if isinstance(found, UnknownInput) or len(found.zones) != 1 else next(iter(found.zones))


def places(pool: Resource, at: tuple[str | int, ...], cluster: Resource | None, location: str) -> Places | UnknownInput:
    """The zones of a pool that is described at the path `at`: its own, else those of its cluster."""
    own = places_named(pool, *at, "nodeLocations", decides=ZONES)
    if isinstance(own, UnknownInput):
        return own
    if own:
        return Places(zones=dict.fromkeys(own, 1))
    shared = () if cluster is None else places_named(cluster, "nodeLocations", decides=ZONES)
    if isinstance(shared, UnknownInput):
        return shared
    unseen = None
    if cluster is None:
        unseen = UnknownInput(path="nodeLocations", reason="not set, and the cluster, which may have more, is not here")
    if is_zone(location):
        return Places(zones=dict.fromkeys((location, *shared), 1), unseen=unseen)
    if shared:
        return Places(zones=dict.fromkeys(shared, 1))
    note = f"zones not set: Google takes {REGIONAL_ZONES} of the region"
    return Places(zones={location: REGIONAL_ZONES}, note=note, unseen=unseen)


def nodes(pool: Resource, at: tuple[str | int, ...]) -> Nodes | UnknownInput:
    """How many nodes a pool has that is described at the path `at`."""
    scaling = pool.value(*at, "autoscaling")
    if isinstance(scaling, Opaque):
        return unknown(scaling, *at, "autoscaling", decides="how many nodes bill")
    if scaling:
        return _scaled(pool, (*at, "autoscaling"))
    for key in ("nodeCount", "initialNodeCount"):
        found = pool.integer(*at, key)
        if isinstance(found, Opaque):
            return unknown(found, *at, key, decides="how many nodes bill")
        if found is not None:
            return Nodes(count=found)
    return UnknownInput(path="nodeCount", reason="neither it nor initialNodeCount is set; it decides how many bill")


def _scaled(pool: Resource, at: tuple[str | int, ...]) -> Nodes | UnknownInput:
    found: dict[str, int] = {}
    for key in ("minNodeCount", "maxNodeCount", "totalMinNodeCount", "totalMaxNodeCount"):
        value = pool.integer(*at, key)
        if isinstance(value, Opaque):
            return unknown(value, *at, key, decides="how many nodes bill")
        if value is not None:
            found[key] = value
    total = "totalMaxNodeCount" in found
    low, high = ("totalMinNodeCount", "totalMaxNodeCount") if total else ("minNodeCount", "maxNodeCount")
    least, most = found.get(low, 0), found.get(high)
    if least == most:
        return Nodes(count=least, total=total)
    several = f"{least} to {'any number of' if most is None else most} nodes{'' if total else ' a zone'}"
    unseen = UnknownInput(path="autoscaling", reason=f"{several}, as the autoscaler decides: the least is counted")
    return Nodes(count=least, total=total, unseen=unseen)
