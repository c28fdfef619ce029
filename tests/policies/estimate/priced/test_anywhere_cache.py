"""Bucket caches: what usage says, and nothing without it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource

CACHE = "gcp:storage/anywhereCache:AnywhereCache"

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def test_a_cache_bills_what_it_holds_takes_in_and_serves(make: Make, price_first: PriceFirst) -> None:
    used = {"gib": "5120", "ingest_gib": "5120", "cache_read_gib": "100000", "class_b_operations": "2000000"}
    found = price_first(make(CACHE, inputs={"bucket": "data", "zone": "us-central1-b"}), it=used)
    # 5,120 x 0.09 = 460.80; 5,120 x 0.0032 = 16.384; 100,000 x 0.0006 = 60; 2,000 x 0.0002 = 0.40
    assert [(line.name, line.amount.monthly) for line in found.components] == [
        ("capacity", Decimal("460.8")),
        ("ingest", Decimal("16.384")),
        ("served", Decimal(60)),
        ("reads", Decimal("0.4")),
    ]


def test_without_usage_it_says_what_to_set(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(CACHE, inputs={"bucket": "data", "zone": "us-central1-b"}))
    assert found.complete
    assert not found.amount
    assert [line.note for line in found.components] == [
        "set usage.it.gib",
        "set usage.it.ingest_gib",
        "set usage.it.cache_read_gib",
        "set usage.it.class_b_operations",
    ]


def test_an_unseen_zone_is_named(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(CACHE, inputs={"bucket": "data", "zone": UNKNOWN}))
    assert [part.path for part in found.unknown] == ["zone"]
