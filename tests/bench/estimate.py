"""What pricing costs: `python tests/bench/estimate.py [-n RESOURCES ...]`.

Builds a stack of many kinds in memory, prices it as a state (one side) and as a preview that changes a tenth of it
(both sides), and writes the change as `spotrail.estimate/1`. Each in a process of its own: seconds of a processor, and
the peak of memory before, after the estimate and after the JSON. readers.py measures what comes first: the files.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from policies.changes import Change, Op, Reading, SourceKind
from policies.estimate.change import ChangeEstimate, estimate_change
from policies.prices.book import PriceBook, shipped_book
from policies.report.json import stack_json
from policies.report.stack import StackReport
from policies.resources import Resource, ResourceOptions, ResourceSet, Value
from policies.usage import Usage

AS_OF = datetime.date(2026, 11, 29)
Made = TypeVar("Made")
KINDS = 10
"""Resources that `group` makes."""


def main() -> None:
    """Measure and print; with `--one` measure one case in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--resources", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--one", choices=("state", "preview"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(*measured(options.one, options.resources[0]))
        return
    for count in options.resources:
        for case in ("state", "preview"):
            command = [sys.executable, __file__, "--one", case, "-n", str(count)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            before, price, priced, write, written, total = done.stdout.split()
            print(
                f"{count:>9,} resources, {case:<8} estimate {float(price):6.2f} s   JSON {float(write):6.2f} s   "
                f"memory {float(before):.0f} -> {float(priced):.0f} -> {float(written):.0f} MiB   total {total}"
            )


def measured(case: str, count: int) -> tuple[float, float, float, float, float, str]:
    """Memory before; seconds and memory of the estimate, then of the JSON; and what came out."""
    reading = {"state": state, "preview": preview}[case](count)
    book = shipped_book()
    before = peak_mib()
    change, price = timed(lambda: estimate_change(reading, Usage(), book, AS_OF))
    priced = peak_mib()
    text, write = timed(lambda: stack_json(report_of(reading, change, book)))
    written = peak_mib()
    found = re.search(r'"monthly": "([0-9.]+)"', text)
    assert found is not None
    return before, price, priced, write, written, found[1]


def state(count: int) -> Reading:
    """What stands."""
    return Reading(kind=SourceKind.STATE, project="bench", stack="dev", after=stack(count))


def preview(count: int) -> Reading:
    """A tenth of the stack changes: every volume asks for more."""
    before, after = stack(count), stack(count, throughput=1200)
    changes = tuple(
        Change(urn=old.urn, op=Op.SAME if old.inputs == new.inputs else Op.UPDATE, before=old, after=new)
        for old, new in zip(before, after, strict=True)
    )
    return Reading(kind=SourceKind.PREVIEW, project="bench", stack="dev", before=before, after=after, changes=changes)


def stack(count: int, throughput: int = 400) -> ResourceSet:
    """`count` resources of ten kinds, with the references that prices follow."""
    return ResourceSet(tuple(made for index in range(count // KINDS) for made in group(str(index), throughput)))


def group(name: str, throughput: int) -> Iterator[Resource]:
    """One of each kind."""
    zone = "us-central1-b"
    volume: Mapping[str, Value] = {"type": "hyperdisk-ml", "provisionedThroughput": throughput, "zone": zone}
    host: Mapping[str, Value] = {
        "name": f"host-{name}",
        "machineType": "ct6e-standard-4t",
        "scheduling": {"provisioningModel": "SPOT"},
        "disks": ({"boot": True, "diskSizeGb": 50, "diskType": "hyperdisk-balanced"},),
    }
    template = made("gcp:compute/instanceTemplate:InstanceTemplate", f"template-{name}", host)
    address = made("gcp:compute/address:Address", f"ip-{name}", {"region": "us-central1", "name": f"ip-{name}"})
    versions: Mapping[str, Value] = {
        "zone": zone,
        "targetSize": 4,
        "versions": ({"instanceTemplate": f"global/instanceTemplates/host-{name}"},),
    }
    boot: Mapping[str, Value] = {"initializeParams": {"type": "pd-balanced", "size": 50}}
    head: Mapping[str, Value] = {
        "machineType": "n2-standard-8",
        "zone": zone,
        "bootDisk": boot,
        "networkInterfaces": ({"accessConfigs": ({"natIp": "known later"},)},),
    }
    snapshot: Mapping[str, Value] = {
        "name": f"snap-{name}",
        "sourceDisk": f"staging-{name}",
        "storageLocations": ("us-central1",),
    }
    yield template
    yield made("gcp:compute/instanceGroupManager:InstanceGroupManager", f"group-{name}", versions)
    staging: Mapping[str, Value] = {"name": f"staging-{name}", "type": "pd-balanced", "size": 200, "zone": zone}
    yield made("gcp:compute/disk:Disk", f"staging-{name}", staging)
    yield made("gcp:compute/snapshot:Snapshot", f"snap-{name}", snapshot)
    yield made("gcp:compute/disk:Disk", f"volume-{name}", {**volume, "snapshot": f"snap-{name}"})
    yield address
    yield made("gcp:compute/instance:Instance", f"head-{name}", head, networkInterfaces=(address.urn,))
    yield made("gcp:storage/bucket:Bucket", f"bucket-{name}", {"location": "us-central1"})
    slice: Mapping[str, Value] = {"acceleratorType": "v6e-8", "zone": zone, "schedulingConfig": {"spot": True}}
    yield made("gcp:tpu/v2Vm:V2Vm", f"slice-{name}", slice)
    yield made("gcp:projects/iAMMember:IAMMember", f"member-{name}", {"role": "roles/storage.objectUser"})


def made(type: str, name: str, inputs: Mapping[str, Value], **joins: tuple[str, ...]) -> Resource:
    """One resource of the stack; keyword arguments are the URNs that an input came from."""
    urn = f"urn:pulumi:dev::bench::{type}::{name}"
    return Resource(urn=urn, type=type, name=name, inputs=inputs, options=ResourceOptions(property_dependencies=joins))


def report_of(reading: Reading, change: ChangeEstimate, book: PriceBook) -> StackReport:
    """What `spotrail estimate` would write."""
    return StackReport(
        project=reading.project,
        stack=reading.stack,
        kind=reading.kind,
        place="bench",
        change=change,
        book_as_of=book.as_of,
        book_sha256=book.sha256,
        as_of=AS_OF,
    )


def timed(work: Callable[[], Made]) -> tuple[Made, float]:
    """What `work` makes, and the seconds of a processor that it takes."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def peak_mib() -> float:
    """The most memory that this process has had, MiB."""
    found = re.search(r"VmHWM:\s+([0-9]+)", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1]) / 1024


if __name__ == "__main__":
    main()
