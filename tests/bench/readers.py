"""How long a large file takes to read, beside plain `json.load` of it: `python tests/bench/readers.py [-n RESOURCES]`.

Writes a state and a preview with so many steps into a temporary folder, then reads each in processes of their own and
prints CPU seconds and the peak of memory: (a) `json.load`, (b) the reader, (c) the reader and the estimate.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STACK = "urn:pulumi:bench::wide"
ROOT = f"{STACK}::pulumi:pulumi:Stack::wide-bench"
PROVIDER = f"{STACK}::pulumi:providers:gcp::default_10_2_0::3d1c7a55-6a36-4a0f-9d0e-5b1f1f1d2c3e"

MEASURED = r"""
import re, sys, time
from pathlib import Path
place, what = sys.argv[1:]
if what == "json.load":
    import json
    def run():
        with open(place, encoding="utf-8") as stream:
            return json.load(stream)
else:
    import datetime
    from policies.estimate.engine import estimate
    from policies.prices.book import shipped_book
    from policies.readers.source import open_source
    from policies.usage import Usage
    book = shipped_book()
    def run():
        reading = open_source(place)
        if what == "reader":
            return reading
        today = datetime.date(2026, 11, 29)
        sides = (reading.before, reading.after)
        return reading, [estimate(side, Usage(), book, today) for side in sides if side is not None]
began = time.process_time()
kept = run()
seconds = time.process_time() - began
print(seconds, int(re.search(r"VmHWM:\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--resources", type=int, default=100_000, help="resources of the state (default 100,000)")
    parser.add_argument("-s", "--steps", type=int, default=1_000, help="steps of the preview (default 1,000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        state, preview = Path(folder, "state.json"), Path(folder, "preview.json")
        state.write_text(json.dumps(state_document(options.resources)), encoding="utf-8")
        preview.write_text(json.dumps(preview_document(options.steps)), encoding="utf-8")
        for title, place in (
            (f"state of {options.resources:,} resources", state),
            (f"preview of {options.steps:,} steps", preview),
        ):
            print(f"{title}, {place.stat().st_size / 2**20:,.1f} MiB")
            for what in ("json.load", "reader", "reader and estimate"):
                seconds, peak = _measured(place, what)
                print(f"  {what:20} {seconds:7.2f} s   peak {peak:7,.0f} MiB")


def _measured(place: Path, what: str) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(place), what], check=True, capture_output=True, text=True
    )
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def state_document(count: int) -> dict[str, Any]:
    """A state of the stack, its provider and so many disks, slices and buckets."""
    return {
        "version": 3,
        "deployment": {
            "manifest": {"time": "2026-11-29T10:00:00Z", "magic": "bench", "version": "v3.272.0"},
            "resources": [_stack(), *_records(count)],
        },
    }


def preview_document(count: int) -> dict[str, Any]:
    """A preview in which each of so many resources is updated."""
    return {
        "config": {"gcp:project": "wide-project"},
        "steps": [
            {
                "op": "update",
                "urn": record["urn"],
                "provider": PROVIDER,
                "oldState": record,
                "newState": record | {"inputs": record["inputs"] | {"labels": {"owner": "somebody-else"}}},
                "diffReasons": ["labels"],
                "detailedDiff": {"labels.owner": {"kind": "update", "inputDiff": True}},
            }
            for record in _records(count)
        ],
        "changeSummary": {"update": count},
    }


def _stack() -> dict[str, Any]:
    return {"urn": ROOT, "custom": False, "type": "pulumi:pulumi:Stack"}


def _records(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        kind, inputs = _inputs(number)
        name = f"it-{number:06}"
        outputs = inputs | {
            "creationTimestamp": "2026-10-01T00:00:00.000-07:00",
            "effectiveLabels": inputs["labels"],
            "pulumiLabels": inputs["labels"],
            "selfLink": f"https://www.googleapis.com/compute/v1/projects/wide-project/zones/us-central1-b/x/{name}",
        }
        yield {
            "urn": f"{STACK}::{kind}::{name}",
            "custom": True,
            "id": f"projects/wide-project/zones/us-central1-b/x/{name}",
            "type": kind,
            "inputs": inputs | {"name": name},
            "outputs": outputs | {"name": name},
            "parent": ROOT,
            "dependencies": [ROOT],
            "propertyDependencies": {"zone": [], "labels": []},
            "provider": PROVIDER,
            "created": "2026-10-01T00:00:00Z",
            "modified": "2026-10-01T00:00:00Z",
        }


def _inputs(number: int) -> tuple[str, dict[str, Any]]:
    labels = {"owner": "bench", "env": "bench", "ttl": "7d", "managed-by": "spotrail"}
    if number % 3 == 0:
        disk = {"type": "hyperdisk-ml", "size": 100 + number % 50, "provisionedThroughput": 2400}
        return "gcp:compute/disk:Disk", disk | {"zone": "us-central1-b", "labels": labels}
    if number % 3 == 1:
        slice_ = {"acceleratorType": "v6e-8", "runtimeVersion": "v2-alpha-tpuv6e", "schedulingConfig": {"spot": True}}
        return "gcp:tpu/v2Vm:V2Vm", slice_ | {"zone": "us-central1-b", "labels": labels}
    bucket = {"location": "US-CENTRAL1", "storageClass": "STANDARD", "uniformBucketLevelAccess": True}
    return "gcp:storage/bucket:Bucket", bucket | {"labels": labels, "softDeletePolicy": {"retentionDurationSeconds": 0}}


if __name__ == "__main__":
    main()
