"""`spotrail audit --plan` and `--apply`: what is written, shown, asked, done, refused, and finished after a kill."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.audit.record import Part
from policies.audit.remedies.hands import GoogleHands
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.server import served
from tests.google_cloud.world import World
from tests.scripts.audit_project import AT, OURS, ZONE, done, furnished, live, reader, volume
from tests.scripts.conftest import ROOT, Command

BOTH = ["llama-old", "serve"]
SPOTRAIL = (sys.executable, "-c", "from scripts.cli import main; main()")


@pytest.fixture
def world() -> World:
    return furnished()


@pytest.fixture
def endpoint(world: World) -> Iterator[str]:
    with served(world) as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process an operation is looked at again at once, not after a second."""
    monkeypatch.setitem(GoogleHands.__init__.__kwdefaults__, "poll_s", 0.01)


@pytest.fixture
def plan(spotrail: Command, endpoint: str, tmp_path: Path) -> str:
    """The plan for the small project: a volume is deleted after a snapshot, and the throughput of another lowered."""
    path = tmp_path / "remedies.json"
    assert spotrail(*live(endpoint, "--plan", str(path))).returncode == 3
    return str(path)


def changes(world: World) -> dict[str, int]:
    """How often something was changed, by method."""
    quiet = ("get", "list", "aggregatedList", "wait")
    return {name: count for name, count in world.counts().items() if name.rpartition(".")[2] not in quiet}


def names(world: World, part: Part) -> list[str]:
    return [item["name"] for item in world.items(part)]


def ended(world: World) -> bool:
    """Whether the world is as the plan wants it."""
    (snapshot,) = world.items(Part.SNAPSHOTS)
    return (
        names(world, Part.DISKS) == ["serve"]
        and world.named(Part.DISKS, "serve")["provisionedThroughput"] == "400"
        and (snapshot["status"], snapshot["sourceDisk"].rpartition("/")[2]) == ("READY", "llama-old")
    )


ONCE = {"compute.snapshots.insert": 1, "compute.disks.delete": 1, "compute.disks.update": 1}


def test_a_plan_is_written_shown_and_done_once(spotrail: Command, world: World, endpoint: str, plan: str) -> None:
    shown = spotrail("audit", "--from", plan)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(
        " Remedies: 2 in 3 steps, saving 1,680.40 /month, of what was seen 2026-11-29 12:00Z"
    )
    assert "   1. take the snapshot spotrail-llama-old-" in shown.stdout
    assert "   2. delete llama-old; its snapshot keeps the data\n" in shown.stdout
    assert "also in Pulumi.dev.yaml: set spotrail:model.throughput to 400" in shown.stdout
    assert "old-head: it is not labelled managed-by=spotrail; name it with --resource to touch it" in shown.stdout
    assert changes(world) == {}
    first = spotrail(*done(endpoint, plan, "--yes"))
    assert (first.returncode, first.stdout) == (0, "")
    assert first.stderr.endswith("\n 3 done\n")
    assert ended(world)
    assert changes(world) == ONCE
    second = spotrail(*done(endpoint, plan, "--yes"))
    assert second.returncode == 0
    assert second.stderr.endswith("\n 3 already so\n")
    assert changes(world) == ONCE
    left = spotrail(*live(endpoint, "--apply", "--yes"))
    assert left.returncode == 3  # the address, which nobody named
    assert "Remedies: nothing to do" in left.stderr
    assert changes(world) == ONCE


