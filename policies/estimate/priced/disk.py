"""Disks of their own: zonal and regional, every type, priced by what is provisioned and not by what is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.disk_sizes import inherited_gib
from policies.estimate.location import locate
from policies.estimate.market import Market, Part, bill, joined
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.estimate.volume import ML, Inputs, Volume, read_volume, volume_parts
from policies.resources import Resource

DISK: Final = "gcp:compute/disk:Disk"
REGION_DISK: Final = "gcp:compute/regionDisk:RegionDisk"
BILLED: Final = "billed whether read or not"
OWN: Final = Inputs()
"""The inputs of a disk are those of its resource."""


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """Capacity and provisioned performance of one disk. A disk of a storage pool bills with its pool."""
    regional = resource.type == REGION_DISK
    volume = read_volume(resource, OWN, inherited_gib(resource, market.resources), regional=regional)
    location = locate(resource, market.resources, "region" if regional else "zone")
    place = location if isinstance(location, str) else ""
    if isinstance(volume, UnknownInput):
        unseen = [part for part in (volume, location) if isinstance(part, UnknownInput)]
        return bill(resource, place, "disk", unseen)
    if resource.value("storagePool"):
        return bill(resource, place, volume.type, (), free="its storage pool bills for it")
    if isinstance(location, UnknownInput):
        return bill(resource, "", _title(resource, volume), (location,))
    note = joined(BILLED, _shared(resource, market, volume)) if volume.type == ML else ""
    parts = market.kept(_parts, volume, location, note)
    return bill(resource, location, _title(resource, volume), parts)


def _parts(market: Market, volume: Volume, location: str, note: str) -> Iterator[Part]:
    yield from volume_parts(market, volume, location, note=note)


def _shared(resource: Resource, market: Market, volume: Volume) -> str:
    """What is left for each reader, where usage says how many there are."""
    readers = int(market.usage_of(resource).attached_readers)
    if not readers or not isinstance(volume.throughput, int):
        return ""
    return f"{readers} readers share it: {volume.throughput // readers:,} MiB/s each"


def _title(resource: Resource, volume: Volume) -> str:
    shared = resource.value("accessMode") == "READ_ONLY_MANY"
    return " · ".join(
        part
        for part in (volume.type, "read-only to many" if shared else "", "regional" if volume.regional else "")
        if part
    )


PRICED: Final = Priced(types=(DISK, REGION_DISK), price=price)
