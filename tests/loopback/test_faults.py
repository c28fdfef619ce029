"""Every way to fail, as Google's own clients see it, and what they make of it."""

from __future__ import annotations

import datetime
import json
import threading
import time
import urllib.request
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import GoogleAuthError

from policies.audit.record import Part
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.world import World
from tests.loopback.clients import buckets, compute, monitoring, tpu
from tests.loopback.conftest import NOW
from tests.loopback.test_series import READ, listed

ZONE = "us-central1-b"
PARENT = "projects/acme-tpu-dev/locations/-"
PASSING = (exceptions.TooManyRequests, exceptions.ServiceUnavailable, requests.RequestException)
AGAIN = Retry(predicate=if_exception_type(*PASSING), initial=0.01, maximum=0.02, timeout=20)


def list_disks(endpoint: str, **fields: Any) -> list[str]:
    pages = compute(endpoint, "Disks").aggregated_list(request={"project": "acme-tpu-dev", "max_results": 2}, **fields)
    return [disk.name for _, scope in pages for disk in scope.disks]


def list_nodes(endpoint: str, **fields: Any) -> list[str]:
    found = tpu(endpoint).list_nodes(request={"parent": PARENT, "page_size": 2}, **fields)
    return [node.name.rsplit("/", 1)[-1] for node in found]


LISTS = {"compute.disks.aggregatedList": list_disks, "tpu.nodes.list": list_nodes}


@pytest.fixture
def five(world: World) -> World:
    """Five disks and five nodes: three pages of two each."""
    for name in "abcde":
        world.add(Part.DISKS, name=name, zone=ZONE, sizeGb="10")
        world.add(Part.NODES, name=f"{ZONE}/{name}", state="READY")
    return world


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (FaultKind.RATE_LIMITED, exceptions.TooManyRequests),
        (FaultKind.UNAVAILABLE, exceptions.ServiceUnavailable),
        (FaultKind.FORBIDDEN, exceptions.Forbidden),
        (FaultKind.UNAUTHENTICATED, (exceptions.Unauthorized, GoogleAuthError)),  # REST tries to log in again
    ],
)
def test_a_refusal_on_the_second_page(five: World, endpoint: str, method: str, kind: FaultKind, error: Any) -> None:
    five.fail(Fault(kind=kind, method=method, after=1, message="not now"))
    with pytest.raises(error, match=r"not now|cannot be refreshed"):
        LISTS[method](endpoint, retry=None)
    assert five.counts() == {method: 2}


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("kind", [FaultKind.RATE_LIMITED, FaultKind.UNAVAILABLE, FaultKind.CUT, FaultKind.LOST])
def test_a_client_that_tries_again_gets_everything_once(
    five: World, endpoint: str, method: str, kind: FaultKind
) -> None:
    five.fail(Fault(kind=kind, method=method, after=1, times=2))
    assert LISTS[method](endpoint, retry=AGAIN) == [*"abcde"]
    assert five.counts() == {method: 5}, "three pages and two repeats"


@pytest.mark.parametrize("kind", [FaultKind.CUT, FaultKind.LOST])
def test_a_connection_that_ends_too_early(five: World, endpoint: str, kind: FaultKind) -> None:
    five.fail(Fault(kind=kind))
    with pytest.raises(requests.RequestException):
        list_disks(endpoint, retry=None)
    with pytest.raises(exceptions.ServiceUnavailable):
        list_nodes(endpoint, retry=None)


def test_a_page_of_time_series_that_is_cut_off(world: World, endpoint: str) -> None:
    world.observe("traffic", instance_id="7", zone=ZONE, device="d", read=1)
    world.fail(Fault(kind=FaultKind.CUT, where="read_bytes", times=1))
    (series,) = listed(endpoint, READ, hours=24 * 30)
    assert len(series.points) == 30 * 24 * 60
    assert world.counts() == {"monitoring.timeSeries.list": 2}, "the client itself tries again after a lost connection"


def test_an_answer_without_its_end(five: World, endpoint: str) -> None:
    five.fail(Fault(kind=FaultKind.TRUNCATED))
    with pytest.raises(Exception, match=r"(?i)parse|json"):
        list_disks(endpoint, retry=None)
    with pytest.raises(exceptions.GoogleAPICallError, match=r"(?i)deserializ|parsing"):
        list_nodes(endpoint, retry=None)


@pytest.mark.parametrize("method", LISTS)
def test_a_page_that_names_itself_as_the_next(five: World, endpoint: str, method: str) -> None:
    five.fail(Fault(kind=FaultKind.LOOP, method=method))
    if method == "tpu.nodes.list":
        pages = tpu(endpoint).list_nodes(request={"parent": PARENT, "page_size": 2}).pages
    else:
        pages = compute(endpoint, "Disks").aggregated_list(project="acme-tpu-dev").pages
    tokens = [page.next_page_token for page, _ in zip(pages, range(3), strict=False)]
    assert len(set(tokens)) == 1
    assert tokens[0]