def test_the_plan_goes_to_a_file_or_to_standard_output(spotrail: Command, endpoint: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    ran = spotrail(*live(endpoint, "--plan", "-", "--format", "json", "-o", str(report)))
    assert json.loads(ran.stdout)["schema"] == "spotrail.remedies/1"
    assert json.loads(report.read_text())["schema"] == "spotrail.audit/1"
    written = tmp_path / "remedies.json"
    written.write_text(ran.stdout)
    text = tmp_path / "remedies.txt"
    shown = spotrail("audit", "--from", str(written), "--output", str(text))
    assert (shown.returncode, shown.stdout) == (0, "")
    assert text.read_text().startswith(" Remedies: 2 in 3 steps")


def test_from_the_live_project_or_a_record_the_same_is_done(
    spotrail: Command, world: World, endpoint: str, tmp_path: Path
) -> None:
    week = str(tmp_path / "week.json")
    assert spotrail(*live(endpoint, "--record", week)).returncode == 3
    ran = spotrail(*done(endpoint, week, "--yes", "--format", "json", "-o", str(tmp_path / "report.json")))
    assert (ran.returncode, ran.stdout) == (0, "")
    assert ended(world)


@pytest.mark.parametrize(
    ("option", "code", "kept"),
    [
        (("--resource", "serve"), 0, ["llama-old", "serve"]),
        (("--resource", f"{AT}/disks/llama-old"), 0, ["serve"]),
        (("--resource", f"https://www.googleapis.com/compute/v1/{AT}/disks/llama-old"), 0, ["serve"]),
        (("--stack", "prod"), 3, ["llama-old", "serve"]),
        (("--stack", "dev"), 0, ["serve"]),
    ],
)
def test_only_what_is_chosen_is_touched(
    spotrail: Command, world: World, endpoint: str, option: tuple[str, ...], code: int, kept: list[str]
) -> None:
    ran = spotrail(*live(endpoint, *option, "--apply", "--yes"))
    assert ran.returncode == code, ran.stderr
    assert names(world, Part.DISKS) == kept


def test_what_is_not_ours_or_protected_is_touched_by_its_name_only(
    spotrail: Command, world: World, endpoint: str
) -> None:
    volume(world, "kept", labels={**OURS, "protect": "true"})
    assert spotrail(*live(endpoint, "--apply", "--yes")).returncode == 0
    assert names(world, Part.DISKS) == ["kept", "serve"]
    assert names(world, Part.ADDRESSES) == ["old-head"]
    named = spotrail(*live(endpoint, "--apply", "--yes", "--resource", "kept", "--resource", "old-head"))
    assert named.returncode == 0, named.stderr
    assert names(world, Part.DISKS) == ["serve"]
    assert names(world, Part.ADDRESSES) == []


def test_the_snapshot_before_a_deletion_is_kept_by_the_audits_to_come(
    spotrail: Command, world: World, endpoint: str, plan: str
) -> None:
    assert spotrail(*done(endpoint, plan, "--yes")).returncode == 0
    (snapshot,) = world.items(Part.SNAPSHOTS)
    snapshot["creationTimestamp"] = "2026-10-01T00:00:00.000Z"  # as if it had been there for two months
    spotrail(*live(endpoint, "--apply", "--yes"))
    assert names(world, Part.SNAPSHOTS) == [snapshot["name"]]
    # Somebody took the label away: it is an orphan then, and still goes only when it is named.
    del snapshot["labels"]["managed-by"], snapshot["labels"]["protect"]
    spotrail(*live(endpoint, "--apply", "--yes"))
    assert names(world, Part.SNAPSHOTS) == [snapshot["name"]]
    assert spotrail(*live(endpoint, "--apply", "--yes", "--resource", snapshot["name"])).returncode == 0
    assert names(world, Part.SNAPSHOTS) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--resource", "lama-old"), '--resource "lama-old": the audit has no remedy .* Did you mean llama-old'),
        (("--schedule", "serve"), "it must be VOLUME=TEXT"),
        (("--schedule", "serve=always"), "it has four parts"),
        (("--schedule", "serve=mon-fri 08:00-12:00 UTC 1200"), "two changes lie 4:00:00 apart"),
        (("--schedule", "serv=mon-fri 08:00-18:00 UTC 1200"), "no volume .* has that name. Did you mean serve"),
        (("--schedule", "serve=mon-fri 08:00-18:00 UTC 1", "--schedule", "serve=mon-fri 08:00-18:00 UTC 2"),
         "is given twice"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned(
    spotrail: Command, endpoint: str, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    ran = spotrail(*live(endpoint, *arguments, "--plan", str(tmp_path / "remedies.json")))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert re.search(said, " ".join(ran.stderr.split())), ran.stderr
    assert not (tmp_path / "remedies.json").exists()


def test_a_schedule_sets_what_is_due_now(spotrail: Command, world: World, endpoint: str) -> None:
    """The clock of the world says Sunday noon."""
    schedule = ("--schedule", "serve=mon-fri 08:00-18:00 UTC 1200", "--resource", "serve")
    ran = spotrail(*live(endpoint, *schedule, "--apply", "--yes"))
    assert ran.returncode == 0, ran.stderr
    assert "by the clock, mon-fri 08:00-18:00 UTC 1200, else 400: now 400" in " ".join(ran.stdout.split())
    assert world.named(Part.DISKS, "serve")["provisionedThroughput"] == "400"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--resource", "serve"), "--resource means nothing"),
        (("--stack", "dev"), "--stack means nothing"),
        (("--format", "json"), "--format means nothing"),
        (("--window", "8d"), "--window means nothing"),
        (("--plan", "other.json"), "--plan means nothing"),
        (("--schedule", "serve=mon-fri 08:00-18:00 UTC 1200"), "--schedule means nothing"),
        (("--output", "x.txt"), "--output means nothing"),
    ],
)
def test_a_plan_is_done_as_it_is(
    spotrail: Command, world: World, endpoint: str, plan: str, option: tuple[str, ...], said: str
) -> None:
    ran = spotrail(*done(endpoint, plan, "--yes", *option), cwd=Path(plan).parent)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert changes(world) == {}


def edited(plan: str, change: Any) -> None:
    document = json.loads(Path(plan).read_text())
    change(document)
    Path(plan).write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda it: it.pop("measures"), "measures is missing"),
        (lambda it: it.update(recorded_at="2026-11-20T12:00:00Z"), "9 days ago"),
        (lambda it: it.update(recorded_at="2026-12-20T12:00:00Z"), "in the future"),
        (lambda it: it.update(project="other"), "is of another project than the plan"),
        (lambda it: it["measures"][0]["steps"].pop(0), ""),
        (lambda it: it["measures"][0]["steps"][1].update(requires=[]), "no longer say which llama-old is meant"),
        (lambda it: it["measures"][0]["steps"][1].update(resource="b/../x"), "names no resource"),
    ],
)
def test_a_plan_that_is_damaged_or_old_changes_nothing(
    spotrail: Command, world: World, endpoint: str, plan: str, change: Any, said: str
) -> None:
    edited(plan, change)
    ran = spotrail(*done(endpoint, plan, "--yes"))
    assert names(world, Part.DISKS) == ["llama-old", "serve"]
    assert "compute.disks.delete" not in changes(world)
    assert said in ran.stderr
    assert ran.returncode == (2 if said else 4)


