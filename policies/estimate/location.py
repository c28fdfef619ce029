"""Where a resource lives, as far as its price goes. Nothing is assumed: no location, no price."""

from __future__ import annotations

from itertools import pairwise

from policies.estimate.market import unknown
from policies.estimate.model import UnknownInput
from policies.resources import Opaque, Resource, ResourceSet


def locate(resource: Resource, resources: ResourceSet, *keys: str, decides: str = "the prices") -> str | UnknownInput:
    """The zone, region or multi-region of a resource in lower case.

    It is the first of the inputs `keys` (default: zone, location, region) that is set, else the zone or region of its
    provider. An unknown one, or none at all, is an UnknownInput: there is no default region.
    """
    paths = keys or ("zone", "location", "region")
    provider = resources.provider_of(resource)
    sources = [(resource, key) for key in paths] + [(provider, key) for key in ("zone", "region") if provider]
    for source, key in sources:
        found = source.text(key) if source else None
        if isinstance(found, Opaque):
            return unknown(found, key, decides=decides)
        if found:
            return last_segment(found).lower()
    return UnknownInput(path=paths[0], reason=f"set neither here nor on the provider; it decides {decides}")


def last_segment(text: str) -> str:
    """The name at the end of a self link; a bare name is itself."""
    return text.rsplit("/", 1)[-1]


def segment_after(text: str, key: str) -> str | None:
    """`us-central1-b` of `projects/p/zones/us-central1-b/disks/d` and the key `zones`."""
    parts = text.split("/")
    return next((after for before, after in pairwise(parts) if before == key and after), None)
