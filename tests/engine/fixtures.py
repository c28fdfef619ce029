"""Writes the files of the real CLI that the tests of the readers read: `python -m tests.engine.fixtures`.

One small stack of invented names, planned, brought up, changed in four ways at once, and planned against a policy;
the same stack whose first `up` was killed, and two disks of which one hangs on the other.
Whatever names a place on this machine is taken out; all else is as the CLI wrote it.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.engine.command import decide, look
from tests.engine.interruption import killed
from tests.engine.stand import ROOT, Stand, environment, stand
from tests.engine.walk import written
from tests.google_cloud.server import served
from tests.google_cloud.world import World

FOLDER: Final = ROOT / "tests" / "policies" / "readers" / "fixtures"
PACK: Final = ROOT / "policies" / "pulumi-analyzer-spotrail"
NOW: Final = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)
PROGRAM: Final = """
import pulumi
import pulumi_gcp as gcp

config = pulumi.Config("reef")
later = config.get_bool("later") or False
labels = {"owner": "ada", "env": "dev", "ttl": "7d", "managed-by": "spotrail"}
zone = "us-central1-b"


class Corner(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("reef:sea:Corner", name)
        own = pulumi.ResourceOptions(parent=self)
        self.network = gcp.compute.Network(name, name=name, auto_create_subnetworks=True, opts=own)
        self.disk = gcp.compute.Disk(
            f"{name}-shelf", name=f"{name}-shelf", zone=zone, labels=labels, size=100,
            type="pd-ssd" if later else "pd-balanced",
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        self.register_outputs({"shelf": self.disk.name})


corner = Corner("corner")
volume = gcp.compute.Disk(
    "coral", name="coral", zone=zone, type="hyperdisk-ml", size=200,
    provisioned_throughput=1200 if later else 800, access_mode="READ_ONLY_MANY", labels=labels,
    opts=pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="1h")),
)
pod = gcp.tpu.V2Vm(
    "pod", name="pod", zone=zone, accelerator_type="v6e-8", runtime_version="v2-alpha-tpuv6e", labels=labels,
    scheduling_config=gcp.tpu.V2VmSchedulingConfigArgs(spot=not config.get_bool("dear")),
    network_config=gcp.tpu.V2VmNetworkConfigArgs(network=corner.network.id, enable_external_ips=False),
    data_disks=[gcp.tpu.V2VmDataDiskArgs(source_disk=volume.id, mode="READ_ONLY")],
)
nest = gcp.storage.Bucket(
    "nest", name="reef-nest", location="us-central1", uniform_bucket_level_access=True,
    public_access_prevention="enforced", labels=labels, opts=pulumi.ResourceOptions(protect=True),
)
gcp.monitoring.NotificationChannel(
    "bell", type="slack", labels={"channel_name": "#reef"},
    sensitive_labels=gcp.monitoring.NotificationChannelSensitiveLabelsArgs(
        auth_token=pulumi.Config("spotrail").require_secret("slack_token")
    ),
)
if later:
    gcp.compute.Address("buoy", name="buoy", region="us-central1", labels=labels)
else:
    gcp.compute.Snapshot("photo", name="photo", source_disk=volume.id, zone=zone, labels=labels)
pulumi.export("pod", pod.name)
pulumi.export("token", pulumi.Config("spotrail").require_secret("slack_token"))
"""
CHAIN: Final = """
import pulumi
import pulumi_gcp as gcp

later = pulumi.Config("reef").get_bool("later") or False
zone = "us-central1-b"
shelf = gcp.compute.Disk(
    "shelf", name="shelf", zone=zone, size=100, type="pd-ssd" if later else "pd-balanced",
    opts=pulumi.ResourceOptions(delete_before_replace=True),
)
if not later:
    gcp.compute.Disk("copy", name="copy", zone=zone, size=100, type="pd-balanced", source_disk=shelf.id)
"""
"""A disk that is made anew, the old one first, and its copy, which is no longer wanted then."""
_PLACES: Final = ("sourcePosition", "stackTrace", "path")
"""Members that name a place on the machine."""


def files(made: Stand) -> dict[str, str]:
    """What the CLI writes on the way of the stack, by the names of the fixtures."""
    found = {"preview_create.json": written(made)}
    made.up()
    found["state.json"] = made.export()
    made.cli("config set reef:later true")
    found["preview_change.json"] = written(made)
    found["preview_change_sames.json"] = written(made, "--show-sames")
    found["preview_change_steps.json"] = written(made, "--show-replacement-steps")
    made.up()
    found["preview_still.json"] = written(made)
    found["state_later.json"] = made.export()
    made.cli("config set reef:dear true")
    found["preview_failed.json"] = made.preview_file("--policy-pack", str(PACK)).stdout
    return found


def interrupted_files(made: Stand) -> dict[str, str]:
    """What the CLI keeps of a stack whose `up` was killed while it made the volume, and after another `up`."""
    killed(made, "coral")
    found = {"state_interrupted.json": made.export()}
    made.cli("cancel --yes")
    made.up()
    found["state_resumed.json"] = made.export()
    return found


def chained_files(made: Stand) -> dict[str, str]:
    """A deletion that Pulumi shows as half of a replacement."""
    made.up()
    made.cli("config set reef:later true")
    return {"preview_chain_steps.json": written(made, "--show-replacement-steps")}


def scrubbed(found: Any) -> Any:
    """`found` without what names a place on this machine."""
    if isinstance(found, dict):
        return {key: scrubbed(value) for key, value in found.items() if key not in _PLACES}
    if isinstance(found, list):
        return [scrubbed(value) for value in found]
    return found.partition(" from $PATH")[0] if isinstance(found, str) else found


def main() -> None:
    """Write all of them."""
    decision = decide(look(os.environ))
    if decision.program is None:
        sys.exit(decision.reason)
    clean = environment(decision.program, os.environ)
    os.environ.clear()
    os.environ.update(clean)
    FOLDER.mkdir(exist_ok=True)
    write(files, PROGRAM)
    write(interrupted_files, PROGRAM)
    write(chained_files, CHAIN)


def write(way: Callable[[Stand], dict[str, str]], program: str) -> None:
    """Write the files of one way of a stack."""
    with tempfile.TemporaryDirectory() as folder, served(World(now=NOW)) as world:
        for name, text in way(stand("dev", Path(folder), world, program=program)).items():
            document = json.dumps(scrubbed(json.loads(text)), indent=1, ensure_ascii=False)
            (FOLDER / name).write_text(document + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
