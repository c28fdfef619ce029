"""What the Google provider would answer in a preview: the inputs, its defaults where a price hangs on them, names.

The rest of what a provider computes is not known before the resource exists, and is left unknown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, final

from infra.engine.urns import name_of
from infra.engine.wire import Wire
from policies.hardware.disks import DEFAULT_DISK_TYPE
from policies.hardware.machines import BootDiskStatus, boot_disk_verdict
from policies.hardware.zones import is_zone, region_of

PACKAGE: Final = "gcp"

DEFAULT_ACCELERATOR: Final = "v2-8"
"""What the provider takes for a TPU without a type."""
PLACES: Final = ("project", "zone", "region")
"""Where a resource is: what it leaves out, the provider takes from its configuration."""
FILLED: Final = frozenset({"name", "accountId", *PLACES})
"""Inputs that the provider fills in whatever the type, where the type has them."""
SUFFIX_LENGTH: Final = 7
"""Hexadecimal digits at the end of a name that the provider makes up."""


@final
@dataclass(frozen=True, kw_only=True)
class Default:
    """A value that the provider fills in at the top level of a resource."""

    type: str
    """The type token of the resource."""
    key: str
    """The input that it fills, where the program left it out."""
    value: Wire
    """What it fills in."""
    unless: str = ""
    """Another input in whose presence it does not."""
    source: str
    """Where that is written."""


@final
@dataclass(frozen=True, kw_only=True)
class Autoname:
    """How the provider names a resource whose name the program left out."""

    key: str = "name"
    """The input that holds the name."""
    limit: int = 255
    """Most characters of a name, the suffix included."""
    lower: bool = False
    """Whether the logical name is put into lower case."""


DEFAULTS: Final = (
    Default(
        type="gcp:tpu/v2Vm:V2Vm",
        key="acceleratorType",
        value=DEFAULT_ACCELERATOR,
        unless="acceleratorConfig",
        source="pulumi-gcp 10.2, V2Vm.accelerator_type",
    ),
    Default(
        type="gcp:compute/disk:Disk",
        key="type",
        value=DEFAULT_DISK_TYPE,
        source="terraform-provider-google, compute_disk: type",
    ),
    Default(
        type="gcp:compute/regionDisk:RegionDisk",
        key="type",
        value=DEFAULT_DISK_TYPE,
        source="terraform-provider-google, compute_region_disk: type",
    ),
    Default(
        type="gcp:storage/bucket:Bucket",
        key="storageClass",
        value="STANDARD",
        source="terraform-provider-google, storage_bucket: storage_class",
    ),
    Default(
        type="gcp:storage/anywhereCache:AnywhereCache",
        key="ttl",
        value="86400s",
        source="pulumi-gcp 10.2, AnywhereCache.ttl",
    ),
    Default(
        type="gcp:compute/address:Address",
        key="addressType",
        value="EXTERNAL",
        source="pulumi-gcp 10.2, Address.address_type",
    ),
    Default(
        type="gcp:compute/globalAddress:GlobalAddress",
        key="addressType",
        value="EXTERNAL",
        source="pulumi-gcp 10.2, GlobalAddress.address_type",
    ),
    Default(
        type="gcp:compute/instanceGroupManager:InstanceGroupManager",
        key="targetSize",
        value=0,
        source="pulumi-gcp 10.2, InstanceGroupManager.target_size",
    ),
    Default(
        type="gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
        key="targetSize",
        value=0,
        source="pulumi-gcp 10.2, RegionInstanceGroupManager.target_size",
    ),
)

# pulumi-gcp, provider/resources.go: lowercaseAutoName for what ends up in URLs, SetAutonaming(255, "-") for the rest.
_IN_URLS: Final = Autoname(limit=63, lower=True)
AUTONAMES: Final[Mapping[str, Autoname]] = {
    "gcp:compute/backendBucket:BackendBucket": _IN_URLS,
    "gcp:compute/backendService:BackendService": _IN_URLS,
    "gcp:compute/firewall:Firewall": _IN_URLS,
    "gcp:compute/network:Network": _IN_URLS,
    "gcp:compute/router:Router": _IN_URLS,
    "gcp:compute/routerNat:RouterNat": _IN_URLS,
    "gcp:compute/subnetwork:Subnetwork": _IN_URLS,
    "gcp:serviceaccount/account:Account": Autoname(key="accountId", limit=30),
    "gcp:storage/bucket:Bucket": Autoname(limit=222),
}


def answer(
    token: str, urn: str, inputs: Mapping[str, Wire], config: Mapping[str, Wire], has: Collection[str]
) -> dict[str, Wire]:
    """The outputs of a resource in a preview, as far as they are known.

    `config` is the configuration of its provider, `has` those of FILLED that are inputs of its type: what is an
    output only (the name of an alert policy) nobody knows yet. Raises ValueError where the provider cannot name it.
    """
    known = {**inputs}
    if not token.startswith(f"{PACKAGE}:"):
        return known
    for default in DEFAULTS:
        if default.type == token and default.unless not in inputs:
            known.setdefault(default.key, default.value)
    if token in _NESTED:
        _NESTED[token](known)
    known.update(_place(known, config, has))
    how = AUTONAMES.get(token, Autoname())
    if how.key in has and known.get(how.key) is None and known.get("namePrefix") is None:
        known[how.key] = autoname(urn, how)
    return known


def autoname(urn: str, how: Autoname) -> str:
    """The name that the provider would make up, the same each time. Raises ValueError where it would be too long."""
    logical = name_of(urn)
    stem = logical.lower() if how.lower else logical
    name = f"{stem}-{hashlib.sha256(urn.encode()).hexdigest()[:SUFFIX_LENGTH]}"
    if len(name) > how.limit:
        raise ValueError(
            f'{how.key} is not set, and "{logical}" is too long to make a name from: with the suffix of '
            f"{SUFFIX_LENGTH + 1} characters it has {len(name)}, the limit is {how.limit}; set {how.key} or shorten it"
        )
    return name


def _place(known: Mapping[str, Wire], config: Mapping[str, Wire], has: Collection[str]) -> dict[str, Wire]:
    """Project, zone and region that the provider puts where the resource names none."""
    place = {key: config[key] for key in PLACES if config.get(key) is not None}
    zone = known.get("zone") or place.get("zone")
    if "region" not in place and isinstance(zone, str) and is_zone(zone):
        place["region"] = region_of(zone)
    return {key: value for key, value in place.items() if key in has and known.get(key) is None}


def _queued(known: dict[str, Wire]) -> None:
    tpu = known.get("tpu")
    if isinstance(tpu, dict) and isinstance(specs := tpu.get("nodeSpecs"), list):
        known["tpu"] = {**tpu, "nodeSpecs": [_queued_node(spec) for spec in specs]}


def _queued_node(spec: Wire) -> Wire:
    if not isinstance(spec, dict) or not isinstance(node := spec.get("node"), dict):
        return spec
    return {**spec, "node": {"acceleratorType": DEFAULT_ACCELERATOR, **node}}


def _instance(known: dict[str, Wire]) -> None:
    boot = known.get("bootDisk")
    if isinstance(boot, dict) and isinstance(params := boot.get("initializeParams"), dict):
        typed = _with_disk_type(params, "type", known.get("machineType"))
        known["bootDisk"] = {**boot, "initializeParams": typed}


def _template(known: dict[str, Wire]) -> None:
    disks = known.get("disks")
    if isinstance(disks, list):
        known["disks"] = [_template_disk(disk, known.get("machineType")) for disk in disks]


def _template_disk(disk: Wire, machine: Wire) -> Wire:
    if not isinstance(disk, dict) or disk.get("source") is not None or disk.get("type") == "SCRATCH":
        return disk
    return _with_disk_type(disk, "diskType", machine)


def _with_disk_type(disk: dict[str, Wire], key: str, machine: Wire) -> dict[str, Wire]:
    """`disk` with the default type, on the machines that are known to take it; for others nothing is known."""
    if disk.get(key) is not None or not isinstance(machine, str):
        return disk
    takes = boot_disk_verdict(machine, DEFAULT_DISK_TYPE).status is BootDiskStatus.OK
    return {**disk, key: DEFAULT_DISK_TYPE} if takes else disk


_NESTED: Final[Mapping[str, Callable[[dict[str, Wire]], None]]] = {
    "gcp:tpu/v2QueuedResource:V2QueuedResource": _queued,
    "gcp:compute/instance:Instance": _instance,
    "gcp:compute/instanceTemplate:InstanceTemplate": _template,
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate": _template,
}
"""Defaults inside of inputs: the accelerator of a queued node (pulumi-gcp 10.2, V2QueuedResource) and the type of a
boot disk (Compute Engine API, attachedDisk.diskType)."""
