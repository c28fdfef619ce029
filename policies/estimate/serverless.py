"""What runs by the request: kept instances bill all month, the others by the seconds and requests that usage names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

from policies.estimate.market import Market, Part, unknown
from policies.estimate.model import UnknownInput
from policies.money import HOURS_PER_MONTH
from policies.resources import Opaque, Resource

RUN: Final = "run.service"
SECONDS: Final = HOURS_PER_MONTH * 3600
"""Of a month."""
PER_MILLION: Final = 1_000_000


@final
@dataclass(frozen=True, kw_only=True)
class Rate:
    """What one second of an instance takes of one thing that bills."""

    name: str
    """`vcpu`; the end of its item too."""
    amount: Decimal
    unit: str
    """Of a second: `vCPU-second`."""


def instance_rates(vcpus: Decimal, memory_gib: Decimal) -> tuple[Rate, ...]:
    """The rates of an instance of Cloud Run."""
    return (
        Rate(name="vcpu", amount=vcpus, unit="vCPU-second"),
        Rate(name="memory", amount=memory_gib, unit="GiB-second"),
    )


def request_parts(
    resource: Resource, market: Market, location: str, rates: tuple[Rate, ...], kept: int, *, stem: str = RUN
) -> Iterator[Part]:
    """The lines of what serves requests; `executions` of usage are requests of `execution_seconds` each.

    `kept` instances are there while nobody asks, at a price of their own. The items begin with `stem`.
    """
    usage = market.usage_of(resource)
    seconds = usage.executions * usage.execution_seconds
    for rate in rates:
        item, name = f"{stem}.{rate.name}", rate.name
        if kept:
            quantity, note = kept * rate.amount * SECONDS, f"{kept} kept all month"
            yield market.line(f"kept {name}", f"{item}-kept", quantity, rate.unit, location, note=note)
        yield market.used(resource, "executions", name, item, rate.amount * seconds, rate.unit, location)
    requests = usage.executions / PER_MILLION
    yield market.used(resource, "executions", "requests", f"{stem}.requests", requests, "million", location)


def kept_instances(resource: Resource, *paths: tuple[str, ...]) -> int | UnknownInput:
    """How many instances are kept while nobody asks: the largest of the inputs at `paths`."""
    most = 0
    for path in paths:
        found = resource.integer(*path)
        if isinstance(found, Opaque):
            return unknown(found, *path, decides="how many instances bill all month")
        most = max(most, found or 0)
    return most
