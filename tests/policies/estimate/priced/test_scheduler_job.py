"""Cloud Scheduler: by the job."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from policies.estimate.model import ResourceEstimate
from policies.resources import Resource

JOB = "gcp:cloudscheduler/job:Job"


def test_a_job_bills_whether_it_runs_or_not(
    make: Callable[..., Resource], price_first: Callable[..., ResourceEstimate]
) -> None:
    assert price_first(make(JOB, inputs={"region": "us-central1"})).amount.monthly == Decimal("0.1")
    assert [part.path for part in price_first(make(JOB)).unknown] == ["region"]
