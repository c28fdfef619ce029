"""What a read from a bucket in another place is called in the price book. Source: the transfer rows of the book."""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType
from typing import Final

from policies.hardware.zones import is_zone, region_of

CONTINENTS: Final = (
    ("us", "north-america"),
    ("northamerica", "north-america"),
    ("nam", "north-america"),
    ("europe", "europe"),
    ("eu", "europe"),
    ("asia", "asia-pacific"),
    ("australia", "australia"),
    ("southamerica", "south-america"),
    ("africa", "africa"),
    ("me", "middle-east"),
)
"""What the first part of a location begins with, and where that is; the first that fits holds."""

DUAL_REGIONS: Final = MappingProxyType(
    {
        "nam4": ("us-central1", "us-east1"),
        "eur4": ("europe-north1", "europe-west4"),
        "asia1": ("asia-northeast1", "asia-northeast2"),
    }
)
"""Predefined dual-regions: a read in one of the two regions is a read at home."""


REPLICATED: Final = MappingProxyType(
    {"us": "us", "eu": "eu", "asia": "asia", "nam4": "us", "eur4": "eu", "asia1": "asia"}
)
"""Locations that copy what is written between regions, and under which multi-region the book has the price of that."""


def transfer_item(source: str, reader: str, homes: Collection[str] = ()) -> str | None:
    """The item of a read from the bucket location `source` in the zone or region `reader`; None where it is free.

    Free are the same region and those of a dual-region, which `homes` names where the bucket chose them itself. A
    multi-region bucket is not free even on its own continent.
    """
    region = region_of(reader) if is_zone(reader) else reader
    home = region_of(source) if is_zone(source) else source
    if region == home or region in homes or region in DUAL_REGIONS.get(source, ()):
        return None
    return f"transfer.{continent(source)}.{continent(region)}"


def continent(location: str) -> str:
    """The continent of a region, multi-region or dual-region, as the book calls it; the location where unknown."""
    first = location.partition("-")[0]
    return next((found for start, found in CONTINENTS if first.startswith(start)), location)
