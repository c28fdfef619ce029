"""Create, read, update and delete in the loopback Google Cloud, with what Google's provider does besides."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from infra.engine.wire import SECRET_SIGNATURE, SIGNATURE, Wire, secret
from tests.engine.provider import execution
from tests.engine.provider.bodies import body_of
from tests.engine.provider.cloud import Cloud, GoogleError, Item
from tests.engine.provider.differences import same
from tests.engine.provider.faults import FaultKind
from tests.engine.provider.kinds import identity, parts_of, path_of
from tests.engine.provider.serving import HalfMadeError, ProviderError
from tests.engine.provider.states import computed, input_names, observed
from tests.engine.provider.values import DEFAULTS, revealed, text

DISK: Final = "gcp:compute/disk:Disk"
INSTANCE: Final = "gcp:compute/instance:Instance"
GROUP: Final = "gcp:compute/instanceGroupManager:InstanceGroupManager"
NODE: Final = "gcp:tpu/v2Vm:V2Vm"
BUCKET: Final = "gcp:storage/bucket:Bucket"
JOB: Final = "gcp:cloudrunv2/job:Job"
_PREEMPTED: Final[Mapping[str, Mapping[str, str]]] = {
    NODE: {"state": "PREEMPTED", "health": "UNHEALTHY_MAINTENANCE"},
    INSTANCE: {"status": "TERMINATED"},
}
_HOUR: Final = 3600


@final
@dataclass(frozen=True, kw_only=True)
class Update:
    """A change in place."""

    token: str
    id: str
    old: Mapping[str, Wire]
    """The inputs that the resource was made or last changed with."""
    new: Mapping[str, Wire]


def create(
    cloud: Cloud, token: str, urn: str, inputs: Mapping[str, Wire], fault: FaultKind | None
) -> tuple[str, dict[str, Wire]]:
    """Id and outputs. Raises ProviderError, of which HalfMadeError leaves something behind."""
    options = {"machines": "none"} if token == GROUP and fault is FaultKind.NO_CAPACITY else {}
    if not options:
        strike(fault, token, inputs)
    id_, path = _identity(token, urn, inputs)
    clear = _clear(inputs)
    item = cloud.create(path, body_of(token, clear), **options)
    outputs = _outputs(token, id_, path, inputs, item)
    half = _half_made(cloud, token, clear, fault, path)
    if half:
        raise HalfMadeError(half, id_=id_, outputs=outputs, inputs=inputs)
    if token == JOB and (after := cloud.get(path)) is not None:
        outputs = _outputs(token, id_, path, inputs, after)
    return id_, outputs


def _half_made(cloud: Cloud, token: str, clear: Mapping[str, Any], fault: FaultKind | None, path: str) -> str:
    """Why what exists now is not whole; empty where it is."""
    if fault is FaultKind.HALF_CREATED:
        return "Error waiting to create: Error waiting for Creating: timeout while waiting for state to become 'DONE'"
    if token == GROUP and fault is FaultKind.NO_CAPACITY and clear.get("waitForInstances"):
        return f"Error waiting for instances to become stable: {_exhausted(clear['project'], clear['zone'])}"
    if token == JOB and clear.get("runExecutionToken"):
        return _execute(cloud, clear, fault, path)
    return ""


def _execute(cloud: Cloud, job: Mapping[str, Any], fault: FaultKind | None, path: str) -> str:
    """Run the job at `path`; what went wrong, empty where nothing did. The name of an execution outlives its job."""
    try:
        cloud.create(f"{path}/executions/{job['name']}-{job['runExecutionToken']}", {})
    except GoogleError as error:
        return str(error)
    if fault is FaultKind.ENDLESS_EXECUTION:
        time.sleep(_HOUR)
    failed = execution.run(cloud, job, fails=fault is FaultKind.FAILED_EXECUTION)
    cloud.update(path, {"executionCount": 1, "terminalCondition": execution.condition(failed)})
    return failed


def read(
    cloud: Cloud, token: str, id_: str, known: tuple[Mapping[str, Wire], Mapping[str, Wire]], fault: FaultKind | None
) -> tuple[dict[str, Wire], dict[str, Wire]] | None:
    """Outputs and inputs as they are now; None where the resource is gone. `known` is what the state has of both."""
    state, inputs = known
    path = _path(token, id_)
    if fault is FaultKind.PREEMPTED and cloud.get(path) is not None:
        if token not in _PREEMPTED:
            raise ProviderError(f"SPOTRAIL_FAULTS: preempted strikes {', '.join(sorted(_PREEMPTED))}, not {token}")
        cloud.update(path, _PREEMPTED[token])
    item = cloud.get(path)
    if item is None:
        return None
    now = _drifted(token, item, inputs) if inputs else _imported(token, id_, item)
    kept = {key: value for key, value in state.items() if key not in now}
    return {**kept, **_outputs(token, id_, path, now, item)}, now


def _drifted(token: str, item: Item, inputs: Mapping[str, Wire]) -> dict[str, Wire]:
    """The inputs, each as Google has it if that is something else. Labels are only those that the program set."""
    sent = body_of(token, _clear(inputs)) if _is_record(item) else {}
    seen = {**{key: item[key] for key in sent if key in item and key in inputs}, **observed(token, item)}
    found = dict(inputs)
    for key, value in inputs.items():
        if key not in seen or key == "name":
            continue
        real = seen[key]
        if key in ("labels", "metadata") and isinstance(real, dict) and isinstance(revealed(value), dict):
            real = {name: real[name] for name in revealed(value) if name in real}  # type: ignore[union-attr]
        if not same(value, real):
            is_secret = isinstance(value, dict) and value.get(SIGNATURE) == SECRET_SIGNATURE
            found[key] = secret(real) if is_secret else real
    return found


def _is_record(item: Item) -> bool:
    return "path" in item


def _imported(token: str, id_: str, item: Item) -> dict[str, Wire]:
    place: dict[str, Wire] = {key: value for key, value in parts_of(token, id_).items() if key in input_names(token)}
    return {
        **place,
        **{key: value for key, value in observed(token, item).items() if value not in ({}, [])},
        DEFAULTS: [],
    }


def update(cloud: Cloud, change: Update, fault: FaultKind | None) -> dict[str, Wire]:
    """The outputs after it. Only what differs is sent. Raises ProviderError."""
    strike(fault, change.token, change.new)
    path = _path(change.token, change.id)
    before, after = (body_of(change.token, {**_place(change.new), **_clear(side)}) for side in (change.old, change.new))
    sent = {key: after.get(key) for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)}
    if change.token == INSTANCE:
        _allow_stopping(sent, change.new)
        if "disks" in sent:
            sent["disks"] = [disk for disk in after["disks"] if not disk.get("boot")]
    item = cloud.update(path, sent)
    runs = change.token == JOB and bool(sent.get("runExecutionToken"))
    if runs and (failed := _execute(cloud, _clear(change.new), fault, path)):
        raise ProviderError(failed)
    return _outputs(change.token, change.id, path, change.new, item)


def _allow_stopping(sent: Mapping[str, Any], new: Mapping[str, Wire]) -> None:
    stops = sorted({"machineType", "serviceAccounts", "shieldedInstanceConfig", "minCpuPlatform"} & sent.keys())
    if stops and not new.get("allowStoppingForUpdate"):
        raise ProviderError(
            "Changing the machine_type, min_cpu_platform, service_account, enable_display, shielded_instance_config, "
            "scheduling.node_affinities or network_interface.[#d].(network/subnetwork/subnetwork_project) or "
            "advanced_machine_features on a started instance requires stopping it. To acknowledge this, please set "
            "allow_stopping_for_update = true in your config."
        )


def delete(cloud: Cloud, token: str, id_: str, state: Mapping[str, Wire], fault: FaultKind | None) -> None:
    """What the provider forbids by itself is refused first. Raises ProviderError."""
    strike(fault, token, state)
    if (policy := text(state, "deletionPolicy")) == "ABANDON":
        return
    if policy == "PREVENT":
        raise ProviderError(f'cannot destroy {id_} without setting deletion_policy to "DELETE" and applying it')
    if token in (JOB, INSTANCE) and state.get("deletionProtection", token == JOB):
        raise ProviderError(f"cannot destroy {id_} without setting deletion_protection=false and applying it")
    path = _path(token, id_)
    if token == DISK:
        _before_disk(cloud, path, state)
    options = {"force": "true"} if token == BUCKET and state.get("forceDestroy") else {}
    try:
        cloud.delete(path, **options)
    except GoogleError as error:
        if error.code != 404:
            raise


def _before_disk(cloud: Cloud, path: str, state: Mapping[str, Wire]) -> None:
    """A snapshot where one is asked for; then the disk is detached from every machine, as Google's provider does."""
    disk = cloud.get(path)
    if disk is None:
        return
    if state.get("createSnapshotBeforeDestroy"):
        stem = text(state, "createSnapshotBeforeDestroyPrefix") or disk["name"]
        name = f"{stem}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
        cloud.create(f"{path.partition('/zones/')[0]}/global/snapshots/{name}", {"sourceDisk": path})
    for user in disk.get("users", ()):
        machine_path = user[user.index("projects/") :]
        machine = cloud.get(machine_path)
        if machine is not None and "disks" in machine:
            rest = [each for each in machine["disks"] if not each["boot"] and not each["source"].endswith(path)]
            cloud.update(machine_path, {"disks": rest})


