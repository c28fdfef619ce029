"""From what Google says of a resource to what the provider puts into the state: computed outputs, and drift of inputs.

Only what the SDK names among the outputs of a type is put there; the names are read from its classes.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pulumi_gcp  # noqa: F401 - it registers the classes that are looked up here
from pulumi import _types

from infra.engine.schema import input_class
from infra.engine.wire import Wire

Item: TypeAlias = Mapping[str, Any]
HOST: Final = "https://www.googleapis.com/compute/v1/"
ATTRIBUTION: Final = {"goog-pulumi-provisioned": "true"}
"""The label that the provider adds; it shows in `pulumiLabels` and `effectiveLabels` only."""


_LOADING: Final = threading.Lock()
"""The SDK loads its modules at first use, which two threads must not do at once."""


@functools.cache
def class_of(token: str) -> type | None:
    """The class of the inputs of a resource type; None where the SDK has no such type."""
    with _LOADING:
        return input_class(token)


@functools.cache
def output_names(token: str) -> frozenset[str]:
    """The outputs of a resource type; none where the SDK has no such type."""
    found = class_of(token)
    if found is None:
        return frozenset()
    name = token.rpartition(":")[2]
    return frozenset(_types.resource_types(getattr(sys.modules[found.__module__], name)))


@functools.cache
def input_names(token: str) -> frozenset[str]:
    """The inputs of a resource type."""
    found = class_of(token)
    return frozenset(_types.input_type_types(found)) if found else frozenset()


def computed(token: str, id_: str, path: str, inputs: Item, item: Item) -> dict[str, Wire]:
    """Outputs that are no inputs of the program, from the resource as Google has it."""
    number = str(item.get("id", _number(path)))
    labels = dict(inputs.get("labels", {}))
    found: dict[str, Wire] = {
        "selfLink": item.get("selfLink", HOST + path),
        "creationTimestamp": item.get("creationTimestamp", ""),
        "createTime": item.get("createTime", item.get("creationTimestamp", "")),
        "updateTime": item.get("updateTime", item.get("creationTimestamp", "")),
        "effectiveLabels": {**ATTRIBUTION, **item.get("labels", labels)},
        "pulumiLabels": {**ATTRIBUTION, **labels},
        "labelFingerprint": item.get("labelFingerprint", "42WmSpB8rSM="),
        "etag": f"BwY{number[:8]}=",
        **_COMPUTED.get(token, _nothing)(id_, path, inputs, item, number),
    }
    names = output_names(token)
    return {key: value for key, value in found.items() if key in names and (key not in inputs or key in ALWAYS)}


ALWAYS: Final = frozenset({"selfLink", "effectiveLabels", "pulumiLabels", "size", "address", "networkInterfaces"})
"""Outputs that the provider takes from Google even where the program gave the input."""


def observed(token: str, item: Item) -> dict[str, Wire]:
    """Inputs as Google has them, of the types whose drift a refresh can see."""
    seen = _OBSERVED.get(token)
    return seen(item) if seen else {}


def metadata_in(item: Item) -> dict[str, Wire]:
    """`metadata` as the SDK has it."""
    return {entry["key"]: entry["value"] for entry in item.get("metadata", {}).get("items", ())}


def last(text: str) -> str:
    """The name at the end of a link."""
    return text.rsplit("/", 1)[-1]


def _number(path: str) -> str:
    return str(10**18 + sum(ord(letter) * 31**place for place, letter in enumerate(path[-10:])))


def _nothing(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    return {}


def _disk(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    found: dict[str, Wire] = {"diskId": number, "size": int(item["sizeGb"]), "users": item.get("users", [])}
    for key in ("provisionedThroughput", "provisionedIops"):
        if key in item:
            found[key] = int(item[key])
    names = {"accessMode", "lastAttachTimestamp", "lastDetachTimestamp", "sourceSnapshotId", "physicalBlockSizeBytes"}
    return {**found, **{key: item[key] for key in names if key in item}}


def _snapshot(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    size, used = int(item["diskSizeGb"]), int(item["storageBytes"])
    return {"snapshotId": int(number), "diskSizeGb": size, "storageBytes": used, "licenses": []}


def _instance(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    given = inputs.get("networkInterfaces", ())
    interfaces = [
        {**wanted, "networkIp": real.get("networkIP", ""), "name": f"nic{place}"}
        for place, (wanted, real) in enumerate(zip(given, item.get("networkInterfaces", ()), strict=False))
    ]
    return {
        "instanceId": number,
        "currentStatus": item["status"],
        "cpuPlatform": "Intel Emerald Rapids",
        "networkInterfaces": interfaces,
        "metadataFingerprint": "TPlzKWoNCl4=",
        "tagsFingerprint": "42WmSpB8rSM=",
    }


def _template(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    unique = f"{HOST}{path}?uniqueId={number}"
    fingerprints: dict[str, Wire] = {"metadataFingerprint": "TPlzKWoNCl4=", "tagsFingerprint": "42WmSpB8rSM="}
    return {"numericId": number, "selfLinkUnique": unique, **fingerprints}


def _group(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    group = item["instanceGroup"]
    return {
        "instanceGroup": group,
        "instanceGroupManagerId": int(number),
        "fingerprint": "pQ2cHjZ9r1s=",
        "operation": "",
    }


def _address(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    return {"address": item["address"], "addressId": int(number), "users": item.get("users", [])}


def _bucket(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    name = item["name"]
    links = {"selfLink": f"https://www.googleapis.com/storage/v1/b/{name}", "url": f"gs://{name}"}
    times = {"timeCreated": item["timeCreated"], "updated": item["updated"]}
    return {"projectNumber": int(item["projectNumber"]), **links, **times}


def _node(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    return {
        "state": item["state"],
        "health": item.get("health", ""),
        "healthDescription": item.get("healthDescription", ""),
        "apiVersion": item.get("apiVersion", "V2"),
        "queuedResource": item.get("queuedResource", ""),
        "multisliceNode": False,
        "networkEndpoints": [],
        "symptoms": [],
    }


def _network(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    return {"networkId": number, "numericId": number, "gatewayIpv4": ""}


def _subnetwork(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    return {"subnetworkId": int(number), "gatewayAddress": inputs.get("ipCidrRange", "").partition("/")[0]}


def _account(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    email = last(id_)
    return {"email": email, "member": f"serviceAccount:{email}", "name": id_, "uniqueId": number}


def _named_by_id(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    return {"name": id_, "state": "ACTIVE", "deleted": False}


def _short_name(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    registry = f"{inputs.get('location')}-docker.pkg.dev/{inputs.get('project')}/{inputs.get('repositoryId')}"
    return {"name": last(id_), "registryUri": registry}


def _notification(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    return {"name": id_, "verificationStatus": ""}


def _job(id_: str, path: str, inputs: Item, item: Item, number: str) -> dict[str, Wire]:
    condition = item.get("terminalCondition")
    return {
        "executionCount": item.get("executionCount", 0),
        "terminalConditions": [condition] if condition else [],
        "uid": number,
        "generation": "1",
        "observedGeneration": "1",
        "reconciling": False,
    }


_COMPUTED: Final[Mapping[str, Callable[[str, str, Item, Item, str], dict[str, Wire]]]] = {
    "gcp:artifactregistry/repository:Repository": _short_name,
    "gcp:billing/budget:Budget": _short_name,
    "gcp:cloudrunv2/job:Job": _job,
    "gcp:compute/address:Address": _address,
    "gcp:compute/disk:Disk": _disk,
    "gcp:compute/instance:Instance": _instance,
    "gcp:compute/instanceGroupManager:InstanceGroupManager": _group,
    "gcp:compute/instanceTemplate:InstanceTemplate": _template,
    "gcp:compute/network:Network": _network,
    "gcp:compute/snapshot:Snapshot": _snapshot,
    "gcp:compute/subnetwork:Subnetwork": _subnetwork,
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": _named_by_id,
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": _named_by_id,
    "gcp:monitoring/alertPolicy:AlertPolicy": _named_by_id,
    "gcp:monitoring/notificationChannel:NotificationChannel": _notification,
    "gcp:projects/iAMCustomRole:IAMCustomRole": _named_by_id,
    "gcp:serviceaccount/account:Account": _account,
    "gcp:storage/bucket:Bucket": _bucket,
    "gcp:tpu/v2QueuedResource:V2QueuedResource": _named_by_id,
    "gcp:tpu/v2Vm:V2Vm": _node,
}


def _seen_disk(item: Item) -> dict[str, Wire]:
    found: dict[str, Wire] = {"size": int(item["sizeGb"]), "type": last(item["type"]), "labels": item.get("labels", {})}
    for key in ("provisionedThroughput", "provisionedIops"):
        if key in item:
            found[key] = int(item[key])
    if "accessMode" in item:
        found["accessMode"] = item["accessMode"]
    if "sourceSnapshot" in item:
        found["snapshot"] = item["sourceSnapshot"]
    return found


def _seen_instance(item: Item) -> dict[str, Wire]:
    return {
        "machineType": last(item["machineType"]),
        "labels": item.get("labels", {}),
        "metadata": metadata_in(item),
        "attachedDisks": [_seen_attached(each) for each in item.get("disks", ()) if not each.get("boot")],
        "deletionProtection": item.get("deletionProtection", False),
    }


def _seen_attached(attached: Item) -> Wire:
    return {"source": attached["source"], "deviceName": attached["deviceName"], "mode": attached["mode"]}


def _seen_group(item: Item) -> dict[str, Wire]:
    return {"targetSize": int(item["targetSize"]), "baseInstanceName": item["baseInstanceName"]}


def _seen_bucket(item: Item) -> dict[str, Wire]:
    """The provider does not care for the case of a location."""
    found = {"storageClass": item["storageClass"], "labels": item.get("labels", {})}
    return {**found, "location": item["location"].lower()}


def _seen_node(item: Item) -> dict[str, Wire]:
    kept = ("acceleratorType", "runtimeVersion", "labels", "metadata", "tags", "description")
    return {key: item[key] for key in kept if key in item}


def _seen_labels(item: Item) -> dict[str, Wire]:
    return {"labels": item.get("labels", {})}


_OBSERVED: Final[Mapping[str, Callable[[Item], dict[str, Wire]]]] = {
    "gcp:compute/address:Address": _seen_labels,
    "gcp:compute/disk:Disk": _seen_disk,
    "gcp:compute/instance:Instance": _seen_instance,
    "gcp:compute/instanceGroupManager:InstanceGroupManager": _seen_group,
    "gcp:compute/snapshot:Snapshot": _seen_labels,
    "gcp:storage/bucket:Bucket": _seen_bucket,
    "gcp:tpu/v2Vm:V2Vm": _seen_node,
}
