"""Quotas that a stack runs into, and what a new project has of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import final

from policies.hardware.errors import HardwareError, hint
from policies.hardware.tables import provenance, rows, whole


@final
@dataclass(frozen=True, kw_only=True)
class Quota:
    """One quota of a project."""

    name: str
    """The id by which Google knows it, as in a quota request."""
    resource: str
    """What it counts: `tpu-v6e-chips`, `hyperdisk-ml-throughput`, `external-addresses`."""
    scope: str
    """`zone` or `region`: of what a project has one such pool each."""
    backend: str
    """`gce` or `tpu-vm` where the two draw from different pools; else empty."""
    capacity: str
    """`spot` or `on-demand` where the two draw from different pools; else empty."""
    default: int | None
    """What a new project has; None where that is not known: look before you count on it."""
    unit: str
    source: str
    """Where name and default come from, and how far they can be trusted."""


@cache
def quotas() -> tuple[Quota, ...]:
    """Every quota in the order of the table. Source: quotas.csv."""
    return tuple(
        Quota(
            name=row["name"],
            resource=row["resource"],
            scope=row["scope"],
            backend=row["backend"],
            capacity=row["capacity"],
            default=whole(row["default"]),
            unit=row["unit"],
            source=row["source"],
        )
        for row in rows("quotas")
    )


def quota(resource: str, backend: str = "", capacity: str = "") -> Quota:
    """The quota that `resource` draws from. `backend` and `capacity` decide where it has several pools.

    Raises HardwareError where no pool, or more than one, answers to that.
    """
    found = [
        one
        for one in quotas()
        if one.resource == resource and one.backend in ("", backend) and one.capacity in ("", capacity)
    ]
    if len(found) == 1:
        return found[0]
    known = sorted({one.resource for one in quotas()})
    asked = " ".join(part for part in (resource, backend, capacity) if part)
    raise HardwareError(
        f'no single quota for "{asked}" ({provenance("quotas")}). Resources: {", ".join(known)}.{hint(resource, known)}'
    )
