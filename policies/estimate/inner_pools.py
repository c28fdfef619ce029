"""The node pools that stand inside a cluster, each as if it were a node pool of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from policies.estimate.node_counts import CLUSTER, NODE_POOL, as_asked
from policies.resources import Opaque, Resource, ResourceError, ResourceSet, Value

DEFAULT_POOL: Final = "default-pool"
"""What GKE calls the pool that a cluster describes itself."""
_DEFAULT_INPUTS: Final = ("nodeConfig", "initialNodeCount")


@final
@dataclass(frozen=True, kw_only=True)
class InnerPool:
    """One pool inside a cluster."""

    label: str
    """Its name, else where it stands. The names of its lines in the bill of the cluster begin with it."""
    at: tuple[str | int, ...]
    """Its path in the cluster; empty for the default pool."""
    resource: Resource
    """The node pool that it would be. Its URN is that of the cluster with the place behind it."""

    def owns(self, name: str) -> bool:
        """Whether a line of that name in the bill of the cluster is one of this pool."""
        return name.startswith(self.called(""))

    def called(self, name: str) -> str:
        """What a line of this pool is called in the bill of the cluster."""
        return f"{self.label}: {name}"


def inner_pools(cluster: Resource) -> tuple[InnerPool, ...] | Opaque:
    """The pools inside a cluster; else its default pool, unless that is removed at once. None of an Autopilot cluster.

    Raises ResourceError where `nodePools` is no list.
    """
    described = as_asked(cluster)
    inside = described.items("nodePools")
    if isinstance(inside, Opaque):
        return inside
    if described.value("enableAutopilot") is True:
        return ()
    pools = tuple(_pool(cluster, index, block) for index, block in enumerate(inside))
    removed = described.value("removeDefaultNodePool")
    if pools or removed or described.value("initialNodeCount") is None:
        return pools
    block = {key: described.value(key) for key in _DEFAULT_INPUTS}
    return (InnerPool(label=DEFAULT_POOL, at=(), resource=_resource(cluster, DEFAULT_POOL, DEFAULT_POOL, block)),)


def pools_inside(resources: ResourceSet) -> Iterator[Resource]:
    """The pools inside all clusters of a stack; those of a malformed or hidden list are left out."""
    for cluster in resources.of_type(CLUSTER):
        try:
            pools = inner_pools(cluster)
        except ResourceError:
            continue
        yield from () if isinstance(pools, Opaque) else (pool.resource for pool in pools)


def _pool(cluster: Resource, index: int, block: Value) -> InnerPool:
    place = f"nodePools[{index}]"
    inputs = block if isinstance(block, Mapping) else {}
    named = inputs.get("name")
    label = named if isinstance(named, str) and named else place
    return InnerPool(label=label, at=("nodePools", index), resource=_resource(cluster, label, place, inputs))


def _resource(cluster: Resource, name: str, place: str, inputs: Mapping[str, Value]) -> Resource:
    joined = replace(cluster.options, property_dependencies={"cluster": (cluster.urn,)})
    return Resource(urn=f"{cluster.urn}#{place}", type=NODE_POOL, name=name, inputs=inputs, options=joined)
