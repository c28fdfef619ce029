"""The size of a Cloud Run job or service: what its containers may use, in the notation of Kubernetes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final, final

from policies.estimate.market import unknown
from policies.estimate.model import UnknownInput
from policies.resources import Opaque, Resource, ResourceError, dotted

CONTAINERS: Final = ("template", "template", "containers")
DEFAULTS: Final = MappingProxyType({"cpu": "1", "memory": "512Mi"})
"""What a container gets that sets no limit. Source: https://cloud.google.com/run/docs/configuring/jobs/memory-limits"""
_QUANTITY: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<suffix>m|k|M|G|T|Ki|Mi|Gi|Ti)?")
_FACTORS: Final = MappingProxyType(
    {
        "": Decimal(1),
        "m": Decimal("0.001"),
        **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGT", start=1)},
        **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGT", start=1)},
    }
)
_GIB: Final = 1024**3


@final
@dataclass(frozen=True, kw_only=True)
class JobSize:
    """What one task of a job may use."""

    vcpus: Decimal
    memory_gib: Decimal


def job_size(job: Resource, at: tuple[str, ...] = CONTAINERS) -> JobSize | UnknownInput:
    """The size of a job or, with `at` the path of its containers, of an instance of a service: the sum of them.

    Raises ResourceError for a limit that is no quantity.
    """
    containers = job.items(*at)
    if isinstance(containers, Opaque):
        return unknown(containers, *at, decides="what a second of it costs")
    sums = {"cpu": Decimal(0), "memory": Decimal(0)}
    for index in range(max(1, len(containers))):
        for name in sums:
            path: tuple[str | int, ...] = (*at, index, "resources", "limits", name)
            found = job.text(*path)
            if isinstance(found, Opaque):
                return unknown(found, *path, decides="what a second of it costs")
            sums[name] += quantity(job, path, found or DEFAULTS[name])
    return JobSize(vcpus=sums["cpu"], memory_gib=sums["memory"] / _GIB)


def environment(job: Resource) -> dict[str, str | Opaque]:
    """The environment variables of a job's containers that have a value."""
    found: dict[str, str | Opaque] = {}
    containers = job.items(*CONTAINERS)
    for index in range(0 if isinstance(containers, Opaque) else len(containers)):
        variables = job.items(*CONTAINERS, index, "envs")
        for place in range(0 if isinstance(variables, Opaque) else len(variables)):
            name, value = (job.text(*CONTAINERS, index, "envs", place, key) for key in ("name", "value"))
            if isinstance(name, str) and value is not None:
                found[name] = value
    return found


def quantity(job: Resource, path: tuple[str | int, ...], text: str) -> Decimal:
    """The number that a quantity such as 2, 500m or 512Mi stands for. Raises ResourceError for anything else."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ResourceError(f"{job.urn}: {dotted(path)} is {text!r}; it must be a quantity such as 2, 500m or 512Mi")
    return Decimal(match["number"]) * _FACTORS[match["suffix"] or ""]
