"""From the inputs of the SDK to the REST JSON that Google's provider sends.

Types without an entry are sent as they are. Inputs come in clear text and without the bridge's notes.
Source: the REST references of Compute v1, Storage v1 and Cloud TPU v2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Inputs: TypeAlias = Mapping[str, Any]
Body: TypeAlias = dict[str, Any]
PROVIDER_ONLY: Final = frozenset(
    {
        "allowStoppingForUpdate",
        "createSnapshotBeforeDestroy",
        "createSnapshotBeforeDestroyPrefix",
        "deletionPolicy",
        "desiredStatus",
        "forceDestroy",
        "waitForInstances",
        "waitForInstancesStatus",
    }
)
"""Inputs that the provider keeps to itself."""
_PLACE: Final = frozenset({"name", "project", "zone", "region"})


def body_of(token: str, inputs: Inputs) -> Body:
    """What the provider sends to make a resource."""
    return _BODIES.get(token, _as_it_is)(inputs)


def link(text: str, project: str, collection: str) -> str:
    """A path from `projects/` on, of a name or a link: `collection` is such as `zones/z/disks`."""
    return text[text.index("projects/") :] if "projects/" in text else f"projects/{project}/{collection}/{text}"


def _as_it_is(inputs: Inputs) -> Body:
    return dict(inputs)


def _kept(inputs: Inputs, *also: str) -> Body:
    """What has the same name and form on both sides."""
    apart = PROVIDER_ONLY | _PLACE | set(also)
    return {key: value for key, value in inputs.items() if key not in apart}


def _texts(inputs: Inputs, **names: str) -> Body:
    """Whole numbers that REST writes as texts, by their names there."""
    return {rest: str(inputs[key]) for key, rest in names.items() if key in inputs}


def _disk(inputs: Inputs) -> Body:
    numbers = {"size": "sizeGb", "provisionedThroughput": "provisionedThroughput", "provisionedIops": "provisionedIops"}
    body = {**_kept(inputs, *numbers, "snapshot", "image", "sourceDisk"), **_texts(inputs, **numbers)}
    project = inputs["project"]
    if "snapshot" in inputs:
        body["sourceSnapshot"] = link(inputs["snapshot"], project, "global/snapshots")
    if "image" in inputs:
        body["sourceImage"] = link(inputs["image"], project, "global/images")
    if "sourceDisk" in inputs:
        body["sourceDisk"] = link(inputs["sourceDisk"], project, f"zones/{inputs['zone']}/disks")
    return body


def _snapshot(inputs: Inputs) -> Body:
    source = link(inputs["sourceDisk"], inputs["project"], f"zones/{inputs.get('zone', '')}/disks")
    return {**_kept(inputs, "sourceDisk"), "sourceDisk": source}


def metadata_of(entries: Mapping[str, str]) -> Body:
    """`metadata` as Compute has it."""
    return {"items": [{"key": key, "value": value} for key, value in sorted(entries.items())]}


def attached_of(disk: Inputs, project: str, zone: str) -> Body:
    """A disk besides the boot disk."""
    source = link(disk["source"], project, f"zones/{zone}/disks")
    named = {"deviceName": disk["deviceName"]} if "deviceName" in disk else {}
    return {"source": source, "mode": disk.get("mode", "READ_WRITE"), **named}


def _boot(disk: Inputs) -> Body:
    params = dict(disk.get("initializeParams", {}))
    params.update(_texts(params, provisionedIops="provisionedIops", provisionedThroughput="provisionedThroughput"))
    for key, rest in (("image", "sourceImage"), ("type", "diskType")):
        if key in params:
            params[rest] = params.pop(key)
    if "size" in params:
        params["diskSizeGb"] = str(params.pop("size"))
    kept = {key: disk[key] for key in ("deviceName", "mode") if key in disk}
    source = {"source": disk["source"]} if "source" in disk else {"initializeParams": params}
    return {"boot": True, "autoDelete": disk.get("autoDelete", True), **kept, **source}


def _template_disk(disk: Inputs) -> Body:
    if "source" in disk:
        kept = {key: disk[key] for key in ("source", "deviceName", "mode") if key in disk}
        return {"boot": disk.get("boot", False), "autoDelete": disk.get("autoDelete", True), **kept}
    params = {key: disk[key] for key in ("sourceImage", "diskType", "labels") if key in disk}
    numbers = {"diskSizeGb": "diskSizeGb", "provisionedIops": "provisionedIops"}
    params |= _texts(disk, **numbers, provisionedThroughput="provisionedThroughput")
    return {"boot": disk.get("boot", False), "autoDelete": disk.get("autoDelete", True), "initializeParams": params}


def _interface(interface: Inputs) -> Body:
    renamed = {"networkIp": "networkIP", "natIp": "natIP"}
    body = {renamed.get(key, key): value for key, value in interface.items()}
    if "accessConfigs" in body:
        body["accessConfigs"] = [_interface(each) for each in body["accessConfigs"]]
    return body


def _machine(inputs: Inputs) -> Body:
    """What instances and templates have in common."""
    apart = ("metadata", "tags", "serviceAccount", "networkInterfaces", "bootDisk", "attachedDisks", "disks")
    body = _kept(inputs, *apart, "namePrefix", "metadataStartupScript")
    body["networkInterfaces"] = [_interface(each) for each in inputs.get("networkInterfaces", ())]
    metadata = dict(inputs.get("metadata", {}))
    if "metadataStartupScript" in inputs:
        metadata["startup-script"] = inputs["metadataStartupScript"]
    if metadata:
        body["metadata"] = metadata_of(metadata)
    if "tags" in inputs:
        body["tags"] = {"items": inputs["tags"]}
    if "serviceAccount" in inputs:
        body["serviceAccounts"] = [inputs["serviceAccount"]]
    return body


def _instance(inputs: Inputs) -> Body:
    others = [attached_of(each, inputs["project"], inputs["zone"]) for each in inputs.get("attachedDisks", ())]
    return {**_machine(inputs), "disks": [_boot(inputs["bootDisk"]), *others]}


def _template(inputs: Inputs) -> Body:
    return {"properties": {**_machine(inputs), "disks": [_template_disk(each) for each in inputs.get("disks", ())]}}


def _group(inputs: Inputs) -> Body:
    return {"targetSize": 0, **_kept(inputs)}


def _node(inputs: Inputs) -> Body:
    body = _kept(inputs, "networkConfig", "serviceAccount", "dataDisks", "cidrBlock")
    if "networkConfig" in inputs:
        body["networkConfig"] = dict(inputs["networkConfig"])
    if "serviceAccount" in inputs:
        account = inputs["serviceAccount"]
        body["serviceAccount"] = {"email": account["email"], "scope": account.get("scopes", [])}
    if "dataDisks" in inputs:
        body["dataDisks"] = [{"mode": "READ_WRITE", **each} for each in inputs["dataDisks"]]
    return body


def _queued(inputs: Inputs) -> Body:
    specs = inputs.get("tpu", {}).get("nodeSpecs", ())
    return {"tpu": {"nodeSpec": [{**spec, "nodeId": spec.get("nodeId", inputs["name"])} for spec in specs]}}


def _bucket(inputs: Inputs) -> Body:
    names = ("storageClass", "versioning", "labels", "autoclass", "hierarchicalNamespace", "rpo", "cors")
    body = {key: inputs[key] for key in names if key in inputs}
    body["location"] = inputs["location"].upper()
    access = {"publicAccessPrevention": inputs.get("publicAccessPrevention", "inherited")}
    uniform = {"enabled": inputs.get("uniformBucketLevelAccess", False)}
    body["iamConfiguration"] = {"uniformBucketLevelAccess": uniform, **access}
    if "softDeletePolicy" in inputs:
        body["softDeletePolicy"] = {key: str(value) for key, value in inputs["softDeletePolicy"].items()}
    if "lifecycleRules" in inputs:
        body["lifecycle"] = {"rule": [_rule(each) for each in inputs["lifecycleRules"]]}
    return body


def _rule(rule: Inputs) -> Body:
    renamed = {
        "matchesPrefixes": "matchesPrefix",
        "matchesSuffixes": "matchesSuffix",
        "numNewerVersions": "numNewerVersions",
    }
    condition = {renamed.get(key, key): value for key, value in rule["condition"].items() if key != "withState"}
    state = rule["condition"].get("withState")
    live = {"isLive": state == "LIVE"} if state in ("LIVE", "ARCHIVED") else {}
    return {"action": rule["action"], "condition": {**condition, **live}}


def _plain(inputs: Inputs) -> Body:
    return _kept(inputs)


_BODIES: Final[Mapping[str, Callable[[Inputs], Body]]] = {
    "gcp:compute/address:Address": _plain,
    "gcp:compute/disk:Disk": _disk,
    "gcp:compute/instance:Instance": _instance,
    "gcp:compute/instanceGroupManager:InstanceGroupManager": _group,
    "gcp:compute/instanceTemplate:InstanceTemplate": _template,
    "gcp:compute/router:Router": _plain,
    "gcp:compute/routerNat:RouterNat": _plain,
    "gcp:compute/snapshot:Snapshot": _snapshot,
    "gcp:storage/bucket:Bucket": _bucket,
    "gcp:tpu/v2QueuedResource:V2QueuedResource": _queued,
    "gcp:tpu/v2Vm:V2Vm": _node,
}
