"""A project is read by the real clients over the loopback, and every API fails, slows, lies or is busy in turn."""

import contextlib
import datetime
import io
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from policies.audit.files.record_file import read_record, write_record
from policies.audit.live import gathering
from policies.audit.live.access import Access
from policies.audit.live.failures import CloudError, CredentialsError
from policies.audit.live.recording import Collected, collect
from policies.audit.record import Metric, Part
from policies.audit.terms import Terms
from policies.errors import InputError
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.world import PROJECT
from tests.policies.audit.small_world import LISTS, NOW, SECRET, collected, small_world

OF_BUCKETS = (Part.CACHES, Part.HEARTBEATS)
QUERY = "monitoring.timeSeries.list"


@pytest.fixture(scope="module")
def whole() -> Collected:
    return collected(small_world())


def written(found: Collected) -> str:
    stream = io.StringIO()
    write_record(found.record, stream)
    return stream.getvalue()


def missing(found: Collected) -> dict[str, str]:
    return {gap.part: gap.why for gap in found.record.missing}


def test_everything_is_seen(whole: Collected) -> None:
    record = whole.record
    assert record.missing == ()
    assert record.notes == ()
    assert {part: len(record.items(part)) for part in Part} == dict.fromkeys(Part, 1) | {Part.DISKS: 2, Part.BUCKETS: 2}
    assert all(record.seen(key) for key in (*Part, *Metric))
    assert (record.project, record.recorded_at) == (PROJECT, NOW)
    # Five minutes before 12:03:20, at a full minute.
    assert record.window.end == datetime.datetime(2026, 11, 29, 11, 58, tzinfo=datetime.UTC)
    assert record.window.end - record.window.start == Terms().window


def test_resources_are_in_googles_own_json(whole: Collected) -> None:
    disk = next(item for item in whole.record.items(Part.DISKS) if item["name"] == "llama")
    assert (disk["sizeGb"], disk["provisionedThroughput"]) == ("500", "12000")
    assert str(disk["zone"]).endswith("/zones/us-central1-b")
    assert whole.record.items(Part.GROUPS)[0]["targetSize"] == 2
    (node,) = whole.record.items(Part.NODES)
    assert (node["state"], node["acceleratorType"]) == ("READY", "v6e-8")
    (queued,) = whole.record.items(Part.QUEUED_RESOURCES)
    assert queued["state"] == {"state": "SUSPENDED"}
    (beat,) = whole.record.items(Part.HEARTBEATS)
    assert beat["content"] == {"run": "run-7", "attempt": 1, "step": 640, "time": "2026-11-29T11:58:00Z"}


def test_the_hours_of_a_week_are_seen(whole: Collected) -> None:
    (series,) = whole.record.series(Metric.READ_BYTES)
    assert len(series) == 168
    assert set(series.values) == {300.0 * 2**20 * 3600}
    assert series.ends[0] == whole.record.window.end.timestamp()
    assert series.starts[-1] == whole.record.window.start.timestamp()


def test_nothing_secret_is_written(whole: Collected) -> None:
    text = written(whole)
    assert SECRET not in text
    assert "34.1.2.3" not in text
    assert "startup-script" in text


def test_a_record_that_was_written_is_the_same(whole: Collected) -> None:
    again = read_record("-", io.BytesIO(written(whole).encode()))
    assert again.inventory == whole.record.inventory
    assert {metric: len(series) for metric, series in again.metrics.items()} == {
        metric: len(series) for metric, series in whole.record.metrics.items()
    }


def test_calls_are_counted(whole: Collected) -> None:
    assert whole.calls == dict.fromkeys(sorted(LISTS.values()), 1) | {
        LISTS[Part.CACHES]: 2,
        "storage.objects.get": 1,
        QUERY: len(Metric) + 1,  # the samples of one are counted
    }


def test_calls_grow_with_pages_and_not_with_disks() -> None:
    world = small_world()
    for number in range(998):
        world.add(Part.DISKS, name=f"disk-{number}", zone="us-central1-b")
    found = collected(world)
    assert len(found.record.items(Part.DISKS)) == 1000
    assert found.calls[LISTS[Part.DISKS]] == 2
    assert found.calls == world.counts()


