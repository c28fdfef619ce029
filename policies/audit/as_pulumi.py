"""One resource of a record as the resource of a Pulumi program that would have made it: so one code prices both.

Keys on the left are Pulumi's, on the right those of the REST JSON. What the APIs answer and no program would ask for
together (a node has a type and a configuration) stands in the outputs, as in a state file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Final, NamedTuple

from policies.audit.links import GLOBAL, last, location_of
from policies.audit.reading import link_of, objects
from policies.audit.record import Item, Json, Part
from policies.resources import Resource, ResourceOptions, Value

ADDRESS: Final = "gcp:compute/address:Address"
GLOBAL_ADDRESS: Final = "gcp:compute/globalAddress:GlobalAddress"
BUCKET: Final = "gcp:storage/bucket:Bucket"
CACHE: Final = "gcp:storage/anywhereCache:AnywhereCache"
DISK: Final = "gcp:compute/disk:Disk"
REGION_DISK: Final = "gcp:compute/regionDisk:RegionDisk"
FORWARDING: Final = "gcp:compute/forwardingRule:ForwardingRule"
GROUP: Final = "gcp:compute/instanceGroupManager:InstanceGroupManager"
IMAGE: Final = "gcp:compute/image:Image"
INSTANCE: Final = "gcp:compute/instance:Instance"
NAT: Final = "gcp:compute/routerNat:RouterNat"
OBJECT: Final = "gcp:storage/bucketObject:BucketObject"
POOL: Final = "gcp:compute/storagePool:StoragePool"
QUEUED: Final = "gcp:tpu/v2QueuedResource:V2QueuedResource"
ROUTER: Final = "gcp:compute/router:Router"
SNAPSHOT: Final = "gcp:compute/snapshot:Snapshot"
TPU: Final = "gcp:tpu/v2Vm:V2Vm"

_SAME: Final = MappingProxyType(
    {
        DISK: ("provisionedIops", "provisionedThroughput", "accessMode", "storagePool"),
        ADDRESS: ("addressType", "ipVersion"),
        POOL: (
            "poolProvisionedCapacityGb",
            "poolProvisionedIops",
            "poolProvisionedThroughput",
            "capacityProvisioningType",
            "performanceProvisioningType",
            "storagePoolType",
        ),
        SNAPSHOT: ("snapshotType", "storageLocations", "sourceDisk"),
        IMAGE: ("storageLocations", "sourceDisk"),
        TPU: ("acceleratorType", "acceleratorConfig", "schedulingConfig", "networkConfig", "networkConfigs"),
        GROUP: ("targetSize",),
    }
)
"""Fields that both sides call the same."""


class Described(NamedTuple):
    """What one API calls a resource, in the words of the provider."""

    type: str
    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value] = MappingProxyType({})


def as_pulumi(part: Part, item: Item, *, depends: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> Resource:
    """`item` of `part` as a resource. Total: a field that cannot be what it says is refused by whoever prices it.

    `depends` are URNs by input, for joins between such resources.
    """
    described = _DESCRIBERS[part](item)
    name = link_of(item)
    return Resource(
        urn=urn_of(described.type, name),
        type=described.type,
        name=last(name),
        inputs={key: value for key, value in described.inputs.items() if value is not None},
        outputs={key: value for key, value in described.outputs.items() if value is not None},
        options=ResourceOptions(property_dependencies=depends),
    )


def urn_of(type: str, link: str) -> str:
    """The URN under which the resource of that self link is known here."""
    return f"urn:pulumi:live::record::{type}::{link}"


def value_of(found: Json) -> Value:
    """JSON as a value of a resource: lists as tuples, numbers exact, what is no number as text."""
    if isinstance(found, float):
        return Decimal(repr(found)) if math.isfinite(found) else repr(found)
    if isinstance(found, list):
        return tuple(map(value_of, found))
    if isinstance(found, Mapping):
        return {str(key): value_of(inner) for key, inner in found.items()}
    return found


def pick(item: Json, keys: Iterable[str]) -> dict[str, Value]:
    """Those fields of an object that it has; of what is no object, none."""
    return {key: value_of(item[key]) for key in keys if key in item} if isinstance(item, Mapping) else {}


def _place(item: Item, key: str) -> Value:
    """The zone or region: as the field says, else as the name does."""
    found = item.get(key)
    return value_of(found) if found is not None else location_of(link_of(item)) or None


def _disk(item: Item) -> Described:
    regional = item.get("zone") is None and (item.get("region") is not None or item.get("replicaZones") is not None)
    key = "region" if regional else "zone"
    inputs = {key: _place(item, key), "type": value_of(item.get("type")), "size": value_of(item.get("sizeGb"))}
    return Described(REGION_DISK if regional else DISK, inputs | pick(item, _SAME[DISK]))


def _snapshot(item: Item) -> Described:
    return Described(SNAPSHOT, pick(item, _SAME[SNAPSHOT]))


def _image(item: Item) -> Described:
    return Described(IMAGE, pick(item, _SAME[IMAGE]))


def _instance(item: Item) -> Described:
    """Without its disks: in a record each is a resource of its own."""
    inputs: dict[str, Value] = {
        "zone": _place(item, "zone"),
        "machineType": value_of(item.get("machineType")),
        "scheduling": pick(item.get("scheduling"), ("provisioningModel", "preemptible")),
        "bootDisk": {"source": "a disk of the record"},
        "networkInterfaces": _interfaces(item.get("networkInterfaces")),
        "scratchDisks": tuple(
            {"size": value_of(disk.get("diskSizeGb"))}
            for disk in objects(item, "disks")
            if disk.get("type") == "SCRATCH"
        ),
        "guestAccelerators": tuple(
            {"type": value_of(each.get("acceleratorType")), "count": value_of(each.get("acceleratorCount"))}
            for each in objects(item, "guestAccelerators")
        ),
    }
    return Described(INSTANCE, inputs)


def _interfaces(found: Json) -> Value:
    if not isinstance(found, list):
        return value_of(found)
    return tuple(pick(each, ("accessConfigs",)) for each in found)


def _address(item: Item) -> Described:
    region = _place(item, "region")
    inputs = pick(item, _SAME[ADDRESS])
    if region is None or region == GLOBAL:
        return Described(GLOBAL_ADDRESS, inputs)
    return Described(ADDRESS, inputs | {"region": region})


def _group(item: Item) -> Described:
    return Described(GROUP, pick(item, _SAME[GROUP]) | {"zone": _place(item, "zone")})


def _pool(item: Item) -> Described:
    return Described(POOL, pick(item, _SAME[POOL]) | {"zone": _place(item, "zone")})


def _router(item: Item) -> Described:
    return Described(ROUTER, {"region": _place(item, "region")})


def _node(item: Item) -> Described:
    return Described(TPU, {"zone": location_of(link_of(item)) or None}, pick(item, _SAME[TPU]))


def _queued(item: Item) -> Described:
    return Described(QUEUED, {"zone": location_of(link_of(item)) or None})


def _bucket(item: Item) -> Described:
    """As it is, without what soft delete will do: in a record the soft-deleted bytes are counted."""
    inputs = pick(item, ("location", "storageClass", "customPlacementConfig", "autoclass"))
    return Described(BUCKET, inputs | {"softDeletePolicy": {"retentionDurationSeconds": 0}})


def _cache(item: Item) -> Described:
    return Described(CACHE, pick(item, ("zone",)))


def _object(item: Item) -> Described:
    return Described(OBJECT, {})


_DESCRIBERS: Final[Mapping[Part, Callable[[Item], Described]]] = MappingProxyType(
    {
        Part.DISKS: _disk,
        Part.INSTANCES: _instance,
        Part.SNAPSHOTS: _snapshot,
        Part.IMAGES: _image,
        Part.ADDRESSES: _address,
        Part.GROUPS: _group,
        Part.STORAGE_POOLS: _pool,
        Part.ROUTERS: _router,
        Part.NODES: _node,
        Part.QUEUED_RESOURCES: _queued,
        Part.BUCKETS: _bucket,
        Part.CACHES: _cache,
        Part.HEARTBEATS: _object,
    }
)