def strike(fault: FaultKind | None, token: str, values: Mapping[str, Wire]) -> None:
    """Fail as the fault has it, where it fails before anything is done. Raises ProviderError."""
    if fault is FaultKind.NO_CAPACITY:
        exhausted = _exhausted(text(values, "project"), text(values, "zone"))
        raise ProviderError(f"Error waiting for the resource to create: {exhausted}")
    if fault is FaultKind.QUOTA:
        message = "Quota 'HDML-TOTAL-THROUGHPUT-per-project-region' exceeded. Limit: 0.0"
        raise GoogleError(403, "quotaExceeded", message)
    if fault is FaultKind.NOT_READY:
        raise GoogleError(400, "resourceNotReady", f"The resource that {token} is made from is not ready")
    if fault is FaultKind.HANGS:
        time.sleep(_HOUR)


def _exhausted(project: str, zone: str) -> str:
    return (
        f"The zone 'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the request. "
        "Try a different zone, or try again later. (ZONE_RESOURCE_POOL_EXHAUSTED)"
    )


def _outputs(token: str, id_: str, path: str, inputs: Mapping[str, Wire], item: Item) -> dict[str, Wire]:
    given = {key: value for key, value in inputs.items() if key != DEFAULTS}
    return {**given, **computed(token, id_, path, _clear(inputs), item)}


def _clear(inputs: Mapping[str, Wire]) -> dict[str, Any]:
    return {key: revealed(value) for key, value in inputs.items() if key != DEFAULTS and value is not None}


def _place(inputs: Mapping[str, Wire]) -> dict[str, Any]:
    return {key: revealed(inputs[key]) for key in ("project", "zone", "region") if key in inputs}


def _identity(token: str, urn: str, inputs: Mapping[str, Wire]) -> tuple[str, str]:
    try:
        return identity(token, urn, inputs)
    except ValueError as error:
        raise ProviderError(str(error)) from None


def _path(token: str, id_: str) -> str:
    try:
        return path_of(token, id_)
    except ValueError as error:
        raise ProviderError(str(error)) from None
