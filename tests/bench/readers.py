"""How long large files take, beside plain `json.load` of them: `python tests/bench/readers.py [-n RESOURCES]`.

Writes a preview with so many steps and a state into a temporary folder. Each is loaded by json.load; read; read, priced
and judged; checked by the command from its start to its end, as JSON and as a table into a file; and estimated. All in
processes of their own, once: seconds by the clock and of a processor (a busy machine bends the first), their ratio to
those of json.load, and the peak of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

STACK = "urn:pulumi:bench::wide"
ROOT = f"{STACK}::pulumi:pulumi:Stack::wide-bench"
PROVIDER = f"{STACK}::pulumi:providers:gcp::default_10_2_0::3d1c7a55-6a36-4a0f-9d0e-5b1f1f1d2c3e"
AS_OF = "2026-11-29"
LOADED = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as stream:
    found = json.load(stream)
"""
READ = """
import gc, sys
from policies.readers.source import open_source
gc.disable()
found = open_source(sys.argv[1])
"""
JUDGED = f"""{READ}
import datetime
from policies.judging import stack_report
from policies.prices.book import shipped_book
from policies.usage import Usage
report = stack_report(found, Usage(), shipped_book(), datetime.date.fromisoformat("{AS_OF}"), place="bench")
"""
COMMAND = """
from scripts.cli import main
main()
"""


class Cost(NamedTuple):
    """What one process took."""

    wall: float
    """Seconds by the clock."""
    cpu: float
    """Seconds of a processor."""
    peak: float
    """MiB."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--resources", type=int, default=100_000, help="resources of the state (default 100,000)")
    parser.add_argument("-s", "--steps", type=int, default=1_000, help="steps of the preview (default 1,000)")
    parser.add_argument("--write", choices=("state", "preview"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        document = state_document(options.resources) if options.write == "state" else preview_document(options.steps)
        json.dump(document, sys.stdout)
        return
    with tempfile.TemporaryDirectory() as folder:
        for kind, title in (
            ("preview", f"preview of {options.steps:,} steps"),
            ("state", f"state of {options.resources:,} resources"),
        ):
            place = Path(folder, f"{kind}.json")
            # By a process of its own: what the parent of a process has in memory counts as the child's peak.
            with place.open("wb") as stream:
                subprocess.run([sys.executable, __file__, *sys.argv[1:], "--write", kind], check=True, stdout=stream)
            _measure(title, place)


def _measure(title: str, place: Path) -> None:
    report = ["--as-of", AS_OF, "--quiet", "--output", f"{place}.out"]
    cases = (
        ("json.load", LOADED, [str(place)]),
        ("read", READ, [str(place)]),
        ("read, price and judge", JUDGED, [str(place)]),
        ("spotrail check, JSON", COMMAND, ["check", str(place), "--format", "json", *report]),
        ("spotrail check", COMMAND, ["check", str(place), *report]),
        ("spotrail estimate", COMMAND, ["estimate", str(place), *report]),
    )
    print(f"{title}, {place.stat().st_size / 2**20:,.1f} MiB, from the start of a process to its end")
    base: Cost | None = None
    for name, program, arguments in cases:
        cost = _cost(program, arguments)
        base = base or cost
        print(
            f"  {name:22} {cost.wall:7.2f} s   ({cost.cpu:6.2f} s of a processor, {cost.cpu / base.cpu:5.1f} x "
            f"json.load)   peak {cost.peak:6,.0f} MiB"
        )


def _cost(program: str, arguments: list[str]) -> Cost:
    """What a new interpreter takes for a program; the exit code of a judge is no failure."""
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", program, *arguments])
    _, _, used = os.wait4(child.pid, 0)
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


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
