"""Cloud Run jobs: by the second while they run; a hydration job has its price once for each model version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.containers import job_size
from policies.estimate.disk_sizes import SNAPSHOT
from policies.estimate.hydration import hydration, job_items
from policies.estimate.location import locate
from policies.estimate.market import Market, Part, bill, unknown
from policies.estimate.model import OneOff, ResourceEstimate, UnknownInput, Unpriced
from policies.estimate.registry import Priced
from policies.resources import Opaque, Resource, ResourceSet

JOB: Final = "gcp:cloudrunv2/job:Job"
ROLE: Final = "hydrate"
"""Label `role` of the jobs of a model volume."""


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """The runs that usage names. The jobs of a model volume run once for each version: that is a one-off."""
    location = locate(resource, market.resources, "location")
    if isinstance(location, UnknownInput):
        return bill(resource, "", "job", (location,))
    if resource.value("labels", "role") == ROLE:
        return bill(resource, location, "hydration job", (), free="runs once for each model version: see the one-off")
    size, tasks = job_size(resource), resource.integer("template", "taskCount")
    if isinstance(tasks, Opaque):
        return bill(resource, location, "job", (unknown(tasks, "template", "taskCount", decides="how much runs"),))
    if isinstance(size, UnknownInput):
        return bill(resource, location, "job", (size,))
    usage = market.usage_of(resource)
    seconds = usage.executions * usage.execution_seconds * (1 if tasks is None else tasks)
    parts: list[Part] = [
        market.used(resource, "executions", name, item, amount * seconds, unit, location)
        for name, item, amount, unit in job_items(size)
    ]
    if resource.value("template", "template", "nodeSelector", "accelerator"):
        parts.append(Unpriced(item="run.job.accelerator", reason="spotrail has no price for the GPUs of Cloud Run"))
    return bill(resource, location, "job", parts)


def one_off(resource: Resource, market: Market) -> Iterator[OneOff]:
    """The hydration of a model version, from the job that fills: the one that does not wait for a snapshot."""
    if resource.value("labels", "role") == ROLE and not _waits_for_snapshot(resource, market.resources):
        yield hydration(resource, market, locate(resource, market.resources, "location"))


def _waits_for_snapshot(resource: Resource, resources: ResourceSet) -> bool:
    waits = (resources.get(urn) for urn in resource.options.dependencies)
    return any(found is not None and found.type == SNAPSHOT for found in waits)


PRICED: Final = Priced(types=(JOB,), price=price, one_off=one_off)
