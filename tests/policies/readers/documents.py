"""Documents as Pulumi writes them, in plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STACK = "urn:pulumi:eval::reef"
ROOT = f"{STACK}::pulumi:pulumi:Stack::reef-eval"
GOOGLE = f"{STACK}::pulumi:providers:gcp::default_10_2_0"
PROVIDER = f"{GOOGLE}::6b0f7c1e-8f6e-4a39-9d0c-0d1f5b6c7a88"
DISK = "gcp:compute/disk:Disk"
SMALL = {"name": "coral", "type": "hyperdisk-ml", "size": 100, "provisionedThroughput": 2400, "zone": "us-east5-b"}
LARGE = SMALL | {"size": 140, "provisionedThroughput": 12000}


def urn(name: str, token: str = DISK) -> str:
    """The URN of a resource of the stack `eval` of the project `reef`."""
    return f"{STACK}::{token}::{name}"


def record(name: str, inputs: Mapping[str, Any] = SMALL, token: str = DISK, **more: Any) -> dict[str, Any]:
    """A resource as a state and a preview show it, whose outputs echo its inputs."""
    return {
        "urn": urn(name, token),
        "custom": True,
        "id": f"projects/reef-1/zones/us-east5-b/x/{name}",
        "type": token,
        "inputs": dict(inputs),
        "outputs": dict(inputs),
        "parent": ROOT,
        "provider": PROVIDER,
    } | more


def step(op: str, name: str = "coral", **more: Any) -> dict[str, Any]:
    """A step of a preview; `old` and `new` are the inputs of its two sides, or whole records."""
    sides = {"oldState": more.pop("old", None), "newState": more.pop("new", None)}
    found: dict[str, Any] = {"op": op, "urn": urn(name), "provider": PROVIDER, "detailedDiff": None}
    for key, side in sides.items():
        if side is not None:
            found[key] = side if "urn" in side else record(name, side)
    return found | more


def digest(*steps: Mapping[str, Any], **counted: int) -> dict[str, Any]:
    """`pulumi preview --json`; keyword arguments are Pulumi's count by op, with `_` for `-`."""
    summary = {op.replace("_", "-"): count for op, count in counted.items()}
    return {"config": {"gcp:project": "reef-1"}, "steps": list(steps), "duration": 1, "changeSummary": summary}


def state(*records: Mapping[str, Any], version: int = 3, **deployment: Any) -> dict[str, Any]:
    """`pulumi stack export`: the stack, its provider and `records`."""
    own = {"urn": ROOT, "custom": False, "type": "pulumi:pulumi:Stack"}
    google = {"urn": GOOGLE, "custom": True, "id": PROVIDER.rpartition("::")[2], "type": "pulumi:providers:gcp"}
    manifest = {"time": "2026-11-29T10:00:00Z", "magic": "m", "version": "v3.272.0"}
    return {
        "version": version,
        "deployment": {"manifest": manifest, "resources": [own, google, *records]} | deployment,
    }