@pytest.mark.parametrize("part", Part)
@pytest.mark.parametrize("kind", [FaultKind.FORBIDDEN, FaultKind.TRUNCATED, FaultKind.CUT, FaultKind.LOST])
def test_a_part_that_fails_is_missing_and_the_others_are_seen(part: Part, kind: FaultKind) -> None:
    world = small_world()
    world.fail(Fault(kind=kind, method=LISTS[part]))
    found = collected(world)
    lost = {part, *OF_BUCKETS} if part is Part.BUCKETS else {part}
    gone = {gap.split(" ")[0] for gap in missing(found)}
    assert gone == {each.value for each in lost}
    assert not any(found.record.seen(each) for each in lost)
    assert all(found.record.seen(key) for key in (*Part, *Metric) if key not in lost)
    assert part in OF_BUCKETS or not set(lost) & set(found.record.inventory)


@pytest.mark.parametrize("metric", Metric)
@pytest.mark.parametrize("kind", [FaultKind.FORBIDDEN, FaultKind.TRUNCATED])
def test_a_metric_that_fails_is_missing_and_the_others_are_seen(metric: Metric, kind: FaultKind) -> None:
    world = small_world()
    world.fail(Fault(kind=kind, method=QUERY, where=f'"{metric.value}"'))
    found = collected(world)
    assert list(missing(found)) == [metric.value]
    assert metric not in found.record.metrics
    assert all(found.record.seen(key) for key in (*Part, *Metric) if key is not metric)


@pytest.mark.parametrize("kind", [FaultKind.RATE_LIMITED, FaultKind.UNAVAILABLE])
def test_a_busy_api_is_asked_again(kind: FaultKind) -> None:
    world, said = small_world(), list[str]()
    methods = sorted({*LISTS.values(), "storage.objects.get", QUERY})
    for method in methods:
        world.fail(Fault(kind=kind, method=method, times=2))
    found = collected(world, said=said, deadline_s=20)
    assert found.record.missing == ()
    assert found.calls == world.counts()
    assert {line.split(":")[0] for line in said if line.endswith("; trying again")} == set(methods)


# One method of every client, and a part that it reads.
CLIENTS = [
    ("compute.disks.aggregatedList", Part.DISKS),
    ("tpu.nodes.list", Part.NODES),
    ("storage.buckets.list", Part.BUCKETS),
    (QUERY, Metric.READ_BYTES),
]


@pytest.mark.parametrize(("method", "part"), CLIENTS)
@pytest.mark.parametrize(
    ("kind", "words"),
    [(FaultKind.RATE_LIMITED, "Quota exceeded"), (FaultKind.UNAVAILABLE, "currently unavailable")],
)
def test_an_api_that_stays_busy_is_given_up(method: str, part: Part | Metric, kind: FaultKind, words: str) -> None:
    world = small_world()
    world.fail(Fault(kind=kind, method=method))
    began = time.monotonic()
    found = collected(world, deadline_s=1.0)
    assert time.monotonic() - began < 30
    assert words in missing(found)[part.value]
    assert found.calls[method] > 1


@pytest.mark.parametrize(("method", "part"), CLIENTS)
def test_a_call_that_hangs_is_given_up(method: str, part: Part | Metric) -> None:
    world = small_world()
    world.fail(Fault(kind=FaultKind.SLOW, method=method, seconds=60))
    began = time.monotonic()
    found = collected(world, call_s=1.0)
    assert time.monotonic() - began < 30
    assert part.value in missing(found)
    assert not found.record.seen(part)


@pytest.mark.parametrize("method", sorted({*LISTS.values(), QUERY}))
def test_pages_that_go_in_circles_end(method: str) -> None:
    world = small_world()
    world.fail(Fault(kind=FaultKind.LOOP, method=method))
    found = collected(world)
    (why, *_) = missing(found).values()
    assert "gives the same page again and again" in why


