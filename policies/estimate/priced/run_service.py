"""Cloud Run services of both generations of the API: kept instances bill all month, the others by usage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from policies.estimate.containers import job_size
from policies.estimate.location import locate
from policies.estimate.market import Market, Part, bill
from policies.estimate.model import ResourceEstimate, UnknownInput, Unpriced
from policies.estimate.registry import Priced
from policies.estimate.serverless import instance_rates, kept_instances, request_parts
from policies.resources import Resource

SERVICE: Final = "gcp:cloudrunv2/service:Service"
FIRST: Final = "gcp:cloudrun/service:Service"


@final
@dataclass(frozen=True, kw_only=True)
class _Schema:
    """Where the inputs of one generation stand."""

    containers: tuple[str, ...]
    kept: tuple[tuple[str, ...], ...]
    """Inputs that keep instances while nobody asks."""
    accelerator: tuple[str, ...]


SCHEMAS: Final = {
    SERVICE: _Schema(
        containers=("template", "containers"),
        kept=(
            ("template", "scaling", "minInstanceCount"),
            ("scaling", "minInstanceCount"),
            ("scaling", "manualInstanceCount"),
        ),
        accelerator=("template", "nodeSelector", "accelerator"),
    ),
    FIRST: _Schema(
        containers=("template", "spec", "containers"),
        kept=(
            ("template", "metadata", "annotations", "autoscaling.knative.dev/minScale"),
            ("metadata", "annotations", "run.googleapis.com/minScale"),
        ),
        accelerator=("template", "spec", "nodeSelector", "run.googleapis.com/accelerator"),
    ),
}


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """One service. What it serves is usage."""
    location = locate(resource, market.resources, "location")
    if isinstance(location, UnknownInput):
        return bill(resource, "", "service", (location,))
    return bill(resource, location, "service", _parts(resource, market, location, SCHEMAS[resource.type]))


def _parts(resource: Resource, market: Market, location: str, schema: _Schema) -> Iterator[Part]:
    size, kept = job_size(resource, schema.containers), kept_instances(resource, *schema.kept)
    if isinstance(size, UnknownInput) or isinstance(kept, UnknownInput):
        yield from (part for part in (size, kept) if isinstance(part, UnknownInput))
        return
    yield from request_parts(resource, market, location, instance_rates(size.vcpus, size.memory_gib), kept)
    if resource.value(*schema.accelerator):
        yield Unpriced(item="run.service.accelerator", reason="spotrail has no price for the GPUs of Cloud Run")


PRICED: Final = Priced(types=tuple(SCHEMAS), price=price)