def test_a_cut_plan_is_refused(spotrail: Command, plan: str) -> None:
    Path(plan).write_text(Path(plan).read_text()[:-40])
    ran = spotrail("audit", "--from", plan)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {plan}: is no JSON")


def test_without_a_terminal_nothing_is_done(spotrail: Command, world: World, endpoint: str, plan: str) -> None:
    ran = spotrail(*done(endpoint, plan))
    assert ran.returncode == 2
    assert "nobody is there to answer" in ran.stderr
    assert changes(world) == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"users": ["reader"]}, "users is"),
        ({"id": "77"}, "id is 77"),
        ({"lastAttachTimestamp": "2026-11-29T11:59:00Z", "lastDetachTimestamp": "2026-11-29T12:00:00Z"}, "lastAttach"),
    ],
)
def test_a_world_that_has_changed_since_is_left_alone(
    spotrail: Command, world: World, endpoint: str, plan: str, change: dict[str, Any], said: str
) -> None:
    disk = world.named(Part.DISKS, "llama-old")
    if "users" in change:
        change = {"users": [f"https://www.googleapis.com/compute/v1/{AT}/instances/reader"]}
    disk.update(change)
    ran = spotrail(*done(endpoint, plan, "--yes"))
    assert ran.returncode == 4
    assert f"refused: the world has changed: llama-old: {said}" in " ".join(ran.stderr.split())
    assert names(world, Part.DISKS) == ["llama-old", "serve"]
    assert names(world, Part.SNAPSHOTS) == []
    assert world.named(Part.DISKS, "serve")["provisionedThroughput"] == "400"  # its own measure goes on


def test_a_call_that_fails_is_told_and_exits_5(spotrail: Command, world: World, endpoint: str, plan: str) -> None:
    world.fail(Fault(kind=FaultKind.FAILED_OPERATION, method="compute.snapshots.insert"))
    ran = spotrail(*done(endpoint, plan, "--yes"))
    assert ran.returncode == 5
    assert "✗ take the snapshot" in ran.stderr
    assert names(world, Part.DISKS) == ["llama-old", "serve"]


def test_a_second_change_within_six_hours_is_refused_by_the_cloud_and_told(
    spotrail: Command, world: World, endpoint: str, plan: str
) -> None:
    world.throughput_changed[f"{AT}/disks/serve"] = world.now
    ran = spotrail(*done(endpoint, plan, "--yes"))
    assert ran.returncode == 5
    assert "once in 6 hours" in " ".join(ran.stderr.split())


def test_where_no_cloud_answers(spotrail: Command, plan: str) -> None:
    ran = spotrail(*done("http://127.0.0.1:9", plan, "--yes"))
    assert (ran.returncode, ran.stdout) == (5, "")
    assert "nothing answers there" in ran.stderr


