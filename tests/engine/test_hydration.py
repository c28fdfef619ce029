"""A fill that fails, fails the `up`; the next one stops at the snapshot; a new attempt is another job, and it succeeds.

That is what the docstring of `infra/components/model_volume.py` promises, and no more: an `up` alone cannot start over.
"""

from __future__ import annotations

import json

import pytest
from pulumi import automation

from tests.engine.conftest import Standing
from tests.engine.stand import Stand

FILL = "llama-3f9a6c0b-fill"
FAILING = [{"on": "create", "type": "gcp:cloudrunv2/job:Job", "name": FILL, "kind": "failed-execution", "times": 1}]
SNAPSHOT, DISK = "gcp:compute/snapshot:Snapshot", "gcp:compute/disk:Disk"


@pytest.fixture(scope="module")
def failed(standing: Standing) -> Stand:
    """A stack whose first `up` has met a model with the wrong digest."""
    stand = standing("dev")
    stand.environment["SPOTRAIL_FAULTS"] = json.dumps(FAILING)
    with pytest.raises(automation.CommandError) as raised:
        stand.up()
    stand.environment["SPOTRAIL_FAULTS"] = "[]"
    assert FILL in str(raised.value)
    return stand


def types(stand: Stand) -> set[str]:
    return {one["type"] for one in stand.state().values()}


def named(stand: Stand, name: str) -> list[dict[str, object]]:
    return [one for urn, one in stand.state().items() if urn.endswith(f"::{name}")]


def test_a_failed_fill_leaves_the_job_and_no_volume(failed: Stand) -> None:
    (job,) = named(failed, FILL)
    assert job["initErrors"]
    assert {SNAPSHOT, DISK}.isdisjoint(types(failed))
    # What does not wait for the model is up.
    assert "gcp:storage/bucket:Bucket" in types(failed)


def test_an_up_alone_retries_without_a_difference_and_stops_at_the_snapshot(failed: Stand) -> None:
    with pytest.raises(automation.CommandError, match="staging") as raised:
        failed.up()
    assert "Snapshot" in str(raised.value)
    assert {SNAPSHOT, DISK}.isdisjoint(types(failed))


def test_a_new_attempt_is_another_job_and_finishes_the_up(failed: Stand) -> None:
    failed.settings({"hydration": {"attempt": 2}})
    done = failed.up()
    assert done["create"] > 0
    assert done["delete"] >= 1
    assert {SNAPSHOT, DISK} <= types(failed)
    assert named(failed, FILL) == []
    assert len(named(failed, f"{FILL}-2")) == 1
    assert set(failed.up()) == {"same"}
