"""The decisions of a fill, as the shell of the jobs takes them."""

from __future__ import annotations

import itertools
import subprocess

import pytest

from infra.plan.hydration import TABLES, Decision, forgotten_failure
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
# What a failed call says: whether it passes for a disk and a snapshot, and for a hydrator.
ERRORS = {
    MISSING: ("wait", "stop"),
    NO_ATTRIBUTE: ("wait", "stop"),
    DENIED: ("stop", "stop"),
    QUOTA: ("stop", "stop"),
    "ERROR: (gcloud) HTTPError 403: Rate Limit Exceeded": ("stop", "stop"),
    "ERROR: (gcloud) HTTPError 403: Quota 'CPUS' exceeded, rateLimitExceeded": ("stop", "stop"),
    "ERROR: (gcloud) HTTPError 400: Invalid value for field 'resource.sizeGb'": ("stop", "stop"),
    "ERROR: (gcloud) HTTPError 409: already exists": ("stop", "stop"),
    "ERROR: (gcloud) HTTPError 429: rateLimitExceeded": ("wait", "wait"),
    "ERROR: (gcloud) HTTPError 503: Service Unavailable": ("wait", "wait"),
    "ERROR: (gcloud) HTTPError 500: backendError": ("wait", "wait"),
    "ERROR: gcloud crashed (ConnectionError): Connection reset by peer": ("wait", "wait"),
    "ERROR: (gcloud) The read operation timed out": ("wait", "wait"),
    "ERROR: (gcloud) something that nobody has seen before": ("stop", "stop"),
    # A name that imitates a failure is no failure.
    "ERROR: (gcloud) The resource 'projects/p/zones/z/disks/quota-forbidden-503' was not found": ("wait", "stop"),
    "gcloud failed without a word": ("stop", "stop"),
}


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


@pytest.mark.parametrize(
    ("kind", "states", "decisions"),
    [
        ("snapshot", ("CREATING", "UPLOADING", "UPLOADING", "READY"), ["wait", "wait", "wait", "go"]),
        ("snapshot", ("FAILED", "DELETING", "BRAND_NEW_STATE"), ["stop", "stop", "stop"]),
        ("disk", ("CREATING", "READY", "FAILED"), ["wait", "go", "stop"]),
        ("hydrator", ("PROVISIONING", "RUNNING", "STOPPING", "TERMINATED"), ["wait", "wait", "stop", "stop"]),
    ],
)
def test_a_state_means_one_thing(functions: str, kind: str, states: tuple[str, ...], decisions: list[str]) -> None:
    assert shell(functions, [f"decide_state {kind} {state}" for state in states]) == decisions


def test_the_shell_knows_every_state_of_the_tables(functions: str) -> None:
    states = sorted({state for table in TABLES for state in table.states} | {"BRAND_NEW_STATE"})
    pairs = list(itertools.product(TABLES, states))
    said = shell(functions, [f"decide_state {table.kind} {state}" for table, state in pairs])
    assert said == [table.states.get(state, Decision.STOP).value for table, state in pairs]


def test_only_a_passing_failure_is_waited_for(functions: str) -> None:
    for kind, column in (("disk", 0), ("snapshot", 0), ("hydrator", 1)):
        said = shell(functions, [f'decide_error {kind} "{error}"' for error in ERRORS])
        assert dict(zip(ERRORS, said, strict=True)) == {error: means[column] for error, means in ERRORS.items()}


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ([], None),
        ([("CONDITION_SUCCEEDED", None)], None),
        ([("CONDITION_RECONCILING", "Waiting for execution to complete.")], None),
        ([(None, "no state")], None),
        ([("CONDITION_FAILED", "exit code 1")], "has failed: exit code 1. Pulumi does not run it again"),
        ([("CONDITION_FAILED", None)], "has failed: no reason given. "),
        ([("CONDITION_SUCCEEDED", "fine"), ("CONDITION_FAILED", "not fine")], "has failed: not fine. "),
    ],
)
def test_a_failure_that_pulumi_has_forgotten_is_told_with_what_to_do(
    conditions: list[tuple[str | None, str | None]], said: str | None
) -> None:
    found = forgotten_failure("dev-llama-fill", "urn:pulumi:dev::spotrail::a$b::llama-fill", conditions)
    if said is None:
        assert found is None
    else:
        assert found is not None
        assert f"The execution of the job dev-llama-fill {said}" in found
        # Quoted: a URN holds a dollar sign.
        assert found.endswith("To start over: pulumi up --replace 'urn:pulumi:dev::spotrail::a$b::llama-fill'")
