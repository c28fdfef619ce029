"""What a record keeps of a resource: a list of fields that are allowed; everything else is left out.

No metadata values (startup scripts hold tokens), no service accounts, no addresses, no descriptions, no users. A field
that Google adds tomorrow is left out until it stands here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from policies.audit.record import Item, Json, Part

Allowed: TypeAlias = "Mapping[str, Allowed] | None"
"""Fields of an object by name; None for a plain value, or a list of such. Lists of objects are as one object."""

LABELS: Final[Allowed] = {"*": None}
"""Any name, plain values."""
_CREATOR: Final = "created-by"
_CREATOR_PATH: Final = re.compile(r"projects/[\w.:-]+/(?:zones|regions)/[\w-]+/instanceGroupManagers/[\w-]+", re.ASCII)
"""What `created-by` is of a machine of a group; of others it may be anything."""


def _plain(names: str) -> dict[str, Allowed]:
    return dict.fromkeys(names.split())


_COMMON: Final[Mapping[str, Allowed]] = _plain("id name selfLink creationTimestamp status") | {"labels": LABELS}
_RULE: Final[Allowed] = {
    "action": _plain("type storageClass"),
    "condition": _plain(
        "age createdBefore isLive matchesStorageClass numNewerVersions daysSinceNoncurrentTime noncurrentTimeBefore "
        "daysSinceCustomTime customTimeBefore matchesPrefix matchesSuffix"
    ),
}

ALLOWED: Final[Mapping[Part, Mapping[str, Allowed]]] = {
    Part.DISKS: {
        **_COMMON,
        **_plain(
            "zone region type sizeGb provisionedThroughput provisionedIops accessMode users lastAttachTimestamp "
            "lastDetachTimestamp labelFingerprint sourceSnapshot sourceSnapshotId sourceImage sourceDisk storagePool "
            "replicaZones resourcePolicies architecture licenses physicalBlockSizeBytes"
        ),
    },
    Part.INSTANCES: {
        **_COMMON,
        **_plain(
            "zone machineType lastStartTimestamp lastStopTimestamp lastSuspendedTimestamp labelFingerprint fingerprint "
            "deletionProtection resourcePolicies"
        ),
        "disks": _plain("source deviceName boot mode type autoDelete interface diskSizeGb"),
        "scheduling": {
            **_plain("provisioningModel preemptible automaticRestart onHostMaintenance instanceTerminationAction"),
            **_plain("terminationTime"),
            "maxRunDuration": _plain("seconds nanos"),
        },
        "networkInterfaces": {
            **_plain("name network subnetwork"),
            "accessConfigs": _plain("name type networkTier"),
        },
        "guestAccelerators": _plain("acceleratorType acceleratorCount"),
    },
    Part.SNAPSHOTS: {
        **_COMMON,
        **_plain(
            "sourceDisk sourceDiskId storageBytes storageBytesStatus diskSizeGb storageLocations snapshotType "
            "autoCreated labelFingerprint sourceSnapshotSchedulePolicy chainName creationSizeBytes architecture region"
        ),
    },
    Part.IMAGES: {
        **_COMMON,
        **_plain(
            "family archiveSizeBytes diskSizeGb sourceDisk sourceDiskId sourceImage sourceSnapshot sourceType "
            "storageLocations labelFingerprint architecture"
        ),
        "deprecated": _plain("state deleted deprecated obsolete replacement"),
    },
    Part.ADDRESSES: {
        **_COMMON,
        **_plain("region users addressType purpose networkTier ipVersion labelFingerprint prefixLength network"),
        **_plain("subnetwork"),
    },
    Part.GROUPS: {
        **_COMMON,
        **_plain("zone region targetSize baseInstanceName instanceTemplate fingerprint targetStoppedSize"),
        **_plain("targetSuspendedSize"),
        "status": _plain("isStable"),
        "currentActions": _plain(
            "abandoning creating creatingWithoutRetries deleting none recreating refreshing restarting resuming "
            "starting stopping suspending verifying"
        ),
        "allInstancesConfig": {"properties": {"labels": LABELS}},
        "versions": {**_plain("name instanceTemplate"), "targetSize": _plain("calculated fixed percent")},
        "distributionPolicy": {"zones": _plain("zone")},
    },
    Part.STORAGE_POOLS: {
        **_COMMON,
        **_plain(
            "zone state storagePoolType capacityProvisioningType performanceProvisioningType poolProvisionedCapacityGb "
            "poolProvisionedIops poolProvisionedThroughput labelFingerprint"
        ),
        "resourceStatus": _plain(
            "diskCount lastResizeTimestamp maxTotalProvisionedDiskCapacityGb poolUsedCapacityBytes poolUsedIops "
            "poolUsedThroughput poolUserWrittenBytes totalProvisionedDiskCapacityGb totalProvisionedDiskIops "
            "totalProvisionedDiskThroughput"
        ),
    },
    Part.ROUTERS: {
        **_plain("id name selfLink region network creationTimestamp"),
        "nats": _plain("name type natIpAllocateOption sourceSubnetworkIpRangesToNat minPortsPerVm maxPortsPerVm"),
    },
    Part.NODES: {
        **_plain("name id state health acceleratorType runtimeVersion createTime queuedResource multisliceNode"),
        "acceleratorConfig": _plain("type topology"),
        "schedulingConfig": _plain("preemptible reserved spot"),
        "dataDisks": _plain("sourceDisk mode"),
        "labels": LABELS,
        "networkEndpoints": _plain("port"),
    },
    Part.QUEUED_RESOURCES: {
        **_plain("name createTime reservationName"),
        "state": _plain("state stateInitiator"),
        "spot": {},
        "guaranteed": _plain("minDuration"),
        "queueingPolicy": {
            **_plain("validUntilDuration validUntilTime validAfterDuration validAfterTime"),
            "validInterval": _plain("startTime endTime"),
        },
        "tpu": {
            "nodeSpec": {
                **_plain("parent nodeId"),
                "multisliceParams": _plain("nodeCount nodeIdPrefix"),
                "node": {
                    **_plain("acceleratorType runtimeVersion"),
                    "acceleratorConfig": _plain("type topology"),
                    "schedulingConfig": _plain("preemptible reserved spot"),
                    "labels": LABELS,
                },
            }
        },
    },
    Part.BUCKETS: {
        **_plain(
            "id name selfLink location locationType storageClass timeCreated updated metageneration projectNumber rpo"
        ),
        "labels": LABELS,
        "softDeletePolicy": _plain("retentionDurationSeconds effectiveTime"),
        "versioning": _plain("enabled"),
        "lifecycle": {"rule": _RULE},
        "autoclass": _plain("enabled toggleTime terminalStorageClass terminalStorageClassUpdateTime"),
        "hierarchicalNamespace": _plain("enabled"),
        "customPlacementConfig": _plain("dataLocations"),
    },
    Part.CACHES: _plain(
        "id name anywhereCacheId bucket zone state admissionPolicy createTime updateTime ttl pendingUpdate selfLink"
    ),
    Part.HEARTBEATS: {**_plain("bucket name updated size"), "content": _plain("run attempt step time")},
}


def allowed(part: Part, found: Item) -> Item:
    """What the record keeps of a resource of that part."""
    kept = _object(found, ALLOWED[part])
    if part is Part.INSTANCES and "metadata" in found:
        kept["metadata"] = {"items": _metadata(found["metadata"])}
    return kept


def _object(found: Mapping[str, Json], fields: Mapping[str, Allowed]) -> dict[str, Json]:
    if "*" in fields:
        return {name: value for name, value in found.items() if not isinstance(value, Mapping | list)}
    kept: dict[str, Json] = {}
    for name, inner in fields.items():
        if name in found and (value := _value(found[name], inner)) is not None:
            kept[name] = value
    return kept


def _value(found: Json, inner: Allowed) -> Json:
    """What may stay of a value; None for what has not the form that is allowed."""
    if isinstance(found, list):
        kept = [_value(each, inner) for each in found if not isinstance(each, list)]
        return [each for each in kept if each is not None]
    if isinstance(found, Mapping):
        return None if inner is None else _object(found, inner)
    return found if inner is None else None


def _metadata(found: Json) -> list[Json]:
    """The keys of the metadata of a machine; the one value that stays tells which group made it."""
    entries = found.get("items") if isinstance(found, Mapping) else None
    kept: list[Json] = []
    for entry in entries if isinstance(entries, list) else []:
        key = entry.get("key") if isinstance(entry, Mapping) else None
        value = entry.get("value") if isinstance(entry, Mapping) else None
        if key == _CREATOR and isinstance(value, str) and _CREATOR_PATH.fullmatch(value):
            kept.append({"key": key, "value": value})
        elif isinstance(key, str):
            kept.append({"key": key})
    return kept
