"""Cloud Run services: instances that are kept, all month; the others by the seconds and requests that usage names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.containers import job_size
from policies.estimate.location import locate
from policies.estimate.market import Market, Part, bill, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput, Unpriced
from policies.estimate.registry import Priced
from policies.money import HOURS_PER_MONTH
from policies.resources import Opaque, Resource

SERVICE: Final = "gcp:cloudrunv2/service:Service"
CONTAINERS: Final = ("template", "containers")
SECONDS: Final = HOURS_PER_MONTH * 3600
"""Of a month."""
KEPT: Final = (
    ("template", "scaling", "minInstanceCount"),
    ("scaling", "minInstanceCount"),
    ("scaling", "manualInstanceCount"),
)
"""Inputs that keep instances while nobody asks; the largest holds."""


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """One service. What it serves is usage: `executions` requests of `execution_seconds` each."""
    location = locate(resource, market.resources, "location")
    if isinstance(location, UnknownInput):
        return bill(resource, "", "service", (location,))
    return bill(resource, location, "service", _parts(resource, market, location))


def _parts(resource: Resource, market: Market, location: str) -> Iterator[Part]:
    size, kept = job_size(resource, CONTAINERS), _kept(resource)
    if isinstance(size, UnknownInput) or isinstance(kept, UnknownInput):
        yield from (part for part in (size, kept) if isinstance(part, UnknownInput))
        return
    usage = market.usage_of(resource)
    seconds = usage.executions * usage.execution_seconds
    for name, amount, unit in (("vcpu", size.vcpus, "vCPU-second"), ("memory", size.memory_gib, "GiB-second")):
        item = f"run.service.{name}"
        if kept:
            note = f"{kept} kept all month"
            yield market.line(f"kept {name}", f"{item}-kept", kept * amount * SECONDS, unit, location, note=note)
        yield market.used(resource, "executions", name, item, amount * seconds, unit, location)
    requests = usage.executions / 1_000_000
    yield market.used(resource, "executions", "requests", "run.service.requests", requests, "million", location)
    accelerator = resource.value("template", "nodeSelector", "accelerator")
    if accelerator:
        yield Unpriced(item="run.service.accelerator", reason="spotrail has no price for the GPUs of Cloud Run")


def _kept(resource: Resource) -> int | UnknownInput:
    most = 0
    for path in KEPT:
        found = resource.integer(*path)
        if isinstance(found, Opaque):
            return unknown(found, *path, decides="how many instances bill all month")
        most = max(most, found or 0)
    return most


PRICED: Final = Priced(types=(SERVICE,), price=price)
