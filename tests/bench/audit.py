"""How long the audit of a large project takes from the loopback Google Cloud: `python -m tests.bench.audit [-n DISKS]`.

The server is a process of its own. Prints seconds, CPU seconds, the peak of memory, API calls and points of (a) the
packaged client in a plain loop over the same pages of the three metrics, (b) the record, (c) the record, judged.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from policies.audit.record import Part

ROOT = Path(__file__).parents[2]
NOW = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)
PER_MACHINE = 4
TRAFFIC = (0, 40, 300, {"level": 20, "hours": {"8-16": 900}}, 2300)
"""MiB/s of the volumes, in turn: idle, too fast by far, too fast, by day only, as it should be."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--disks", type=int, default=10_000, help="volumes of the project (default 10,000)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "ENDPOINT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.disks)
    elif options.measure:
        print(json.dumps(measured(*options.measure)))
    else:
        report(options.disks)


def report(disks: int) -> None:
    """Runs each way in a process of its own, against the same server."""
    print(f"{disks:,} volumes, a week by the hour")
    with server(disks) as endpoint:
        for what in ("plain loop", "record", "record and verdicts"):
            command = [sys.executable, "-m", "tests.bench.audit", "--measure", what, endpoint]
            done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
            found = json.loads(done.stdout)
            calls = sum(found["calls"].values())
            spent = f"{found['seconds']:6.1f} s  {found['cpu']:6.1f} CPU s  peak {found['peak_mib']:5,.0f} MiB"
            print(f"  {what:20} {spent}  {calls:5,} calls  {found['points']:10,} points  {found['said']}")
        print("  calls: " + ", ".join(f"{method} {count}" for method, count in found["calls"].items()))


@contextlib.contextmanager
def server(disks: int) -> Iterator[str]:
    """The loopback Google Cloud in a process of its own; gives its endpoint."""
    command = [sys.executable, "-m", "tests.bench.audit", "--serve", "-n", str(disks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def serve(disks: int) -> None:
    """Serve a world with so many volumes until the other side goes away."""
    from tests.google_cloud.server import served
    from tests.google_cloud.world import World

    world = World(now=NOW)
    fill(world, disks)
    with served(world) as endpoint:
        print(endpoint, flush=True)
        sys.stdin.read()


def fill(world: Any, disks: int) -> None:
    """Machines with four volumes each."""
    for machine in range(-(-disks // PER_MACHINE)):
        names = [
            f"disk-{number:06}" for number in range(machine * PER_MACHINE, min(disks, (machine + 1) * PER_MACHINE))
        ]
        attached = [{"source": name, "deviceName": name} for name in names]
        item = world.add(
            Part.INSTANCES, name=f"vm-{machine:06}", zone="us-central1-b", machineType="n2-standard-8", disks=attached
        )
        for number, name in enumerate(names, machine * PER_MACHINE):
            world.add(
                Part.DISKS,
                name=name,
                zone="us-central1-b",
                type="hyperdisk-ml",
                sizeGb="500",
                provisionedThroughput="2400",
                accessMode="READ_ONLY_MANY",
                users=[item["selfLink"]],
            )
            world.observe("traffic", instance=item["name"], device=name, read=TRAFFIC[number % len(TRAFFIC)])


def measured(what: str, endpoint: str) -> dict[str, Any]:
    """Seconds, memory, calls and points of one way."""
    from policies.audit.access import Access, Calls, Clients

    access = Access(endpoint=endpoint)
    began, cpu = time.perf_counter(), time.process_time()
    if what == "plain loop":
        calls = Calls()
        points, said = plain_loop(Clients(access, calls)), ""
        counts = calls.counts()
    else:
        points, counts, said = audited(access, judged="verdicts" in what)
    peak = re.search(r"VmHWM:\s+([0-9]+)", Path("/proc/self/status").read_text())
    assert peak is not None
    return {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
        "peak_mib": int(peak[1]) / 1024,
        "calls": counts,
        "points": points,
        "said": said,
    }


def plain_loop(clients: Any) -> int:
    """What anybody would write: the pages of the same queries, each point looked at, nothing kept but a sum."""
    from policies.audit import metrics
    from policies.audit.record import Metric
    from tests.google_cloud.world import PROJECT

    window = metrics.window_before(NOW, datetime.timedelta(days=7))
    points, total = 0, 0.0
    for metric in (Metric.READ_BYTES, Metric.WRITE_BYTES, Metric.MAX_READ_BYTES):
        request = metrics.hourly_request(PROJECT, window, metric)
        clients.asked(metrics.METHOD)
        for page in clients.monitoring.list_time_series(request=request, **clients.how(metrics.METHOD)).pages:
            for series in type(page).pb(page).time_series:
                for point in series.points:
                    total += point.value.int64_value
                    points += 1
            if page.next_page_token:
                clients.asked(metrics.METHOD)
    return points


def audited(access: Any, *, judged: bool) -> tuple[int, dict[str, int], str]:
    """The record of the project, and its verdicts."""
    from policies.audit.judge import judge, minute_candidates
    from policies.audit.recording import collect
    from policies.audit.terms import Terms
    from policies.prices.book import shipped_book
    from tests.google_cloud.world import PROJECT

    terms = Terms()
    found = collect(access, PROJECT, terms, lambda _: None, now=NOW, candidates=minute_candidates)
    points = sum(len(series) for lines in found.record.metrics.values() for series in lines)
    said = ""
    if judged:
        audit = judge(found.record, terms, shipped_book(), NOW.date())
        said = f"{len(audit.verdicts):,} verdicts, {audit.waste.monthly:,.2f} a month"
    return points, dict(found.calls), said


if __name__ == "__main__":
    main()
