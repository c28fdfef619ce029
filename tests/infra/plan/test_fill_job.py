"""The fill and clean jobs for real: their scripts under bash, against a gcloud that keeps a cloud in a file."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import time
from typing import Any

import pytest

from infra.plan.startup import CleanJob, FillJob, render_clean, render_fill

STAGING = "dev-llama-3f9a6c0b-staging"
HYDRATOR = "dev-llama-3f9a6c0b-hydrator"
SNAPSHOT = "dev-llama-3f9a6c0b-snapshot"
QUOTA = (
    "ERROR: (gcloud.compute) Could not create:\n - Quota 'HDB-TOTAL-GB' exceeded. Limit: 100.0 in region us-central1."
)
DENIED = (
    "ERROR: (gcloud) Required 'compute.disks.get' permission for 'projects/p1/zones/z/disks/d' (or it may not exist)"
)
BUSY = "ERROR: (gcloud) HTTPError 503: The service is currently unavailable."
GONE = "ERROR: (gcloud) The resource 'projects/p1/zones/z/snapshots/s' was not found"


def there(*states: str) -> dict[str, Any]:
    return {"states": list(states), "flags": {}}


def test_a_fill_leaves_the_staging_disk_and_nothing_else(cloud: Any, fill_job: FillJob) -> None:
    code, said = cloud.run(render_fill(fill_job))
    assert code == 0, said
    assert cloud.billing == {STAGING}
    assert f"filled: {STAGING}" in said


def test_the_disk_and_the_hydrator_are_what_the_settings_say(cloud: Any, fill_job: FillJob) -> None:
    cloud.set(verdicts=["failed: seen enough"], faults={"instances delete": [BUSY] * 9, "disks delete": [BUSY] * 9})
    cloud.run(render_fill(fill_job))
    state = cloud.read()
    disk, machine = state["disks"][STAGING]["flags"], state["instances"][HYDRATOR]["flags"]
    labels = "owner=ml-infra,env=dev,ttl=3d,managed-by=spotrail,role=hydrate"
    assert (
        disk.items()
        >= {
            "type": "hyperdisk-balanced",
            "size": "200GB",
            "provisioned-iops": "3000",
            "provisioned-throughput": "600",
            "labels": labels,
        }.items()
    )
    assert (
        machine.items()
        >= {
            "machine-type": "n4-standard-8",
            "image-project": "debian-cloud",
            "image-family": "debian-12",
            "disk": f"name={STAGING},device-name=staging,mode=rw,boot=no,auto-delete=no",
            "network-interface": f"subnet={fill_job.subnetwork},no-address,nic-type=GVNIC",
            "scopes": "cloud-platform",
            "max-run-duration": "630s",
            "instance-termination-action": "DELETE",
            "labels": labels,
        }.items()
    )
    assert machine["startup-script"] == fill_job.hydrate_script


@pytest.mark.parametrize(
    ("state", "said_why"),
    [
        ({"verdicts": ["", "failed: model.safetensors has another digest"]}, "another digest"),
        ({"verdicts": ["OK"]}, "the hydrator says: OK"),
        ({"new": {"disks": ["CREATING", "FAILED"], "instances": ["RUNNING"]}}, "the disk: FAILED"),
        ({"new": {"disks": ["READY"], "instances": ["RUNNING", "TERMINATED"]}, "verdicts": [""]}, "gone: TERMINATED"),
        ({"faults": {"disks create": [QUOTA]}}, "no staging disk: .*Quota 'HDB-TOTAL-GB' exceeded"),
        ({"faults": {"instances create": [QUOTA]}}, "no hydrator: .*exceeded"),
        ({"faults": {"instances get-guest-attributes": [DENIED]}}, "no verdict: .*permission"),
    ],
    ids=[
        "wrong-digest",
        "no-verdict-of-ours",
        "disk-failed",
        "hydrator-gone",
        "disk-quota",
        "hydrator-quota",
        "refused",
    ],
)
def test_a_failure_fails_the_job_and_leaves_nothing(cloud: Any, fill_job: FillJob, state: Any, said_why: str) -> None:
    cloud.set(**state)
    code, said = cloud.run(render_fill(fill_job))
    assert code == 1
    assert cloud.billing == set()
    assert "failed: the model is not staged. Mend the cause, then run pulumi up again: it starts over" in said
    assert re.search(said_why, said, re.DOTALL)


def test_a_refusal_is_not_tried_again(cloud: Any, fill_job: FillJob) -> None:
    cloud.set(faults={"disks create": [QUOTA, None]})
    assert cloud.run(render_fill(fill_job))[0] == 1
    assert cloud.calls("disks create") == 1
    assert cloud.calls("instances create") == 0


def test_a_passing_failure_is_waited_for(cloud: Any, fill_job: FillJob) -> None:
    cloud.set(faults={"instances get-guest-attributes": [BUSY, BUSY], "instances describe": [None, BUSY]})
    code, said = cloud.run(render_fill(fill_job))
    assert code == 0, said
    assert cloud.billing == {STAGING}


def test_leftovers_of_an_interrupted_run_are_removed_first(cloud: Any, fill_job: FillJob) -> None:
    cloud.set(disks={STAGING: there("READY")}, instances={HYDRATOR: there("RUNNING")})
    code, said = cloud.run(render_fill(fill_job))
    assert code == 0, said
    assert "removing the hydrator" in said
    assert cloud.billing == {STAGING}
    assert cloud.read()["disks"][STAGING]["flags"]["size"] == "200GB", "the disk is a new one"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_half_way_and_run_again(cloud: Any, fill_job: FillJob, how: signal.Signals) -> None:
    cloud.set(verdicts=[""])
    slow = dataclasses.replace(fill_job, poll_seconds=1)
    process = cloud.start(render_fill(slow))
    wait_for(lambda: HYDRATOR in cloud.billing)
    if how is signal.SIGTERM:
        os.kill(process.pid, how)
        process.communicate(timeout=30)
        assert process.returncode == 143
        assert cloud.billing == set(), "told to stop, it cleans up"
    else:
        cloud.end(process)
        assert cloud.billing == {STAGING, HYDRATOR}
    cloud.set(verdicts=["ok"])
    code, said = cloud.run(render_fill(fill_job))
    assert code == 0, said
    assert cloud.billing == {STAGING}


def test_the_whole_fill_has_a_time_limit(cloud: Any, fill_job: FillJob) -> None:
    cloud.set(verdicts=[""])
    began = time.monotonic()
    code, said = cloud.run(render_fill(dataclasses.replace(fill_job, timeout_seconds=2)))
    assert code == 1
    assert "no verdict in 2 seconds" in said
    assert time.monotonic() - began < 20
    assert cloud.billing == set()


def test_a_disk_that_is_never_ready_ends_with_the_time(cloud: Any, fill_job: FillJob) -> None:
    cloud.set(new={"disks": ["CREATING"], "instances": ["RUNNING"]})
    code, said = cloud.run(render_fill(dataclasses.replace(fill_job, timeout_seconds=1)))
    assert (code, cloud.billing) == (1, set())
    assert "the disk is not ready in time: CREATING" in said


def test_what_cannot_be_removed_is_named_loudly(cloud: Any, fill_job: FillJob) -> None:
    cloud.set(faults={"instances delete": [BUSY] * 3})
    code, said = cloud.run(render_fill(fill_job))
    assert code == 1, "a hydrator that stays is a failure even where the model is staged"
    assert f"STILL THERE AND BILLING in us-central1-b of acme-tpu-dev: instance {HYDRATOR}." in said
    assert cloud.billing == {HYDRATOR}


def test_a_disk_that_a_hydrator_holds_is_named_with_it(cloud: Any, fill_job: FillJob) -> None:
    in_use = "ERROR: (gcloud) The disk resource is already being used by an instance: HTTPError 400"
    cloud.set(faults={"instances delete": [BUSY] * 3, "disks delete": [in_use] * 3})
    code, said = cloud.run(render_fill(fill_job))
    assert code == 1
    assert f"BILLING in us-central1-b of acme-tpu-dev: instance {HYDRATOR} disk {STAGING}." in said
    assert cloud.billing == {HYDRATOR, STAGING}


def test_a_removal_that_fails_in_passing_is_tried_again(cloud: Any, fill_job: FillJob) -> None:
    cloud.set(faults={"instances delete": [BUSY, BUSY]})
    code, said = cloud.run(render_fill(fill_job))
    assert (code, cloud.billing) == (0, {STAGING}), said
    assert cloud.calls("instances delete") == 3


def test_a_role_that_was_just_granted_is_waited_for(cloud: Any, fill_job: FillJob) -> None:
    cloud.set(faults={"disks describe": [DENIED, DENIED]})
    code, said = cloud.run(render_fill(fill_job))
    assert code == 0, said
    assert said.count("waiting for the roles") == 2


def test_a_role_that_never_comes_ends_the_job_before_it_made_anything(cloud: Any, fill_job: FillJob) -> None:
    cloud.set(faults={"disks describe": [DENIED] * 500})
    code, said = cloud.run(render_fill(dataclasses.replace(fill_job, access_seconds=1)))
    assert code == 1
    assert "no access: " in said
    assert cloud.calls("disks create") == 0


def test_clean_removes_the_staging_disk_after_the_snapshot(cloud: Any, clean_job: CleanJob) -> None:
    states = there("CREATING", "UPLOADING", "UPLOADING", "READY")
    cloud.set(disks={STAGING: there("READY")}, snapshots={SNAPSHOT: states})
    code, said = cloud.run(render_clean(clean_job))
    assert code == 0, said
    assert cloud.billing == set()
    assert cloud.calls("disks delete") == 1
    assert cloud.calls("snapshots describe") == 4


@pytest.mark.parametrize(
    ("snapshot", "faults", "why"),
    [
        (there("CREATING", "FAILED"), {}, "the snapshot: FAILED"),
        (there("DELETING"), {}, "the snapshot: DELETING"),
        (there("READY"), {"snapshots describe": [DENIED, None]}, "the snapshot: ERROR"),
        (there("READY"), {"snapshots describe": [QUOTA, None]}, "Quota"),
    ],
    ids=["failed", "deleting", "refused", "quota"],
)
def test_clean_never_removes_a_disk_without_a_whole_snapshot(
    cloud: Any, clean_job: CleanJob, snapshot: Any, faults: Any, why: str
) -> None:
    cloud.set(disks={STAGING: there("READY")}, snapshots={SNAPSHOT: snapshot}, faults=faults)
    code, said = cloud.run(render_clean(clean_job))
    assert code == 1
    assert why in said
    assert cloud.billing == {STAGING}
    assert f"STILL THERE AND BILLING in us-central1-b of acme-tpu-dev: disk {STAGING}. Run pulumi up, which" in said


def test_clean_waits_for_a_snapshot_that_google_does_not_know_yet(cloud: Any, clean_job: CleanJob) -> None:
    cloud.set(
        disks={STAGING: there("READY")},
        snapshots={SNAPSHOT: there("CREATING", "READY")},
        faults={"snapshots describe": [GONE]},
    )
    assert cloud.run(render_clean(clean_job))[0] == 0
    assert cloud.billing == set()


def test_clean_has_a_time_limit(cloud: Any, clean_job: CleanJob) -> None:
    cloud.set(disks={STAGING: there("READY")}, snapshots={SNAPSHOT: there("UPLOADING")})
    code, said = cloud.run(render_clean(dataclasses.replace(clean_job, timeout_seconds=1)))
    assert (code, cloud.billing) == (1, {STAGING})
    assert "not ready in time: UPLOADING" in said


def test_clean_can_run_again(cloud: Any, clean_job: CleanJob) -> None:
    cloud.set(disks={STAGING: there("READY")}, snapshots={SNAPSHOT: there("READY")})
    assert cloud.run(render_clean(clean_job))[0] == 0
    assert cloud.run(render_clean(clean_job))[0] == 0
    assert cloud.calls("disks delete") == 1


def wait_for(true: Any) -> None:
    until = time.monotonic() + 20
    while not true():
        assert time.monotonic() < until, "it did not happen in 20 seconds"
        time.sleep(0.05)
