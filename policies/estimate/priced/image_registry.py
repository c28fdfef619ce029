"""Image registries: Artifact Registry bills decimal GB, the one place where Google does."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from policies.estimate.location import locate
from policies.estimate.market import Market, bill
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.resources import Opaque, Resource

REPOSITORY: Final = "gcp:artifactregistry/repository:Repository"
GB_PER_GIB: Final = Decimal("1.073741824")


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """What a repository holds."""
    kind = resource.text("format")
    title = "registry" if isinstance(kind, Opaque) else f"registry · {(kind or 'docker').lower()}"
    if resource.value("mode") == "VIRTUAL_REPOSITORY":
        return bill(resource, "", title, (), free="a virtual repository holds nothing of its own")
    location = locate(resource, market.resources, "location", "region")
    if isinstance(location, UnknownInput):
        return bill(resource, "", title, (location,))
    gib = market.usage_of(resource).gib
    line = market.used(
        resource,
        "gib",
        "capacity",
        "artifact-registry.capacity",
        gib * GB_PER_GIB,
        "GB-month",
        location,
        note=f"{gib:,f} GiB in decimal GB",
    )
    return bill(resource, location, title, (line,))


PRICED: Final = Priced(types=(REPOSITORY,), price=price)
