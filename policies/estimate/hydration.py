"""What it costs, once for each model version, to fill a model volume: staging disk, hydrator VM, the job itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

from policies.estimate.capacity import Capacity
from policies.estimate.containers import JobSize, environment, job_size
from policies.estimate.fill_environment import (
    BOOT_GIB,
    BOOT_TYPE,
    MACHINE,
    STAGING_GIB,
    STAGING_IOPS,
    STAGING_THROUGHPUT,
    STAGING_TYPE,
    ZONE,
)
from policies.estimate.hosts import Fleet, Terms, machine_parts
from policies.estimate.market import Market, Part
from policies.estimate.model import CostComponent, OneOff, UnknownInput, Unpriced
from policies.estimate.volume import Volume, volume_parts
from policies.money import HOURS_PER_MONTH
from policies.resources import Opaque, Resource, ResourceError

SECONDS: Final = 3600


def hydration(job: Resource, market: Market, location: str | UnknownInput) -> OneOff:
    """The price of one run of the job `job`, which says in its environment what it makes and removes again.

    `location` is the region of the job. Its length is the usage field `hydration_hours`.
    """
    hours = market.usage_of(job).hydration_hours
    parts = tuple(_parts(job, market, location, hours))
    return OneOff(
        name="hydration",
        urn=job.urn,
        lines=tuple(part for part in parts if isinstance(part, CostComponent)),
        unpriced=tuple(_unpriced(part) for part in parts if isinstance(part, Unpriced | UnknownInput)),
        note=f"once for each model version; {hours:,f} h of staging disk, hydrator VM and job",
    )


def job_items(size: JobSize) -> tuple[tuple[str, str, Decimal, str], ...]:
    """What a second of a job bills: name of the line, item, amount, unit."""
    return (
        ("job vCPU", "run.job.vcpu", size.vcpus, "vCPU-second"),
        ("job memory", "run.job.memory", size.memory_gib, "GiB-second"),
    )


def _parts(job: Resource, market: Market, location: str | UnknownInput, hours: Decimal) -> Iterator[Part]:
    said = environment(job)
    zone = _word(said, ZONE)
    if isinstance(zone, UnknownInput):
        yield zone
    else:
        share = Fraction(hours) / HOURS_PER_MONTH
        yield from _disk(market, _staging(job, said), zone, "staging disk", share)
        yield from _hydrator(market, said, zone, share, f"{hours:,f} h")
        yield from _disk(market, _boot(job, said), zone, "hydrator boot disk", share)
    size = job_size(job)
    if isinstance(size, UnknownInput) or isinstance(location, UnknownInput):
        yield from (part for part in (size, location) if isinstance(part, UnknownInput))
        return
    for name, item, amount, unit in job_items(size):
        yield market.line(name, item, amount * hours * SECONDS, unit, location)


def _hydrator(
    market: Market, said: Mapping[str, str | Opaque], zone: str, share: Fraction, long: str
) -> Iterator[Part]:
    machine = _word(said, MACHINE)
    if isinstance(machine, UnknownInput):
        yield machine
        return
    terms = Terms(location=zone, capacity=Capacity.ON_DEMAND, share=share, said=long)
    yield from machine_parts(market, Fleet(machine_type=machine, terms=terms))


def _disk(market: Market, volume: Volume | UnknownInput, zone: str, name: str, share: Fraction) -> Iterator[Part]:
    if isinstance(volume, UnknownInput):
        yield volume
    else:
        yield from volume_parts(market, volume, zone, name=name, share=share)


def _staging(job: Resource, said: Mapping[str, str | Opaque]) -> Volume | UnknownInput:
    kind, gib = _word(said, STAGING_TYPE), _whole(job, said, STAGING_GIB)
    if isinstance(kind, UnknownInput):
        return kind
    iops, throughput = (_whole(job, said, key) if key in said else None for key in (STAGING_IOPS, STAGING_THROUGHPUT))
    return Volume(type=kind, gib=gib, iops=iops, throughput=throughput)


def _boot(job: Resource, said: Mapping[str, str | Opaque]) -> Volume | UnknownInput:
    kind = _word(said, BOOT_TYPE)
    return kind if isinstance(kind, UnknownInput) else Volume(type=kind, gib=_whole(job, said, BOOT_GIB))


def _word(said: Mapping[str, str | Opaque], key: str) -> str | UnknownInput:
    found = said.get(key)
    if isinstance(found, str) and found:
        return found
    reason = found.value if isinstance(found, Opaque) else "not in the environment of the job"
    return UnknownInput(path=key, reason=reason)


def _whole(job: Resource, said: Mapping[str, str | Opaque], key: str) -> int | UnknownInput:
    found = _word(said, key)
    if isinstance(found, UnknownInput):
        return found
    if not found.isdecimal():
        raise ResourceError(f"{job.urn}: {key} is {found!r}; it must be a whole number")
    return int(found)


def _unpriced(part: Unpriced | UnknownInput) -> Unpriced:
    return part if isinstance(part, Unpriced) else Unpriced(item=part.path, reason=part.reason)
