"""Cloud Functions: the second generation bills as a Cloud Run service, the first has items of its own."""

from __future__ import annotations

from decimal import Decimal
from types import MappingProxyType
from typing import Final

from policies.estimate.containers import quantity
from policies.estimate.location import locate
from policies.estimate.market import Market, bill, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.estimate.serverless import RUN, Rate, instance_rates, kept_instances, request_parts
from policies.resources import Opaque, Resource

FIRST: Final = "gcp:cloudfunctions/function:Function"
SECOND: Final = "gcp:cloudfunctionsv2/function:Function"
STEM: Final = "functions"
"""What the items of the first generation begin with."""
MIB: Final = 1024
DEFAULT_MIB: Final = 256
GHZ: Final = MappingProxyType({128: "0.2", 256: "0.4", 512: "0.8", 1024: "1.4", 2048: "2.4", 4096: "4.8", 8192: "4.8"})
"""GHz that the first generation gives for MiB of memory. Source: https://cloud.google.com/functions/pricing"""
VCPUS: Final = MappingProxyType(
    {
        128: "0.083",
        256: "0.167",
        512: "0.333",
        1024: "0.583",
        2048: "1",
        4096: "2",
        8192: "2",
        16384: "4",
        32768: "8",
    }
)
"""vCPUs that the second gives where none are asked for. Source: https://cloud.google.com/functions/docs/configuring/memory"""
_DECIDES: Final = "what a second of it costs"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """One function. Its calls are usage: `executions` of `execution_seconds` each."""
    first = resource.type == FIRST
    location = locate(resource, market.resources, "region" if first else "location")
    rates = _first(resource) if first else _second(resource)
    kept = kept_instances(resource, ("minInstances",) if first else ("serviceConfig", "minInstanceCount"))
    place = location if isinstance(location, str) else ""
    unseen = [part for part in (location, rates, kept) if isinstance(part, UnknownInput)]
    if isinstance(location, UnknownInput) or isinstance(rates, UnknownInput) or isinstance(kept, UnknownInput):
        return bill(resource, place, "function", unseen)
    parts = request_parts(resource, market, location, rates, kept, stem=STEM if first else RUN)
    return bill(resource, location, "function", parts)


def _first(function: Resource) -> tuple[Rate, ...] | UnknownInput:
    found = function.integer("availableMemoryMb")
    if isinstance(found, Opaque):
        return unknown(found, "availableMemoryMb", decides=_DECIDES)
    mib = DEFAULT_MIB if found is None else found
    ghz = _for_memory(GHZ, Decimal(mib))
    if ghz is None:
        return UnknownInput(path="availableMemoryMb", reason=f"{mib:,} MiB is more than the first generation has")
    return (
        Rate(name="cpu", amount=ghz, unit="GHz-second"),
        Rate(name="memory", amount=Decimal(mib) / MIB, unit="GiB-second"),
    )


def _second(function: Resource) -> tuple[Rate, ...] | UnknownInput:
    config = "serviceConfig"
    memory, cpu = (function.text(config, key) for key in ("availableMemory", "availableCpu"))
    for key, value in (("availableMemory", memory), ("availableCpu", cpu)):
        if isinstance(value, Opaque):
            return unknown(value, config, key, decides=_DECIDES)
    gib = quantity(function, (config, "availableMemory"), str(memory or f"{DEFAULT_MIB}Mi")) / MIB**3
    if cpu:
        return instance_rates(quantity(function, (config, "availableCpu"), str(cpu)), gib)
    vcpus = _for_memory(VCPUS, gib * MIB)
    if vcpus is None:
        return UnknownInput(path=f"{config}.availableCpu", reason=f"not set, and not known for {gib:,f} GiB of memory")
    return instance_rates(vcpus, gib)


def _for_memory(table: MappingProxyType[int, str], mib: Decimal) -> Decimal | None:
    """What goes with so much memory: the entry of the next size up; None above the largest."""
    return next((Decimal(value) for size, value in table.items() if mib <= size), None)


PRICED: Final = Priced(types=(FIRST, SECOND), price=price)
