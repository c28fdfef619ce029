"""Caches of buckets (Anywhere Cache, now Rapid Cache): by what they hold, take in and serve, all of it usage."""

from __future__ import annotations

from typing import Final

from policies.estimate.location import locate
from policies.estimate.market import Market, bill
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.resources import Resource

CACHE: Final = "gcp:storage/anywhereCache:AnywhereCache"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """What the cache of one zone bills, on top of its bucket. It goes on billing what it holds when nobody reads."""
    location = locate(resource, market.resources, "zone")
    if isinstance(location, UnknownInput):
        return bill(resource, "", "bucket cache", (location,))
    usage = market.usage_of(resource)
    lines = (
        ("gib", "capacity", "capacity", usage.gib, "GiB-month"),
        ("ingest_gib", "ingest", "ingest", usage.ingest_gib, "GiB"),
        ("cache_read_gib", "served", "transfer", usage.cache_read_gib, "GiB"),
        ("class_b_operations", "reads", "operations", usage.class_b_operations / 1000, "1000-operations"),
    )
    parts = (
        market.used(resource, field, name, f"storage.rapid-cache.{item}", quantity, unit, location)
        for field, name, item, quantity, unit in lines
    )
    return bill(resource, location, "bucket cache", parts)


PRICED: Final = Priced(types=(CACHE,), price=price)
