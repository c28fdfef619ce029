"""How long the audit of a large project takes from the loopback Google Cloud: `python -m tests.bench.audit [-n DISKS]`.

The server is a process of its own. Prints seconds, CPU seconds, the peak of memory, API calls and points of (a) the
packaged client in a plain loop over the same pages of the three metrics, (b) the record, (c) the record, judged,
(d) the same, written to a file and read again, and judged.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from policies.audit.record import Part

Measure: TypeAlias = tuple[Any, int, Mapping[str, int], str]
"""The record, its points, calls by method, and what else is to be said."""
ROOT = Path(__file__).parents[2]
NOW = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)
ZONE = "us-central1-b"
PER_MACHINE = 4
LOOP, RECORD, VERDICTS, REPLAY = "plain loop", "record", "record and verdicts", "replay of the file"
BURSTS = {"level": 0, "bursts": [{"at": "now-7d", "minutes": 10, "level": 1800, "every_hours": 6}]}
TRAFFIC = (0, 40, 300, {"level": 20, "hours": {"8-16": 900}}, 2300)
"""MiB/s of the volumes, in turn: idle, too fast by far, too fast, by day only, as it should be."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--disks", type=int, default=10_000, help="volumes of the project (default 10,000)")
    parser.add_argument("-b", "--bursty", type=int, default=50, help="of them, read in bursts (default 50)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=3, metavar=("WHAT", "ENDPOINT", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.disks, options.bursty)
    elif options.measure:
        print(json.dumps(measured(*options.measure)))
    else:
        report(options.disks, options.bursty)


def report(disks: int, bursty: int) -> None:
    """Runs each way in a process of its own, against the same server."""
    print(f"{disks:,} volumes, a week by the hour; {bursty:,} of them are read in bursts, which only minutes show")
    with server(disks, bursty) as endpoint, tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder, "week.json"))
        for what in (LOOP, RECORD, VERDICTS, REPLAY):
            command = [sys.executable, "-m", "tests.bench.audit", "--measure", what, endpoint, place]
            done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
            found = json.loads(done.stdout)
            calls = sum(found["calls"].values())
            spent = f"{found['seconds']:6.1f} s  {found['cpu']:6.1f} CPU s  peak {found['peak_mib']:5,.0f} MiB"
            print(f"  {what:20} {spent}  {calls:5,} calls  {found['points']:10,} points  {found['said']}")
            if what == RECORD:
                counts = found["calls"]
        print("  calls: " + ", ".join(f"{method} {count}" for method, count in counts.items()))


@contextlib.contextmanager
def server(disks: int, bursty: int) -> Iterator[str]:
    """The loopback Google Cloud in a process of its own; gives its endpoint."""
    command = [sys.executable, "-m", "tests.bench.audit", "--serve", "-n", str(disks), "-b", str(bursty)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def serve(disks: int, bursty: int) -> None:
    """Serve a world with so many volumes until the other side goes away."""
    from tests.google_cloud.server import served
    from tests.google_cloud.world import World

    world = World(now=NOW)
    fill(world, disks, bursty)
    with served(world) as endpoint:
        print(endpoint, flush=True)
        sys.stdin.read()


def fill(world: Any, disks: int, bursty: int) -> None:
    """Machines with four volumes each."""
    for machine in range(-(-disks // PER_MACHINE)):
        numbers = range(machine * PER_MACHINE, min(disks, (machine + 1) * PER_MACHINE))
        attached = [{"source": f"disk-{number:06}", "deviceName": f"disk-{number:06}"} for number in numbers]
        item = world.add(
            Part.INSTANCES, name=f"vm-{machine:06}", zone=ZONE, machineType="n2-standard-8", disks=attached
        )
        for number in numbers:
            name = f"disk-{number:06}"
            world.add(
                Part.DISKS,
                name=name,
                zone=ZONE,
                type="hyperdisk-ml",
                sizeGb="500",
                provisionedThroughput="2400",
                accessMode="READ_ONLY_MANY",
                users=[item["selfLink"]],
            )
            moves = BURSTS if number < bursty else TRAFFIC[number % len(TRAFFIC)]
            world.observe("traffic", instance=item["name"], device=name, read=moves)


def measured(what: str, endpoint: str, place: str) -> dict[str, Any]:
    """Seconds, memory, calls and points of one way."""
    began, cpu = time.perf_counter(), time.process_time()
    record, points, counts, said = WAYS[what](endpoint, place)
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    peak = re.search(r"VmHWM:\s+([0-9]+)", Path("/proc/self/status").read_text())
    assert peak is not None
    if what == VERDICTS:
        said += f"; {_written(record, place)}"
    return {
        "seconds": seconds,
        "cpu": spent,
        "peak_mib": int(peak[1]) / 1024,
        "calls": counts,
        "points": points,
        "said": said,
    }


def plain_loop(endpoint: str, _: str) -> Measure:
    """What anybody would write: the pages of the same queries, each point looked at, nothing kept but a sum."""
    from policies.audit.live import metrics
    from policies.audit.live.access import Access, Calls, Clients
    from policies.audit.record import Metric
    from tests.google_cloud.world import PROJECT

    calls = Calls()
    clients = Clients(Access(endpoint=endpoint), calls)
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
    return None, points, calls.counts(), ""


def recorded(endpoint: str, _: str) -> Measure:
    """The record of the project."""
    found = _collected(endpoint)
    return found.record, _points(found.record), found.calls, ""


def judged(endpoint: str, _: str) -> Measure:
    """The record and its verdicts."""
    found = _collected(endpoint)
    return found.record, _points(found.record), found.calls, _verdicts(found.record)


def replayed(_: str, place: str) -> Measure:
    """The verdicts of the file."""
    from policies.audit.files.record_file import read_record

    record = read_record(place)
    return record, _points(record), {}, _verdicts(record)


def _collected(endpoint: str) -> Any:
    from policies.audit.judge import minute_candidates
    from policies.audit.live.access import Access
    from policies.audit.live.recording import collect
    from policies.audit.terms import Terms
    from tests.google_cloud.world import PROJECT

    access = Access(endpoint=endpoint)
    return collect(access, PROJECT, Terms(), lambda _: None, now=NOW, candidates=minute_candidates)


def _verdicts(record: Any) -> str:
    from policies.audit.judge import judge
    from policies.audit.terms import Terms
    from policies.prices.book import shipped_book

    audit = judge(record, Terms(), shipped_book(), NOW.date())
    kinds = Counter(verdict.kind.value for verdict in audit.verdicts)
    return f"{audit.waste.monthly:,.2f} a month: " + ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())


def _written(record: Any, place: str) -> str:
    from policies.audit.files.record_file import write_record

    began = time.perf_counter()
    with Path(place).open("w", encoding="utf-8") as stream:
        write_record(record, stream)
    return f"then {Path(place).stat().st_size / 2**20:,.0f} MiB written in {time.perf_counter() - began:.1f} s"


def _points(record: Any) -> int:
    return sum(len(series) for lines in record.metrics.values() for series in lines)


WAYS: Mapping[str, Callable[[str, str], Measure]] = {
    LOOP: plain_loop,
    RECORD: recorded,
    VERDICTS: judged,
    REPLAY: replayed,
}

if __name__ == "__main__":
    main()
