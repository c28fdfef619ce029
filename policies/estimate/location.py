"""Where a resource lives, as far as its price goes. Nothing is assumed: no location, no price."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from policies.estimate.market import unknown
from policies.estimate.model import UnknownInput
from policies.resources import Opaque, Resource, ResourceSet

FALLBACKS: Final = MappingProxyType({"zone": ("zone",), "region": ("region", "zone")})
"""Inputs of the provider that stand in for an input of the resource."""
MULTI_REGIONS: Final = (("us-", "us"), ("northamerica-", "us"), ("europe-", "eu"), ("asia-", "asia"))
"""The multi-region in which a snapshot of a disk of those regions is stored, where nothing is said."""


def locate(resource: Resource, resources: ResourceSet, *keys: str, decides: str = "the prices") -> str | UnknownInput:
    """The zone, region or multi-region of a resource in lower case.

    It is the first of the inputs `keys` (default: zone, location, region) that is set. For a zone the provider's zone
    stands in, for a region the provider's region or that of its zone; for a location nothing does. An unknown one, or
    none at all, is an UnknownInput: there is no default region.
    """
    paths = keys or ("zone", "location", "region")
    found = _first(resource, paths, decides)
    if found is None and (provider := resources.provider_of(resource)):
        found = _first(provider, [key for path in paths for key in FALLBACKS.get(path, ())], decides)
    if found is None:
        return UnknownInput(path=paths[0], reason=f"set neither here nor on the provider; it decides {decides}")
    return found


def _first(source: Resource, keys: Iterable[str], decides: str) -> str | UnknownInput | None:
    """The place that the first of the inputs `keys` names; None where none of them is set."""
    for key in keys:
        found = source.text(key)
        if isinstance(found, Opaque):
            return unknown(found, key, decides=decides)
        if found:
            return last_segment(found).lower()
    return None


def places_named(resource: Resource, *path: str | int, decides: str) -> tuple[str, ...] | UnknownInput:
    """The zones or regions that the list at `path` names, in lower case; none where there is no list."""
    found = resource.items(*path)
    if isinstance(found, Opaque):
        return unknown(found, *path, decides=decides)
    places = []
    for index in range(len(found)):
        place = resource.text(*path, index)
        if isinstance(place, Opaque):
            return unknown(place, *path, index, decides=decides)
        if place:
            places.append(place.lower())
    return tuple(places)


def nearest_multi_region(place: str) -> str | UnknownInput:
    """Where a snapshot of a disk in that zone or region is stored, where nothing is said."""
    nearest = next((multi for prefix, multi in MULTI_REGIONS if place.startswith(prefix)), None)
    reason = f"not set: Google takes the multi-region nearest to {place}, which is not in our table"
    return nearest or UnknownInput(path="storageLocations", reason=reason)


def last_segment(text: str) -> str:
    """The name at the end of a self link; a bare name is itself."""
    return text.rsplit("/", 1)[-1]


def segment_after(text: str, key: str) -> str | None:
    """`us-central1-b` of `projects/p/zones/us-central1-b/disks/d` and the key `zones`."""
    parts = text.split("/")
    return next((after for before, after in pairwise(parts) if before == key and after), None)