def test_one_zone_that_cannot_be_reached(five: World, endpoint: str) -> None:
    five.add(Part.DISKS, name="far", zone="us-east1-d", sizeGb="10")
    five.add(Part.NODES, name="us-east1-d/far", state="READY")
    five.fail(Fault(kind=FaultKind.PARTIAL, zone=ZONE))
    (page,) = compute(endpoint, "Disks").aggregated_list(project="acme-tpu-dev").pages
    assert [disk.name for scope in page.items.values() for disk in scope.disks] == ["far"]
    assert list(page.unreachables) == [f"projects/acme-tpu-dev/zones/{ZONE}"]
    assert page.items[f"zones/{ZONE}"].warning.code == "UNREACHABLE"
    assert page.items["zones/us-east5-a"].warning.code == "NO_RESULTS_ON_PAGE"
    (answer,) = tpu(endpoint).list_nodes(parent=PARENT).pages
    assert ([node.name.rsplit("/", 1)[-1] for node in answer.nodes], list(answer.unreachable)) == (["far"], [ZONE])


def test_series_of_one_zone_that_cannot_be_read(world: World, endpoint: str) -> None:
    for zone in (ZONE, "us-east1-d"):
        world.observe("traffic", instance_id="7", zone=zone, device="d", read=1)
    world.fail(Fault(kind=FaultKind.PARTIAL, method="monitoring.*", zone=ZONE, times=1))
    interval = {"start_time": NOW - datetime.timedelta(hours=1), "end_time": NOW}
    request = {"name": "projects/acme-tpu-dev", "filter": f'metric.type = "{READ}"', "interval": interval}
    (page,) = monitoring(endpoint).list_time_series(request=request).pages
    assert [series.resource.labels["zone"] for series in page.time_series] == ["us-east1-d"]
    assert [error.message for error in page.execution_errors] == [f"Time series of {ZONE} could not be read."]
    assert len(listed(endpoint, READ)) == 2


def test_slow_answers(five: World, endpoint: str) -> None:
    five.fail(Fault(kind=FaultKind.SLOW, seconds=0.2, times=2))
    started = time.monotonic()
    assert len(list_nodes(endpoint)) == 5
    assert 0.4 <= time.monotonic() - started < 5
    five.fail(Fault(kind=FaultKind.SLOW, seconds=30))
    with pytest.raises(exceptions.DeadlineExceeded):
        list_nodes(endpoint, retry=None, timeout=0.2)


def test_a_call_that_is_applied_though_its_answer_is_lost(five: World, endpoint: str) -> None:
    five.fail(Fault(kind=FaultKind.LOST, times=2))
    request = {
        "project": "acme-tpu-dev",
        "zone": ZONE,
        "disk": "a",
        "request_id": "c0ffee00-0000-4000-8000-000000000001",
    }
    disks = compute(endpoint, "Disks")
    with pytest.raises(requests.RequestException):
        disks.delete(request=request)
    with pytest.raises(exceptions.ServiceUnavailable):
        tpu(endpoint).delete_node(name=f"projects/acme-tpu-dev/locations/{ZONE}/nodes/a", retry=None)
    assert five.items(Part.NODES)[0]["state"] == "DELETING"
    disks.delete(request=request).result(timeout=20)
    assert [item["name"] for item in five.items(Part.DISKS)] == [*"bcde"]
    assert len(five.operations.all()) == 2, "the repeated request began nothing new"


def test_faults_strike_only_what_they_name(five: World, endpoint: str) -> None:
    five.add(Part.BUCKETS, name="b")
    five.fail(Fault(kind=FaultKind.FORBIDDEN, method="compute.*"))
    five.fail(Fault(kind=FaultKind.FORBIDDEN, method="monitoring.timeSeries.list", where="write_bytes"))
    with pytest.raises(exceptions.Forbidden):
        list_disks(endpoint)
    assert len(list_nodes(endpoint)) == 5
    assert [bucket.name for bucket in buckets(endpoint).list_buckets()] == ["b"]
    assert listed(endpoint, READ) == []
    with pytest.raises(exceptions.PermissionDenied):
        listed(endpoint, READ.replace("read", "write"))
    five.calls.clear()
    assert len(list_disks(endpoint)) == 5


def test_a_truncated_page_of_storage(world: World, endpoint: str) -> None:
    world.add(Part.BUCKETS, name="b")
    world.fail(Fault(kind=FaultKind.TRUNCATED, method="storage.buckets.list"))
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        f"{endpoint}/storage/v1/b?project=acme-tpu-dev", timeout=10
    ) as answer:
        text = answer.read().decode()
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


def test_both_protocols_share_one_port_with_many_at_once(five: World, endpoint: str) -> None:
    clients = [(list_disks, list_nodes)[index % 2] for index in range(8)]
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda ask=ask: found.append(ask(endpoint))) for ask in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[*"abcde"]] * 8
