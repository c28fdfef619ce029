"""Check: inputs against the classes of the SDK and the values that Google takes, and what is filled in.

What is unknown passes. Defaults are noted in `__defaults`, as Pulumi's bridge to Terraform does. Sources of the values
beside each table.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Mapping
from typing import Final

from infra.engine.schema import problems_of
from infra.engine.wire import Wire, is_opaque
from policies.hardware.disks import check_disk
from policies.hardware.zones import is_zone, region_of
from tests.engine.provider.kinds import kind_of
from tests.engine.provider.limits import beyond
from tests.engine.provider.states import class_of, input_names
from tests.engine.provider.values import DEFAULTS, revealed


def _scheduling(token: str) -> dict[str, frozenset[str]]:
    return {
        f"{token}.scheduling.instanceTerminationAction": frozenset({"STOP", "DELETE"}),
        f"{token}.scheduling.onHostMaintenance": frozenset({"MIGRATE", "TERMINATE"}),
        f"{token}.scheduling.provisioningModel": frozenset({"STANDARD", "SPOT", "FLEX_START", "RESERVATION_BOUND"}),
    }


ENUMS: Final[Mapping[str, frozenset[str]]] = {
    "gcp:compute/disk:Disk.accessMode": frozenset({"READ_WRITE_SINGLE", "READ_WRITE_MANY", "READ_ONLY_MANY"}),
    "gcp:compute/instance:Instance.attachedDisks.mode": frozenset({"READ_WRITE", "READ_ONLY"}),
    **_scheduling("gcp:compute/instance:Instance"),
    **_scheduling("gcp:compute/instanceTemplate:InstanceTemplate"),
    "gcp:compute/instanceGroupManager:InstanceGroupManager.updatePolicy.minimalAction": frozenset(
        {"NONE", "REFRESH", "RESTART", "REPLACE"}
    ),
    "gcp:compute/instanceGroupManager:InstanceGroupManager.updatePolicy.type": frozenset(
        {"PROACTIVE", "OPPORTUNISTIC"}
    ),
    "gcp:compute/resourcePolicy:ResourcePolicy.workloadPolicy.type": frozenset(
        {"HIGH_AVAILABILITY", "HIGH_THROUGHPUT"}
    ),
    "gcp:compute/snapshot:Snapshot.snapshotType": frozenset({"STANDARD", "ARCHIVE"}),
    "gcp:monitoring/alertPolicy:AlertPolicy.combiner": frozenset({"AND", "OR", "AND_WITH_MATCHING_RESOURCE"}),
    "gcp:monitoring/alertPolicy:AlertPolicy.severity": frozenset({"CRITICAL", "ERROR", "WARNING"}),
    "gcp:storage/bucket:Bucket.autoclass.terminalStorageClass": frozenset({"NEARLINE", "ARCHIVE"}),
    "gcp:storage/bucket:Bucket.lifecycleRules.action.type": frozenset(
        {"Delete", "SetStorageClass", "AbortIncompleteMultipartUpload"}
    ),
    "gcp:storage/bucket:Bucket.lifecycleRules.condition.withState": frozenset({"LIVE", "ARCHIVED", "ANY"}),
    "gcp:storage/bucket:Bucket.publicAccessPrevention": frozenset({"enforced", "inherited"}),
    "gcp:tpu/v2Vm:V2Vm.dataDisks.mode": frozenset({"READ_WRITE", "READ_ONLY"}),
}
"""Values of texts that are closed sets: documentation of pulumi-gcp 10.2; of accessMode the API's enum."""
ONE_OF: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "gcp:compute/disk:Disk": (("snapshot", "image", "sourceDisk", "sourceInstantSnapshot", "sourceStorageObject"),),
    "gcp:compute/snapshot:Snapshot": (("sourceDisk", "sourceInstantSnapshot"),),
    "gcp:tpu/v2Vm:V2Vm": (("acceleratorType", "acceleratorConfig"), ("networkConfig", "networkConfigs")),
}
"""Inputs of which one excludes the others: documentation of pulumi-gcp 10.2."""
_DEFAULTS: Final[Mapping[str, Mapping[str, Wire]]] = {
    "gcp:compute/address:Address": {"addressType": "EXTERNAL"},
    "gcp:compute/disk:Disk": {"type": "pd-standard"},
    "gcp:compute/instanceGroupManager:InstanceGroupManager": {"waitForInstancesStatus": "STABLE"},
    "gcp:compute/network:Network": {"autoCreateSubnetworks": True},
    "gcp:compute/firewall:Firewall": {"priority": 1000},
    "gcp:storage/bucket:Bucket": {"forceDestroy": False, "storageClass": "STANDARD"},
    "gcp:tpu/v2Vm:V2Vm": {},
}
"""Defaults of the schemas of terraform-provider-google, which the bridge puts into the inputs."""
_LOWER: Final = frozenset({"Network", "Subnetwork", "Router", "RouterNat", "Firewall", "BackendService"})
_LIMITS: Final = {"gcp:storage/bucket:Bucket": 222, "gcp:serviceaccount/account:Account": 30}
_SUFFIX: Final = 7
PLACE: Final = ("project", "zone", "region")
"""What the provider takes from its configuration where a resource leaves it out."""


