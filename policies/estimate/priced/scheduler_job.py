"""Cloud Scheduler jobs: by the job, whether it runs or not."""

from __future__ import annotations

from typing import Final

from policies.estimate.location import locate
from policies.estimate.market import Market, bill
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.resources import Resource

JOB: Final = "gcp:cloudscheduler/job:Job"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """One job for a month. The free ones of a billing account are not counted: they are shared."""
    location = locate(resource, market.resources, "region")
    if isinstance(location, UnknownInput):
        return bill(resource, "", "scheduled job", (location,))
    return bill(resource, location, "scheduled job", (market.line("job", "scheduler.job", 1, "job-month", location),))


PRICED: Final = Priced(types=(JOB,), price=price)
