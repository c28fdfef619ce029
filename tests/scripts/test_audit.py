"""`spotrail audit` on the loopback Google Cloud: what it says, how it ends, and what it refuses."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import policies.audit.live.access
from policies.audit.record import Metric, Part
from scripts.cli import run
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.server import served
from tests.google_cloud.world import World
from tests.scripts.audit_project import AT, OURS, WASTE, ZONE, furnished, live, reader, volume
from tests.scripts.conftest import Command, Ran, strictly

GONE = "http://127.0.0.1:9"
"""Where nothing listens."""


@pytest.fixture
def world() -> World:
    return furnished()


@pytest.fixture
def endpoint(world: World) -> Iterator[str]:
    with served(world) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A record of the small project."""
    path = tmp_path_factory.mktemp("audit") / "week.json"
    with served(furnished()) as endpoint:
        assert run(live(endpoint, "--record", str(path), "-o", str(path.with_name("report.txt")))) == 3
    return str(path)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that gives up in a second what Google's would be given minutes for."""
    access = functools.partial(policies.audit.live.access.Access, first_wait_s=0.02, deadline_s=1.0)
    monkeypatch.setattr(policies.audit.live.access, "Access", access)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that asks again at once."""
    access = functools.partial(policies.audit.live.access.Access, first_wait_s=0.02)
    monkeypatch.setattr(policies.audit.live.access, "Access", access)


def verdicts(ran: Ran) -> dict[str, Any]:
    """The verdicts by the last part of their resources."""
    return {each["resource"].rpartition("/")[2]: each for each in strictly(ran.stdout)["verdicts"]}


def test_what_is_wasted_in_strict_json(spotrail: Command, endpoint: str) -> None:
    ran = spotrail(*live(endpoint, "--format", "json"))
    found = strictly(ran.stdout)
    assert (ran.returncode, ran.stderr) == (3, "")
    assert (found["schema"], found["complete"], found["missing"]) == ("spotrail.audit/1", True, [])
    assert found["monthly_waste"] == WASTE
    said = {name: (each["verdict"], each["monthly_waste"]) for name, each in verdicts(ran).items()}
    assert said == {
        "llama-old": ("IDLE_UNATTACHED", "1480.00"),
        "serve": ("OVERPROVISIONED", "200.40"),
        "old-head": ("ORPHANED", "7.30"),
    }
    serve = verdicts(ran)["serve"]
    assert serve["resource"] == f"{AT}/disks/serve"
    assert (serve["remedy"]["kind"], serve["remedy"]["to_mibps"]) == ("lower-throughput", "400")


@pytest.mark.parametrize("form", ["table", "json", "markdown", "html", "csv"])
def test_a_recorded_week_says_the_same_as_the_live_project(
    spotrail: Command, endpoint: str, tmp_path: Path, form: str
) -> None:
    path = tmp_path / "week.json"
    seen = spotrail(*live(endpoint, "--record", str(path), "--format", form))
    again = spotrail("audit", "--from", str(path), "--format", form)
    piped = spotrail("audit", "--from", "-", "--format", form, stdin=path.read_bytes())
    assert (seen.returncode, again.returncode, piped.returncode) == (3, 3, 3)
    texts = {said.stdout.partition("\n Next:")[0].rstrip("\n") for said in (seen, again, piped)}
    assert len(texts) == 1
    assert "1,687.70" in seen.stdout or "1480.00" in seen.stdout
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(again.stdout)))
        assert [row["monthly_waste"] for row in rows] == ["1480.00", "200.40", "7.30"]


def test_a_recorded_week_is_recorded_again_as_it_is(spotrail: Command, week: str, tmp_path: Path) -> None:
    assert spotrail("audit", "--from", week, "--record", str(tmp_path / "again.json")).returncode == 3
    assert (tmp_path / "again.json").read_bytes() == Path(week).read_bytes()


def test_a_record_from_a_pipe(week: str) -> None:
    from tests.scripts.test_process import ROOT, shell

    ran = shell(f"spotrail audit --from <(cat {week}) --format json", ROOT)
    assert (ran.returncode, ran.stderr) == (3, "")
    assert strictly(ran.stdout)["monthly_waste"] == WASTE


def nothing(world: World) -> None:
    for part in Part:
        world.inventory[part].clear()


def unread(world: World) -> None:
    nothing(world)
    volume(world, "blind", users=["blind-0"])
    reader(world, "blind-0", "blind")


def half_seen(world: World) -> None:
    world.fail(Fault(kind=FaultKind.PARTIAL, method="compute.disks.aggregatedList", zone="us-east1-d"))


def forbidden(world: World) -> None:
    world.fail(Fault(kind=FaultKind.FORBIDDEN))


def nobody(world: World) -> None:
    world.fail(Fault(kind=FaultKind.UNAUTHENTICATED))


@pytest.mark.parametrize(("change", "code"), [(nothing, 0), (unread, 4), (half_seen, 4), (forbidden, 5), (nobody, 5)])
@pytest.mark.parametrize("form", ["table", "json"])
def test_each_exit_code(
    spotrail: Command, world: World, endpoint: str, change: Callable[[World], None], code: int, form: str
) -> None:
    change(world)
    ran = spotrail(*live(endpoint, "--format", form))
    assert ran.returncode == code
    assert bool(ran.stdout) is (code != 5)
    assert ran.stderr.startswith("error: ") is (code == 5)
    assert "Traceback" not in ran.stderr
    if code == 4:
        assert ("could not be" in ran.stdout) or ("UNKNOWN" in ran.stdout) or strictly(ran.stdout)["missing"]


def test_an_empty_project_is_said_to_be_one(spotrail: Command, world: World, endpoint: str) -> None:
    nothing(world)
    said = spotrail(*live(endpoint)).stdout
    assert said.startswith(" Idle now: 0.00 USD /month, 0.00 so far ")
    assert "nothing found" in said
    assert "Waste/month" not in said
    assert "remedies" not in said


def test_where_nothing_answers(spotrail: Command) -> None:
    ran = spotrail(*live(GONE))
    assert (ran.returncode, ran.stdout) == (5, "")
    assert ran.stderr == f"error: --endpoint {GONE}: nothing answers there: Connection refused\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Name one of --project ID"),
        (("--project", "p", "--from", "week.json"), "Name one of --project ID"),
        (("--from", "week.json", "--yes"), "--yes answers the questions of --apply"),
        (("--project", "p", "--now", "2026-11-29T00:00:00Z"), "--now is the clock of --endpoint"),
        (("--project", "p", "--endpoint", GONE, "--now", "yesterday"), "is no time"),
        (("--project", "p", "--endpoint", GONE, "--now", "2026-11-29T00:00:00"), "RFC 3339 with its zone"),
        (("--from", "week.json", "--endpoint", GONE), "--from FILE alone asks no cloud"),
        (("--project", "p", "--endpoint", "https://example.com"), "it is the address of a server on this machine"),
        (("--project", "p/q", "--endpoint", GONE), "it is the id of a project"),
        (("--project", "p", "--window", "1h"), "at least 24 hours"),
        (("--project", "p", "--window", "7"), "is no length of time; write it as 7d or 36h"),
        (("--project", "p", "--grace=-1h"), "is no length of time"),
        (("--project", "p", "--per-vm-cap", "0"), "x>=1"),
        (("--project", "p", "--resource", "x"), "--resource chooses what --plan and --apply touch"),
        (("--project", "p", "--stack", "dev"), "--stack chooses what --plan and --apply touch"),
        (("--project", "p", "--apply"), "nobody is there to answer"),
        (("--from", "-", "--apply"), "nobody is there to answer"),
        (("--from", "week.json", "--record", "-"), "--output and --record would both go to standard output"),
        (("--from", "week.json", "--plan", "-", "-o", "-"), "--output and --plan would both go to standard output"),
        (("--from", "week.json", "--plan", "x", "--record", "x"), "--record and --plan are the same file, x"),
        (("--from", "week.json", "--plan", "./week.json"), "--from and --plan are the same file"),
        (("--from", "week.json", "--plan", "no/such/plan.json"), "there is no folder no/such"),
        (("--from", "week.json", "--plan", "."), "names no file"),
        (("--from", "no.json"), "no.json: cannot be read: No such file or directory"),
        (("--from", "."), ".: cannot be read: Is a directory"),
        (("--from", ""), "cannot be read"),
        (("--from", "a\x00b"), "cannot be read"),
        (("--from", "week.json", "--prices", "no.csv"), "does not exist"),
        (("--from", "week.json", "--as-of", "today"), "is not a day"),
        (("--from", "week.json", "--format", "xml"), "is not one of"),
        (("--form", "json"), "No such option"),
        (("--project", "p", "--endpoint", GONE, "--schedule", "x=always"), "it has four parts"),
    ],
)
def test_bad_usage(spotrail: Command, week: str, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "week.json").symlink_to(week)
    ran = spotrail("audit", *arguments, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in " ".join(ran.stderr.split())
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "it is empty"),
        (b"{}", "schema is absent"),
        (b"not json", ""),
        (b"\xff\xfe\x00", ""),
        (b"[" * 100_000, ""),
        (b'{"schema": "spotrail.record/2"}', "this version of spotrail reads spotrail.record/1"),
        (b'{"schema": "spotrail.audit/1"}', "a report, not a record"),
        (b'{"schema": "spotrail.remedies/1"}', "it must be"),
        (b'{"schema": "spotrail.record/1", "project": "p", "recorded_at": "now", "window": {}}', ""),
        (b'{"schema": "spotrail.record/1", "inventory": {"compute.disks": [' + b"1," * 10, "must be a resource"),
        (b'{"schema": "spotrail.record/1", "project": "' + b"p" * 5_000_000, ""),
    ],
)
def test_a_record_that_is_none(spotrail: Command, tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "week.json"
    path.write_bytes(text)
    ran = spotrail("audit", "--from", str(path))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {path}: ")
    assert said in ran.stderr
    assert len(ran.stderr) < 1_000


def test_a_point_that_is_no_number_is_counted_and_not_shown(spotrail: Command, week: str, tmp_path: Path) -> None:
    broken = tmp_path / "week.json"
    text = Path(week).read_text()
    start = text.index('"metrics"')
    value = '"int64Value": "'
    at = text.index(value, start)
    end = text.index('"', at + len(value))
    broken.write_text(f'{text[:at]}"doubleValue": NaN{text[end + 1 :]}')
    ran = spotrail("audit", "--from", str(broken), "--format", "json")
    assert ran.returncode == 3
    assert any("no finite number" in note for note in strictly(ran.stdout)["notes"])
    for form in ("table", "csv", "html", "markdown"):
        assert "nan" not in spotrail("audit", "--from", str(broken), "--format", form).stdout.lower()


def test_another_book_and_another_day(spotrail: Command, week: str, tmp_path: Path) -> None:
    from policies.prices.book import shipped_book

    book = tmp_path / "book.csv"
    shipped = Path("policies/prices/data") / f"{shipped_book().as_of}.csv"
    lines = [line for line in shipped.read_text().splitlines() if "hyperdisk-ml.throughput" not in line]
    book.write_text("\n".join(lines) + "\n")
    ran = spotrail("audit", "--from", week, "--prices", str(book), "--format", "json")
    assert ran.returncode == 3  # the address has its price still
    assert verdicts(ran)["llama-old"]["monthly_waste"] is None
    assert "its price is not known: no on-demand price" in verdicts(ran)["llama-old"]["message"]
    old = spotrail("audit", "--from", week, "--as-of", "2030-01-01", "--format", "json")
    assert any("stale" in note for note in strictly(old.stdout)["notes"])
    assert strictly(old.stdout)["monthly_waste"] == WASTE


def test_the_terms_can_be_changed(spotrail: Command, week: str) -> None:
    ran = spotrail("audit", "--from", week, "--grace", "700h", "--per-vm-cap", "100", "--format", "json")
    assert verdicts(ran)["llama-old"]["verdict"] != "IDLE_UNATTACHED"
    assert verdicts(ran)["serve"]["verdict"] == "UNREACHABLE"


def test_what_is_in_use_is_listed_on_request(spotrail: Command, world: World, endpoint: str) -> None:
    volume(world, "busy", users=["loader"], provisionedThroughput="400")
    reader(world, "loader", "busy", read=390)
    assert "disk busy" not in spotrail(*live(endpoint)).stdout
    said = spotrail(*live(endpoint, "--all")).stdout
    assert "disk busy" in said
    assert "        0.00        0.00  IN_USE" in said


@pytest.mark.parametrize("width", [48, 60, 100, 160])
def test_any_width(spotrail: Command, week: str, width: int) -> None:
    said = spotrail("audit", "--from", week, COLUMNS=str(width)).stdout
    table, _, commands = said.partition("\n Next:")
    assert all(len(line) <= width for line in table.splitlines())
    assert "1,480.00" in table
    assert commands


def test_what_is_to_be_typed_next_can_be_typed(spotrail: Command, endpoint: str, tmp_path: Path) -> None:
    """Each command is typed as it stands, until none is left; the first was given options that later ones need."""
    import shlex

    said = spotrail(*live(endpoint, "--window", "8d", "--schedule", "serve=mon-fri 08:00-18:00 UTC 1200"), cwd=tmp_path)
    tried, codes = set(), {}
    waiting = next_steps(said)
    while waiting:
        line = waiting.pop(0)
        tried.add(line)
        program, *arguments = shlex.split(line)
        assert program == "spotrail"
        if "--apply" in arguments:
            # A record does not say where it is from: in this test not from Google.
            arguments += ["--yes"] if "--endpoint" in arguments else ["--yes", *live(endpoint)[3:7]]
        found = spotrail(*arguments, cwd=tmp_path)
        codes[line] = found.returncode
        assert found.returncode in (0, 3), (line, found.stderr)
        waiting += [step for step in next_steps(found) if step not in tried]
    assert len(codes) >= 4
    assert (tmp_path / "week.json").exists()
    assert [line for line in codes if "--apply" in line]


def next_steps(ran: Ran) -> list[str]:
    return [line.strip() for line in ran.stdout.partition("\n Next:")[2].splitlines() if line.strip()]


def test_a_file_that_cannot_be_written_is_named_by_its_option(spotrail: Command, week: str) -> None:
    for option in ("--record", "--plan", "--output"):
        ran = spotrail("audit", "--from", week, option, "/dev/full")
        assert ran.returncode == 2
        assert ran.stderr.startswith(f"error: {option} /dev/full: cannot be written: No space left")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("spotrail audit --from {week} >&-", 2, "error: standard output is closed; name a file with --output FILE\n"),
        ("spotrail audit --from {week} >/dev/full", 2,
         "error: standard output: cannot be written: No space left on device\n"),
        ("spotrail audit --from {week} --format json | head -n 1 >/dev/null; exit ${{PIPESTATUS[0]}}", 3, ""),
        ("spotrail audit --from - <&-", 2, "error: standard input is closed; name a file\n"),
        ("spotrail audit --from - </dev/null", 2,
         "error: standard input: it is empty; record it again with: spotrail audit --record FILE\n"),
    ],
)  # fmt: skip
def test_streams_that_are_broken(week: str, command: str, code: int, said: str) -> None:
    from tests.scripts.test_process import ROOT, shell

    ran = shell(command.format(week=week), ROOT)
    assert (ran.returncode, ran.stderr) == (code, said)


PARTS = {
    "compute.disks.aggregatedList": Part.DISKS.value,
    "compute.instances.aggregatedList": Part.INSTANCES.value,
    "compute.snapshots.list": Part.SNAPSHOTS.value,
    "compute.images.list": Part.IMAGES.value,
    "compute.addresses.aggregatedList": Part.ADDRESSES.value,
    "compute.instanceGroupManagers.aggregatedList": Part.GROUPS.value,
    "compute.storagePools.aggregatedList": Part.STORAGE_POOLS.value,
    "compute.routers.aggregatedList": Part.ROUTERS.value,
    "tpu.nodes.list": Part.NODES.value,
    "tpu.queuedResources.list": Part.QUEUED_RESOURCES.value,
    "storage.buckets.list": Part.BUCKETS.value,
    "monitoring.timeSeries.list": "compute.googleapis.com/instance/disk/read_bytes_count",
}
STRIKES = {
    FaultKind.FORBIDDEN: {},
    FaultKind.RATE_LIMITED: {},
    FaultKind.UNAVAILABLE: {},
    FaultKind.SLOW: {"seconds": 2.5},
    FaultKind.CUT: {},
    FaultKind.TRUNCATED: {},
}


@pytest.mark.parametrize("kind", STRIKES)
@pytest.mark.parametrize("method", PARTS)
def test_each_api_fails_in_turn(
    spotrail: Command, world: World, endpoint: str, impatient: None, method: str, kind: FaultKind
) -> None:
    """What could not be seen is named, it exits 4, and nothing is proposed, planned or done."""
    world.fail(Fault(kind=kind, method=method, **STRIKES[kind]))
    ran = spotrail(*live(endpoint, "--format", "json", "--apply", "--yes"))
    assert ran.returncode == 4, ran.stderr
    found = strictly(ran.stdout)
    assert any(gap["part"].startswith(PARTS[method]) for gap in found["missing"]), found["missing"]
    assert found["complete"] is False
    assert [each["remedy"] for each in found["verdicts"] if each["remedy"]] == []
    assert any(note.startswith("no remedy is proposed") for note in found["notes"])
    assert "nothing is done in a half-seen world" in ran.stderr
    assert not [name for name in world.counts() if name.rpartition(".")[2] not in ("get", "list", "aggregatedList")]


IN_BUCKETS = [
    (method, part, kind)
    for method, part in (
        ("storage.anywhereCaches.list", Part.CACHES),
        ("storage.objects.list", Part.HEARTBEATS),
        ("storage.objects.get", Part.HEARTBEATS),
    )
    for kind in STRIKES
    # An object that is no JSON is no heartbeat, but something else of that name.
    if (method, kind) != ("storage.objects.get", FaultKind.TRUNCATED)
]


def with_a_run(world: World) -> None:
    """A bucket of a stack with a run that writes heartbeats, and a cache in front of it."""
    world.add(Part.BUCKETS, name="acme-checkpoints", labels=OURS)
    world.add(Part.CACHES, bucket="acme-checkpoints", zone=ZONE, createTime="now-20d", updateTime="now-20d")
    content = {"run": "r", "attempt": 1, "step": 1, "time": "now-1m"}
    world.add(Part.HEARTBEATS, bucket="acme-checkpoints", name="r/heartbeat.json", updated="now-1m", content=content)


@pytest.mark.parametrize(("method", "part", "kind"), IN_BUCKETS)
def test_what_lies_in_buckets_fails_in_turn(
    spotrail: Command, world: World, endpoint: str, impatient: None, method: str, part: Part, kind: FaultKind
) -> None:
    with_a_run(world)
    world.fail(Fault(kind=kind, method=method, **STRIKES[kind]))
    ran = spotrail(*live(endpoint, "--format", "json"))
    assert ran.returncode == 4, ran.stderr
    assert any(gap["part"].startswith(part.value) for gap in strictly(ran.stdout)["missing"])
    assert not any(each["remedy"] for each in strictly(ran.stdout)["verdicts"])


@pytest.mark.parametrize("metric", Metric)
def test_each_metric_fails_in_turn(
    spotrail: Command, world: World, endpoint: str, impatient: None, metric: Metric
) -> None:
    world.fail(Fault(kind=FaultKind.FORBIDDEN, method="monitoring.timeSeries.list", where=metric.value))
    ran = spotrail(*live(endpoint, "--format", "json", "--apply", "--yes"))
    found = strictly(ran.stdout)
    assert (ran.returncode, found["complete"]) == (4, False)
    assert metric.value in {gap["part"].partition(" ")[0] for gap in found["missing"]}
    assert not any(each["remedy"] for each in found["verdicts"])
    assert len(world.items(Part.DISKS)) == 2


@pytest.mark.parametrize("kind", [FaultKind.RATE_LIMITED, FaultKind.UNAVAILABLE])
def test_what_passes_changes_nothing(
    spotrail: Command, world: World, endpoint: str, hasty: None, kind: FaultKind
) -> None:
    with_a_run(world)
    before = spotrail(*live(endpoint, "--format", "json")).stdout
    methods = (*PARTS, *(method for method, _, _ in IN_BUCKETS))
    world.fail(*(Fault(kind=kind, method=method, times=2) for method in methods))
    again = spotrail(*live(endpoint, "--format", "json"))
    assert (again.returncode, again.stdout) == (3, before)


def test_a_half_seen_world_in_words(spotrail: Command, world: World, endpoint: str, tmp_path: Path) -> None:
    half_seen(world)
    path = tmp_path / "week.json"
    plan = tmp_path / "plan.json"
    ran = spotrail(*live(endpoint, "--record", str(path), "--plan", str(plan), "--resource", "llama-old"))
    assert ran.returncode == 4
    assert "Only partly seen: 1 part of the project could not be read (below), so no remedy is proposed." in ran.stdout
    assert "Not seen: compute.disks us-east1-d" in ran.stdout
    assert "→" not in ran.stdout
    assert json.loads(plan.read_text())["measures"] == []
    again = spotrail("audit", "--from", str(path))
    assert again.returncode == 4
    assert "--plan" not in again.stdout.partition("Next:")[2]
    page = spotrail("audit", "--from", str(path), "--format", "html").stdout
    assert "not seen: compute.disks us-east1-d" in page