def answered(arguments: tuple[str, ...], answers: str) -> tuple[int, str]:
    """The command on a terminal on which somebody types these answers; its exit code and what it showed."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(ROOT)
        os.environ["TERM"] = "xterm"
        os.execv(SPOTRAIL[0], [*SPOTRAIL, *arguments])
    written, waiting, patience = b"", list(answers), 12
    while True:
        if not select.select([terminal], [], [], 5)[0]:
            patience -= 1
            if patience == 0:
                os.kill(process, signal.SIGKILL)
            elif not waiting and answers[-1] < " ":
                # readline does not hear a Ctrl-C that comes between its prompt and its wait; a person presses again.
                os.write(terminal, answers[-1].encode())
            continue
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # how a terminal on Linux says that the other side has ended
            break
        written += part
        if waiting and written.count(b"[y/N]") > len(answers) - len(waiting):
            answer = waiting.pop(0)
            os.write(terminal, (answer if answer < " " else f"{answer}\n").encode())
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), written.decode()


@pytest.mark.parametrize(
    ("answers", "code", "disks", "throughput"),
    [
        ("yyy", 0, ["serve"], "400"),
        ("ny", 4, ["llama-old", "serve"], "400"),
        ("ynn", 4, ["llama-old", "serve"], "2070"),
    ],
)
def test_each_step_is_asked_for_on_a_terminal(
    world: World, endpoint: str, plan: str, answers: str, code: int, disks: list[str], throughput: str
) -> None:
    ended_with, said = answered(done(endpoint, plan), answers)
    assert ended_with == code, said
    assert said.count("[y/N]") == len(answers)
    assert "take the snapshot" in said
    assert names(world, Part.DISKS) == disks
    assert world.named(Part.DISKS, "serve")["provisionedThroughput"] == throughput
    assert "Traceback" not in said


def test_who_stops_it_is_told_how_to_go_on(world: World, endpoint: str, plan: str) -> None:
    ended_with, said = answered(done(endpoint, plan), "y\x03")
    assert ended_with == 130, said
    assert "the same command again does the rest" in said
    assert names(world, Part.DISKS) == BOTH
    assert len(names(world, Part.SNAPSHOTS)) == 1
    assert "Traceback" not in said


def start(endpoint: str, plan: str) -> subprocess.Popen[str]:
    """The plan is being done by a process of its own."""
    return subprocess.Popen(
        [*SPOTRAIL, *done(endpoint, plan, "--yes")],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(world: World, method: str) -> None:
    deadline = time.monotonic() + 60
    while not world.counts()[method]:
        assert time.monotonic() < deadline, f"nobody called {method}"
        time.sleep(0.005)


@pytest.mark.parametrize("method", ["compute.disks.get", *ONCE])
def test_a_process_that_is_killed_and_run_again_ends_in_the_same_world(
    spotrail: Command, world: World, endpoint: str, plan: str, method: str
) -> None:
    world.operations.polls = 4
    process = start(endpoint, plan)
    wait_for(world, method)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    again = spotrail(*done(endpoint, plan, "--yes"))
    assert again.returncode == 0, again.stderr
    assert ended(world)
    assert changes(world)["compute.disks.delete"] == 1
    assert spotrail(*done(endpoint, plan, "--yes")).returncode == 0
    assert ended(world)


def test_two_processes_that_do_the_same_plan_end_in_the_same_world(world: World, endpoint: str, plan: str) -> None:
    both = [start(endpoint, plan) for _ in range(2)]
    said = [process.communicate(timeout=120)[1] for process in both]
    assert ended(world), said
    assert len(names(world, Part.SNAPSHOTS)) == 1
    assert not any("Traceback" in text for text in said)
    assert 0 in {process.returncode for process in both}
    assert {process.returncode for process in both} <= {0, 4, 5}


def test_a_volume_of_many_readers_is_not_lowered_below_what_google_takes(
    spotrail: Command, world: World, endpoint: str
) -> None:
    """30 readers: at least 20 MiB/s for each of them, 600 in all. The loopback cloud refuses less."""
    readers = [f"reader-{number}" for number in range(30)]
    volume(world, "shared", users=readers)
    for name in readers:
        reader(world, name, "shared", read=5)
    ran = spotrail(*live(endpoint, "--apply", "--yes", "--resource", "shared"))
    assert ran.returncode == 0, ran.stderr
    assert world.named(Part.DISKS, "shared")["provisionedThroughput"] == "600"


def test_a_volume_of_two_zones_is_kept_in_a_snapshot_of_its_region(
    spotrail: Command, world: World, endpoint: str
) -> None:
    zones = [f"projects/acme-tpu-dev/zones/{zone}" for zone in (ZONE, "us-central1-c")]
    world.add(
        Part.DISKS, name="both", region="us-central1", replicaZones=zones, type="hyperdisk-balanced-high-availability",
        sizeGb="100", provisionedThroughput="290", labels=OURS, creationTimestamp="now-60d",
        lastDetachTimestamp="now-27d",
    )  # fmt: skip
    ran = spotrail(*live(endpoint, "--apply", "--yes", "--resource", "both"))
    assert ran.returncode == 0, ran.stderr
    assert "both" not in names(world, Part.DISKS)
    assert world.items(Part.SNAPSHOTS)[0]["storageLocations"] == ["us-central1"]
