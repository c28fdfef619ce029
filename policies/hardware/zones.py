"""Zones that offer v6e, and how a zone, its region and the prices hang together."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, lru_cache
from typing import Final

from policies.hardware.errors import HardwareError, closest
from policies.hardware.tables import provenance, rows

_ZONE: Final = re.compile(r"(?P<region>[a-z]+-[a-z]+[0-9]+)-[a-z0-9]+")
"""`us-central1-b`, `us-south1-ai1b`: a region and one more part."""


@cache
def tpu_zones() -> tuple[str, ...]:
    """The zones in which Google lists v6e. A zone that only a price catalogue knows is not among them."""
    return tuple(row["zone"] for row in rows("zones"))


def check_zone(zone: str, extra: Collection[str] = ()) -> None:
    """Refuse a zone without v6e. `extra` are zones that the user vouches for because they are newer than the table.

    Raises HardwareError: which table, which zones have v6e, which one was probably meant.
    """
    valid = (*tpu_zones(), *extra)
    if zone in valid:
        return
    meant = _meant(zone, valid)
    raise HardwareError(
        f"v6e is not listed in {zone} ({provenance('zones')}).\n"
        f"Zones with v6e: {', '.join(valid)}.\n"
        f"{meant}To allow a zone that is newer than the table: spotrail:extra_zones."
    )


@lru_cache(maxsize=1024)
def is_zone(location: str) -> bool:
    """Whether `location` has the form of a zone: `us-central1-b`, but not `us-central1`, `us` or `nam4`."""
    return _ZONE.fullmatch(location) is not None


def region_of(zone: str) -> str:
    """The region of a zone: `us-central1` of `us-central1-b`, `us-south1` of `us-south1-ai1b`.

    Raises HardwareError for what has not the form of a zone.
    """
    found = _ZONE.fullmatch(zone)
    if found is None:
        raise HardwareError(f'"{zone}" is not a zone; a zone is a region and one more part, such as us-central1-b')
    return found["region"]


def price_locations(location: str) -> tuple[str, ...]:
    """Where the price book is asked for `location`, in this order and nowhere else; lower case.

    A zone: the zone, its region, `global`. A region or multi-region: itself, `global`. Never another region.
    """
    place = location.lower()
    wider = (region_of(place), "global") if is_zone(place) else ("global",)
    return (place, *wider) if place != "global" else wider


def _meant(zone: str, valid: Collection[str]) -> str:
    near = [other for other in valid if is_zone(zone.lower()) and other.startswith(region_of(zone.lower()) + "-")]
    found = closest(zone, near) or closest(zone, valid)
    return f"Did you mean {found}? " if found else ""
