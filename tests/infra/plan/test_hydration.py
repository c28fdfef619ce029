"""The decisions of a fill, and that the shell of the jobs decides the same."""

from __future__ import annotations

import itertools
import subprocess
from typing import Any

import pytest

from infra.plan.hydration import (
    DISK,
    HYDRATOR,
    SNAPSHOT,
    TABLES,
    Decision,
    Look,
    Table,
    after_error,
    decide,
    judge_verdict,
)
from infra.plan.startup import CleanJob, render_clean

MISSING = (
    "ERROR: (gcloud.compute) Could not fetch resource:\n - The resource 'projects/p/zones/z/disks/d' was not found"
)
NO_ATTRIBUTE = "ERROR: (gcloud) The resource 'spotrail/verdict' of type 'Guest Attribute' was not found."
DENIED = (
    "ERROR: (gcloud) Required 'compute.disks.get' permission for 'projects/p/zones/z/disks/d' (or it may not exist)"
)
QUOTA = (
    "ERROR: (gcloud) Could not create:\n - Quota 'HDML-TOTAL-THROUGHPUT' exceeded. Limit: 0.0 in region us-central1."
)
ERRORS = (
    MISSING,
    NO_ATTRIBUTE,
    DENIED,
    QUOTA,
    "ERROR: (gcloud) HTTPError 403: Rate Limit Exceeded",
    "ERROR: (gcloud) HTTPError 403: Quota 'CPUS' exceeded, rateLimitExceeded",
    "ERROR: (gcloud) HTTPError 400: Invalid value for field 'resource.sizeGb'",
    "ERROR: (gcloud) HTTPError 409: already exists",
    "ERROR: (gcloud) HTTPError 429: rateLimitExceeded",
    "ERROR: (gcloud) HTTPError 503: Service Unavailable",
    "ERROR: (gcloud) HTTPError 500: backendError",
    "ERROR: gcloud crashed (ConnectionError): Connection reset by peer",
    "ERROR: (gcloud) The read operation timed out",
    "ERROR: (gcloud) something that nobody has seen before",
    # A name that imitates a failure is no failure.
    "ERROR: (gcloud) The resource 'projects/p/zones/z/disks/quota-forbidden-503' was not found",
    "gcloud failed without a word",
)


@pytest.mark.parametrize(
    ("states", "decisions"),
    [
        (("CREATING", "UPLOADING", "UPLOADING", "READY"), ("wait", "wait", "wait", "go")),
        (("CREATING", "FAILED"), ("wait", "stop")),
        (("DELETING",), ("stop",)),
        (("", "CREATING"), ("wait", "wait")),
        (("BRAND_NEW_STATE",), ("stop",)),
    ],
)
def test_a_volume_is_made_once_the_snapshot_is_ready(states: tuple[str, ...], decisions: tuple[str, ...]) -> None:
    looks = [Look(state=state, error="" if state else MISSING) for state in states]
    assert tuple(decide(SNAPSHOT, look, 600).value for look in looks) == decisions


@pytest.mark.parametrize("error", [DENIED, QUOTA])
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_a_refusal_is_not_taken_for_not_ready(table: Table, error: str) -> None:
    assert after_error(table, error) is Decision.STOP


def test_a_hydrator_that_is_gone_will_not_report() -> None:
    assert decide(HYDRATOR, Look(error=MISSING), 600) is Decision.STOP
    assert decide(HYDRATOR, Look(state="TERMINATED"), 600) is Decision.STOP
    assert decide(HYDRATOR, Look(state="RUNNING"), 600) is Decision.WAIT


@pytest.mark.parametrize(
    ("look", "decision"),
    [
        (Look(state="CREATING", waited=599), Decision.WAIT),
        (Look(state="CREATING", waited=600), Decision.STOP),
        (Look(error=MISSING, waited=600), Decision.STOP),
        (Look(state="READY", waited=601), Decision.GO),
    ],
)
def test_waiting_ends_with_the_time(look: Look, decision: Decision) -> None:
    assert decide(DISK, look, 600) is decision


@pytest.mark.parametrize(
    ("verdict", "decision"),
    [("", Decision.WAIT), ("ok", Decision.GO), ("failed: digest", Decision.STOP), ("OK", Decision.STOP)],
)
def test_only_ok_is_a_good_verdict(verdict: str, decision: Decision) -> None:
    assert judge_verdict(verdict) is decision


@pytest.fixture(scope="module")
def functions() -> str:
    """The functions of the job scripts, without what they do at the end."""
    script = render_clean(CleanJob(project="p", zone="z", staging_disk="d", snapshot="s"))
    return script.partition("\nDISK=(")[0]


def shell(functions: str, lines: list[str]) -> list[str]:
    done = subprocess.run(
        ["bash", "-c", "\n".join([functions, *lines])], capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout.split()


def test_the_shell_knows_the_same_states(functions: str) -> None:
    states = sorted({state for table in TABLES for state in table.states} | {"BRAND_NEW_STATE"})
    pairs = list(itertools.product(TABLES, states))
    said = shell(functions, [f"decide_state {table.kind} {state}" for table, state in pairs])
    assert said == [table.states.get(state, Decision.STOP).value for table, state in pairs]


def test_the_shell_takes_failures_the_same_way(functions: str) -> None:
    pairs = list(itertools.product(TABLES, ERRORS))
    calls = [f'decide_error {table.kind} "{error}"' for table, error in pairs]
    assert shell(functions, calls) == [after_error(table, error).value for table, error in pairs]


def test_the_failures_of_the_table_are_told_apart() -> None:
    found: dict[Any, int] = {}
    for error in ERRORS:
        found[after_error(DISK, error)] = found.get(after_error(DISK, error), 0) + 1
    assert found == {Decision.WAIT: 8, Decision.STOP: 8}
