"""The loopback Google Cloud as a process of its own, and the demo world that it serves when nothing else is said."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import Forbidden

from policies.audit.record import Part
from tests.google_cloud.server import served
from tests.google_cloud.shapes import relative
from tests.google_cloud.world import World, load
from tests.loopback.clients import compute

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "tests/google_cloud/worlds/demo.json"
NOW = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def demo() -> World:
    return load(DEMO, now=NOW)


def test_it_prints_its_endpoint_counts_its_calls_and_ends_on_sigterm() -> None:
    command = [sys.executable, "-m", "tests.google_cloud", "--world", str(DEMO)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            endpoint = process.stdout.readline().strip()
            pages = compute(endpoint, "Disks").aggregated_list(request={"project": "acme-tpu-dev", "max_results": 10})
            names = [disk.name for _, scope in pages for disk in scope.disks]
            ask = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with ask.open(f"{endpoint}/loopback/calls", timeout=10) as answer:
                calls = json.loads(answer.read())
        finally:
            process.terminate()
        assert process.wait(timeout=20) == 0
    assert (len(names), "llama-old" in names) == (21, True)
    assert calls == {"compute.disks.aggregatedList": 3, "loopback.calls": 1}


def test_ids_and_links_are_those_of_google(demo: World) -> None:
    resources = [item for part in Part if part.value.startswith("compute.") for item in demo.items(part)]
    assert max(Counter(item["id"] for item in resources).values()) == 1
    for item in resources:
        assert item["id"].isdecimal()
        assert item["selfLink"].startswith("https://www.googleapis.com/compute/v1/projects/acme-tpu-dev/")


def test_what_is_attached_is_attached_on_both_sides(demo: World) -> None:
    by_disk = {
        (relative(disk["selfLink"]), relative(user))
        for disk in demo.items(Part.DISKS)
        for user in disk.get("users", ())
        if "/tp-" not in user  # the machines of Cloud TPU nodes live in a project of Google's
    }
    by_instance = {
        (relative(attached["source"]), relative(instance["selfLink"]))
        for instance in demo.items(Part.INSTANCES)
        for attached in instance["disks"]
    }
    assert by_disk == by_instance


def test_traffic_is_of_what_is_attached(demo: World) -> None:
    metric = "compute.googleapis.com/instance/disk/read_bytes_count"
    pairs = {
        (instance["id"], attached["deviceName"])
        for instance in demo.items(Part.INSTANCES)
        for attached in instance["disks"]
    }
    described = {
        (signal.resource_labels["instance_id"], signal.metric_labels["device_name"])
        for signal in demo.signals.of(metric, demo)
    }
    assert described < pairs


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"project": "p", "inventry": {}}, "a world has no inventry"),
        ({"project": "p", "cpu": [{"instance": "none", "utilization": 1}]}, "0 of compute.instances are called none"),
        ({"project": "p", "duty": [{"zone": "z", "worker": "w", "percent": {"levle": 1}}]}, "a flow has no levle"),
        ({"project": "p", "inventory": {"tpu.nodes": [{"name": "z/n", "state": "NO_SUCH"}]}}, "NO_SUCH"),
    ],
)
def test_a_mistake_in_a_world_is_told_when_it_is_loaded(tmp_path: Path, content: Any, error: str) -> None:
    path = tmp_path / "world.json"
    path.write_text(json.dumps(content))
    with pytest.raises(Exception, match=error):
        load(path)


def test_times_are_counted_from_the_clock_of_the_world(tmp_path: Path) -> None:
    disk = {"name": "d", "zone": "us-east1-d", "sizeGb": "10", "creationTimestamp": "now-36h"}
    content = {"project": "p", "now": "2026-11-29T12:00:00Z", "inventory": {"compute.disks": [disk]}}
    path = tmp_path / "world.json"
    path.write_text(json.dumps(content))
    world = load(path)
    (found,) = world.items(Part.DISKS)
    assert (world.now, found["creationTimestamp"]) == (NOW, "2026-11-28T00:00:00.000Z")


def test_faults_of_a_file_are_in_force_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    fault = {"kind": "FORBIDDEN", "method": "compute.disks.*", "times": 1, "message": "not for you"}
    path.write_text(json.dumps({"project": "acme-tpu-dev", "faults": [fault]}))
    with served(load(path)) as endpoint:
        disks = compute(endpoint, "Disks")
        with pytest.raises(Forbidden, match="not for you"):
            disks.aggregated_list(project="acme-tpu-dev")
        assert len(list(disks.aggregated_list(project="acme-tpu-dev"))) > 0