def failures_of(token: str, inputs: Mapping[str, Wire]) -> Iterator[str]:
    """What is wrong with the inputs of a resource, a sentence each."""
    found = class_of(token)
    if found is None:
        yield f"{token} is not a type of the gcp provider"
        return
    name = f"gcp.{token.split(':')[1].split('/')[0]}.{token.split(':')[2]}"
    yield from problems_of({key: value for key, value in inputs.items() if key != DEFAULTS}, found, name)
    yield from _outside_sets(token, dict(inputs))
    yield from beyond(token, dict(inputs))
    for group in ONE_OF.get(token, ()):
        given = [key for key in group if inputs.get(key) is not None]
        if len(given) > 1:
            yield f'"{given[0]}": conflicts with {", ".join(given[1:])}'
    if token == "gcp:compute/disk:Disk":
        yield from _disk_failures(inputs)


def _outside_sets(path: str, value: Wire) -> Iterator[str]:
    if isinstance(value, list):
        for inner in value:
            yield from _outside_sets(path, inner)
    elif isinstance(value, dict) and not is_opaque(value):
        for key, inner in value.items():
            yield from _outside_sets(f"{path}.{key}", inner)
    elif isinstance(value, str) and path in ENUMS and not is_opaque(value) and value not in ENUMS[path]:
        close = difflib.get_close_matches(value, ENUMS[path], n=1)
        meant = f" Did you mean {close[0]}?" if close else ""
        wanted = ", ".join(sorted(ENUMS[path]))
        yield f'expected {path.partition(".")[2]} to be one of {wanted}, got "{value}".{meant}'


def _disk_failures(inputs: Mapping[str, Wire]) -> Iterator[str]:
    type_ = inputs.get("type")
    if not isinstance(type_, str) or is_opaque(type_) or inputs.get("accessMode") == "READ_ONLY_SINGLE":
        return
    whole = {
        key: value
        for key in ("size", "provisionedThroughput", "provisionedIops")
        if _is_whole(value := inputs.get(key))
    }
    mode = inputs.get("accessMode")
    known = mode if isinstance(mode, str) and not is_opaque(mode) else None
    sizes = {key: int(value) for key, value in whole.items() if isinstance(value, int | float)}
    yield from check_disk(
        type_.rsplit("/", 1)[-1],
        sizes.get("size"),
        sizes.get("provisionedThroughput"),
        sizes.get("provisionedIops"),
        known,
    )


def _is_whole(value: Wire) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def filled(token: str, name: str, seed: bytes, inputs: Mapping[str, Wire], old: Mapping[str, Wire]) -> dict[str, Wire]:
    """The inputs with the name and the defaults that the provider puts in. A name that was made up once stays.

    Raises ValueError where no name can be made.
    """
    found = {key: value for key, value in inputs.items() if key != DEFAULTS}
    defaults = {key: value for key, value in _DEFAULTS.get(token, {}).items() if found.get(key) is None}
    key = "accountId" if token == "gcp:serviceaccount/account:Account" else "name"
    if kind_of(token).named and key in input_names(token) and found.get(key) is None:
        made_up = isinstance(noted := old.get(DEFAULTS), list) and key in noted
        defaults[key] = old[key] if made_up else _autoname(token, key, name, seed, found)
    noted_now: list[Wire] = list[Wire](sorted(defaults))
    return {**found, **defaults, DEFAULTS: noted_now}


def _autoname(token: str, key: str, name: str, seed: bytes, inputs: Mapping[str, Wire]) -> str:
    prefix = revealed(inputs.get("namePrefix"))
    stem = prefix if isinstance(prefix, str) and prefix else f"{name}-"
    type_ = token.rpartition(":")[2]
    made = stem + hashlib.sha256(seed or name.encode()).hexdigest()[:_SUFFIX]
    limit = 63 if type_ in _LOWER else _LIMITS.get(token, 255)
    if len(made) > limit:
        raise ValueError(f"{key} is not set, and {made} is longer than {limit} characters; set {key}")
    return made.lower() if type_ in _LOWER else made


def placed(token: str, inputs: Mapping[str, Wire], config: Mapping[str, str]) -> dict[str, Wire]:
    """The inputs with the project, zone and region that the provider takes from its configuration."""
    found = dict(inputs)
    for key in PLACE:
        if key in input_names(token) and found.get(key) is None and config.get(key):
            found[key] = config[key]
    zone = found.get("zone")
    if found.get("region") is None and "region" in input_names(token) and isinstance(zone, str) and is_zone(zone):
        found["region"] = region_of(zone)
    return found