def test_what_came_before_a_page_failed_is_kept() -> None:
    world = small_world()
    for number in range(600):
        world.add(Part.DISKS, name=f"disk-{number}", zone="us-central1-b")
    world.fail(Fault(kind=FaultKind.FORBIDDEN, method=LISTS[Part.DISKS], after=1))
    found = collected(world)
    assert len(found.record.items(Part.DISKS)) == 500
    assert missing(found)["compute.disks"].endswith("(after 1 pages)")
    assert not found.record.seen(Part.DISKS)


@pytest.mark.parametrize("part", [Part.DISKS, Part.NODES])
def test_a_zone_that_does_not_answer_is_named(part: Part) -> None:
    world = small_world()
    world.add(Part.NODES, name="us-east1-d/far", acceleratorType="v6e-8")
    world.fail(Fault(kind=FaultKind.PARTIAL, method=LISTS[part], zone="us-east1-d"))
    found = collected(world)
    assert list(missing(found)) == [f"{part.value} us-east1-d"]
    assert len(found.record.items(part)) == 1
    assert not found.record.seen(part)


def test_a_bucket_that_cannot_be_read_is_named() -> None:
    world = small_world()
    world.fail(
        Fault(kind=FaultKind.PARTIAL, method=LISTS[Part.BUCKETS], zone="other"),
        Fault(kind=FaultKind.FORBIDDEN, method=LISTS[Part.CACHES], where="/b/runs/"),
        Fault(kind=FaultKind.FORBIDDEN, method="storage.objects.get"),
    )
    found = collected(world)
    assert list(missing(found)) == ["storage.buckets other", "storage.anywhereCaches runs", "storage.heartbeats runs"]


def test_nobody_is_logged_in() -> None:
    for method in ("compute.routers.aggregatedList", "tpu.nodes.list", "storage.buckets.list", QUERY):
        world = small_world()
        world.fail(Fault(kind=FaultKind.UNAUTHENTICATED, method=method))
        with pytest.raises(CredentialsError, match=f"{method}: .*gcloud auth application-default login"):
            collected(world)


def test_where_nothing_of_the_inventory_can_be_read_there_is_no_record() -> None:
    world = small_world()
    world.fail(
        Fault(kind=FaultKind.FORBIDDEN, method="compute.*", message=f"{SECRET}@example.com may not \x1b[31mread"),
        Fault(kind=FaultKind.FORBIDDEN, method="tpu.*"),
        Fault(kind=FaultKind.FORBIDDEN, method="storage.*"),
    )
    with pytest.raises(
        CloudError, match=f"nothing of project {PROJECT} could be read: compute.disks.aggregatedList: "
    ) as caught:
        collected(world)
    assert SECRET not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_accounts_in_the_words_of_an_api_do_not_reach_the_record() -> None:
    world = small_world()
    message = f"{SECRET}@example.com does not have storage.buckets.list access"
    world.fail(Fault(kind=FaultKind.FORBIDDEN, method="storage.buckets.list", message=message))
    found = collected(world)
    assert "(an account) does not have storage.buckets.list access" in missing(found)["storage.buckets"]
    assert SECRET not in written(found)


def test_no_proxy_stands_between_us_and_our_own_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "grpc_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert collected(small_world()).record.missing == ()


def test_a_part_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    world = small_world()
    world.fail(Fault(kind=FaultKind.SLOW, method="compute.images.list", seconds=60))
    found = collected(world, call_s=60, deadline_s=60, part_s=2.0)
    assert missing(found)["compute.images"] == "no whole answer in 2 s; given up"


def test_a_server_that_sends_a_byte_now_and_then_is_given_up() -> None:
    with dripping() as endpoint:
        access = Access(endpoint=endpoint, part_s=3.0, call_s=600, deadline_s=600)
        began = time.monotonic()
        with pytest.raises(CloudError, match="nothing of project p could be read: no whole answer in 3 s; given up"):
            collect(access, "p", Terms(), lambda _: None, now=NOW)
        assert time.monotonic() - began < 15


