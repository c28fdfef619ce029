"""What a verdict is about: a resource of the record by the names that reports use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final, final

from policies.audit.links import GLOBAL, last, location_of
from policies.audit.reading import labels_of, link_of, names, said
from policies.audit.record import Item, Part

TYPES: Final = MappingProxyType(
    {
        Part.DISKS: "compute.disk",
        Part.INSTANCES: "compute.instance",
        Part.SNAPSHOTS: "compute.snapshot",
        Part.IMAGES: "compute.image",
        Part.ADDRESSES: "compute.address",
        Part.GROUPS: "compute.instanceGroupManager",
        Part.STORAGE_POOLS: "compute.storagePool",
        Part.ROUTERS: "compute.router",
        Part.NODES: "tpu.node",
        Part.QUEUED_RESOURCES: "tpu.queuedResource",
        Part.BUCKETS: "storage.bucket",
        Part.CACHES: "storage.anywhereCache",
        Part.HEARTBEATS: "storage.object",
    }
)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """One resource of a record."""

    part: Part
    item: Item

    @cached_property
    def resource(self) -> str:
        """The self link without host and version."""
        return link_of(self.item) or f"{TYPES[self.part]} without a name"

    @property
    def name(self) -> str:
        """The last part of the link."""
        return last(self.resource)

    @property
    def type(self) -> str:
        """As its API calls it."""
        return TYPES[self.part]

    @cached_property
    def location(self) -> str:
        """Zone, region, multi-region or `global`."""
        stored = names(self.item, "storageLocations")
        fields = (said(self.item, key) for key in ("zone", "region", "location"))
        found = next((last(each) for each in fields if each), "") or (stored[0] if stored else "")
        return (found or location_of(self.resource) or GLOBAL).lower()

    @cached_property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """Its labels by key."""
        return labels_of(self.item)

    def label(self, key: str) -> str:
        """One of its labels; empty where it has none of that name."""
        return dict(self.labels).get(key, "")
