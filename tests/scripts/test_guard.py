"""`spotrail guard` as the job of a stack runs it, against the loopback Google Cloud."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.server import served
from tests.google_cloud.world import World
from tests.policies.guard.project import TOPIC, furnish
from tests.scripts.conftest import Command, Ran

ARGUMENTS = ("guard", "--project", "acme-tpu-dev", "--stack", "dev")


@pytest.fixture
def world() -> World:
    world = World(polls=1)
    furnish(world)
    return world


@pytest.fixture
def endpoint(world: World) -> Iterator[str]:
    with served(world) as endpoint:
        yield endpoint


def test_one_run_in_words(spotrail: Command, world: World, endpoint: str) -> None:
    ran: Ran = spotrail(*ARGUMENTS, "--topic", TOPIC, "--endpoint", endpoint, "--quiet")
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert re.fullmatch(r"spotrail dev: 11,274\.27 USD a month idle in acme-tpu-dev", lines[0])
    assert "would: delete the node dev-node" in lines
    assert lines[-1] == "told: Pub/Sub"
    assert len(world.published) == 6


def test_one_run_as_json(spotrail: Command, world: World, endpoint: str) -> None:
    found = spotrail(*ARGUMENTS, "--endpoint", endpoint, "--quiet", "--format", "json", "--dry-run").document
    assert (found["schema"], found["monthly_waste"], found["told"]) == ("spotrail.guard/1", "11274.2688", [])
    assert len(found["would"]) == 3
    assert world.written == []


def test_with_apply_it_acts(spotrail: Command, world: World, endpoint: str) -> None:
    ran: Ran = spotrail(*ARGUMENTS, "--apply", "--endpoint", endpoint, "--quiet")
    assert ran.returncode == 0, ran.stderr
    assert [line for line in ran.stdout.splitlines() if line.startswith(("- done", "would"))] == [
        "- done: delete the node dev-node",
        "- done: resize to 0 machines the group dev-group",
        "- done: set the throughput of dev-llama to 400 MiB/s (it is 12,000)",
    ]
    assert world.counts()["tpu.nodes.delete"] == 1


def test_the_webhook_comes_from_a_variable(
    spotrail: Command, world: World, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", f"{endpoint}/webhook/hunter2\n")
    ran: Ran = spotrail(*ARGUMENTS, "--webhook-env", "HOOK", "--endpoint", endpoint)
    assert ran.returncode == 0
    assert "hunter2" not in ran.stdout + ran.stderr
    (post,) = world.posted
    assert json.loads(post["body"])["stack"] == "dev"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "the variable HOOK is not set, or empty"),
        ("", "the variable HOOK is not set, or empty"),
        ("http://hooks.example/hunter2", "HOOK: it must start with https://"),
    ],
)
def test_a_webhook_that_cannot_be_told(
    spotrail: Command, monkeypatch: pytest.MonkeyPatch, url: str | None, said: str
) -> None:
    if url is not None:
        monkeypatch.setenv("HOOK", url)
    ran: Ran = spotrail(*ARGUMENTS, "--webhook-env", "HOOK")
    assert ran.returncode == 2
    assert said in ran.stderr
    assert "hunter2" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("guard",), "Missing option '--project'"),
        (("guard", "--project", "p", "--apply"), "name the stack with --stack NAME"),
        ((*ARGUMENTS, "--topic", "findings"), "it must be projects/PROJECT/topics/NAME"),
        ((*ARGUMENTS, "--window", "1h"), "at least 24 hours"),
        ((*ARGUMENTS, "--endpoint", "http://example.com:80"), "a server on this machine"),
        (("guard", "--project", "a/b"), "it is the id of a project"),
    ],
)
def test_what_makes_no_sense_is_refused(spotrail: Command, arguments: tuple[str, ...], said: str) -> None:
    ran: Ran = spotrail(*arguments)
    assert ran.returncode == 2
    assert said in " ".join(ran.stderr.split())


def test_the_exit_code_says_what_the_guard_could_not_do(spotrail: Command, world: World, endpoint: str) -> None:
    world.fail(Fault(kind=FaultKind.FORBIDDEN, method="compute.snapshots.list"))
    ran: Ran = spotrail(*ARGUMENTS, "--endpoint", endpoint, "--quiet")
    assert ran.returncode == 4
    assert "at least" in ran.stdout
    assert "- not seen: compute.snapshots" in ran.stdout
    world.fail(Fault(kind=FaultKind.UNAUTHENTICATED))
    ran = spotrail(*ARGUMENTS, "--endpoint", endpoint, "--quiet")
    assert ran.returncode == 5
    assert ran.stdout == ""
    assert ran.stderr.startswith("error: ")


def test_nobody_at_the_endpoint(spotrail: Command) -> None:
    ran: Ran = spotrail(*ARGUMENTS, "--endpoint", "http://127.0.0.1:1")
    assert (ran.returncode, ran.stdout) == (5, "")
    assert "nothing answers there" in ran.stderr


def test_the_job_of_a_stack_has_arguments_that_the_command_takes(
    spotrail: Command, world: World, endpoint: str, stack_arguments: list[str]
) -> None:
    """The arguments of the Cloud Run job, as the program registers them, behind the entry point of the image."""
    ran: Ran = spotrail("guard", *stack_arguments, "--endpoint", endpoint, "--quiet")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "told: Pub/Sub"
    assert world.counts()["compute.disks.update"] == 1


@pytest.fixture
def stack_arguments() -> list[str]:
    from infra.preview import preview

    resources: Any = preview("dev", Path(__file__).parents[2]).resources
    (job,) = (one for one in resources if one.type == "gcp:cloudrunv2/job:Job" and one.name == "guard")
    return [str(each) for each in job.value("template", "template", "containers", 0, "args")]


def test_days_are_counted_from_the_day_that_is_given(spotrail: Command, endpoint: str) -> None:
    day = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=400)).date().isoformat()
    found = spotrail(*ARGUMENTS, "--endpoint", endpoint, "--quiet", "--format", "json", "--dry-run", "--as-of", day)
    assert found.returncode == 0