@contextlib.contextmanager
def dripping() -> Iterator[str]:
    """A server that begins every answer over HTTP and never ends it, and is silent over gRPC."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    stopping, taken = threading.Event(), list[socket.socket]()

    def drip(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if connection.recv(3) != b"PRI":
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n")
                while not stopping.wait(0.1):
                    connection.sendall(b" ")

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                taken.append(listener.accept()[0])
                threading.Thread(target=drip, args=(taken[-1],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stopping.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in taken:
            connection.close()


def test_minute_points_are_read_of_the_volumes_that_need_them() -> None:
    world = small_world()
    (reader,) = world.items(Part.INSTANCES)
    world.observe("traffic", instance="reader", device='odd "name" \\', read=7)
    world.observe("traffic", instance="reader", device="boot", read=1)
    pairs = [(reader["id"], "weights"), (reader["id"], 'odd "name" \\'), ("404", "none")]
    found = collected(world, candidates=lambda _record, _terms: pairs)
    lengths = {}
    for series in found.record.series(Metric.READ_BYTES):
        name = series.metric_labels["device_name"]
        lengths.setdefault(name, []).append((series.ends[0] - series.starts[0], len(series)))
    assert lengths == {
        "weights": [(3600, 168), (60, 10_080)],
        'odd "name" \\': [(3600, 168), (60, 10_080)],
        "boot": [(3600, 168)],
    }
    assert found.calls[QUERY] == len(Metric) + 1 + 2
    assert len(found.record.series(Metric.MAX_READ_BYTES)) == 3


def test_minutes_that_cannot_be_read_are_missing_and_the_hours_stay() -> None:
    world = small_world()
    world.fail(Fault(kind=FaultKind.FORBIDDEN, method=QUERY, where="one_of"))
    found = collected(world, candidates=lambda record, _: [(str(record.items(Part.INSTANCES)[0]["id"]), "weights")])
    assert list(missing(found)) == [f"{metric.value} minutes" for metric in (Metric.READ_BYTES, Metric.WRITE_BYTES)]
    assert len(found.record.series(Metric.READ_BYTES)) == 1
    assert not found.record.seen(Metric.READ_BYTES)


def test_samples_that_cannot_be_counted_are_missing_and_the_hours_stay() -> None:
    world = small_world()
    world.fail(Fault(kind=FaultKind.FORBIDDEN, method=QUERY, where=f'"{Metric.READ_BYTES.value}"', after=1))
    found = collected(world)
    assert list(missing(found)) == [f"{Metric.READ_BYTES.value} samples"]
    assert len(found.record.series(Metric.READ_BYTES)[0]) == 168
    assert not found.record.seen(Metric.READ_BYTES)


def test_more_minutes_than_memory_holds_are_not_asked_for() -> None:
    pairs = [("1", f"disk-{number}") for number in range(600)]
    found = collected(small_world(), candidates=lambda _record, _terms: pairs)
    # Ten million points are 496 times 10,080 minutes of two metrics.
    assert found.record.notes == (
        "minute points are read of 496 of 600 volumes on machines that need them; the others are judged by the hour",
    )


@pytest.mark.parametrize("project", ["", "a/b", "p\n1", "a@example.com"])
def test_a_project_is_an_id(project: str) -> None:
    with pytest.raises(InputError, match=r"--project is .*; it is the id of a project"):
        collect(Access(endpoint="127.0.0.1:9"), project, Terms(), lambda _: None)


def test_an_answer_that_is_out_too_long_counts_as_none() -> None:
    answers = gathering.gather({"fast": lambda: 1, "slow": lambda: time.sleep(5) or 2}, 0.2)
    assert answers["fast"] == 1
    assert str(answers["slow"]) == "no whole answer in 0.2 s; given up"
    assert gathering.gather({}, 1) == {}


def test_a_bug_in_a_question_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        gathering.gather({"bad": lambda: 1 // 0}, 5)


def test_strict_json_is_written(whole: Collected) -> None:
    found = json.loads(written(whole), parse_constant=pytest.fail)
    assert list(found) == ["schema", "project", "recorded_at", "window", "inventory", "metrics", "missing"]
