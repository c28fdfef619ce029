"""What a link names: which API, which collection, where, and which resource of it."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final, final

from policies.errors import InputError


class Collection(enum.Enum):
    """Collections that remedies look at or change: their name in a link, and the class of their client."""

    ZONE_DISKS = ("zones", "disks", "Disks", "disk", "Disk")
    REGION_DISKS = ("regions", "disks", "RegionDisks", "disk", "RegionDisk")
    INSTANCES = ("zones", "instances", "Instances", "instance", "Instance")
    ZONE_GROUPS = (
        "zones",
        "instanceGroupManagers",
        "InstanceGroupManagers",
        "instance_group_manager",
        "InstanceGroupManager",
    )
    REGION_GROUPS = (
        "regions",
        "instanceGroupManagers",
        "RegionInstanceGroupManagers",
        "instance_group_manager",
        "RegionInstanceGroupManager",
    )
    REGION_ADDRESSES = ("regions", "addresses", "Addresses", "address", "Address")
    GLOBAL_ADDRESSES = ("global", "addresses", "GlobalAddresses", "address", "GlobalAddress")
    SNAPSHOTS = ("global", "snapshots", "Snapshots", "snapshot", "Snapshot")
    IMAGES = ("global", "images", "Images", "image", "Image")
    NODES = ("locations", "nodes", "", "name", "")
    QUEUED_RESOURCES = ("locations", "queuedResources", "", "name", "")
    BUCKETS = ("b", "", "", "bucket", "")
    CACHES = ("b", "anywhereCaches", "", "cache", "")

    @property
    def scope(self) -> str:
        """The kind of place in the link: `zones`, `regions`, `global`, `locations`."""
        return self.value[0]

    @property
    def client(self) -> str:
        """The class of Compute Engine's client without its ending; empty for other APIs."""
        return self.value[2]

    @property
    def argument(self) -> str:
        """What the client calls the name of the resource."""
        return self.value[3]

    @property
    def noun(self) -> str:
        """What one of them is called in the names of requests: `DeleteRegionDiskRequest`."""
        return self.value[4]


@final
@dataclass(frozen=True, kw_only=True)
class Place:
    """A link, taken apart."""

    link: str
    collection: Collection
    project: str
    """Empty for what has none in its link: buckets."""
    location: str
    """Zone, region or location; the bucket for a cache; empty for what is global."""
    name: str

    def arguments(self) -> dict[str, str]:
        """The arguments of a call of Compute Engine that name the resource."""
        where = {"zones": {"zone": self.location}, "regions": {"region": self.location}}.get(self.collection.scope, {})
        return {"project": self.project, **where, self.collection.argument: self.name}


def place_of(link: str) -> Place:
    """The resource that a self link without host and version names. Raises InputError for an unknown kind."""
    parts = link.split("/")
    # A name is part of the address of a call: `..`, `?` and the like would make it the address of another one.
    if not all(map(_PART.fullmatch, parts)) or ".." in link:
        raise InputError(f'"{link}" names no resource that a remedy can look at or change: a part of it is no name')
    if parts[0] == "projects" and len(parts) in (5, 6):
        scope, kind = parts[2], parts[-2]
        found = _KNOWN.get((scope, kind)) if len(parts) == (5 if scope == "global" else 6) else None
        if found is not None:
            location = "" if scope == "global" else parts[3]
            return Place(link=link, collection=found, project=parts[1], location=location, name=parts[-1])
    if parts[0] == "b" and len(parts) == 2:
        return Place(link=link, collection=Collection.BUCKETS, project="", location="", name=parts[1])
    if parts[0] == "b" and len(parts) == 4 and parts[2] == "anywhereCaches":
        return Place(link=link, collection=Collection.CACHES, project="", location=parts[1], name=parts[3])
    raise InputError(f'"{link}" names no resource that a remedy can look at or change')


_PART: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,253}[A-Za-z0-9])?")
_KNOWN: Final = {(each.value[0], each.value[1]): each for each in Collection if each.value[1] and each.scope != "b"}
