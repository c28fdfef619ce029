"""Secrets: versions are counted in every place they are replicated to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

SECRET = "gcp:secretmanager/secret:Secret"
VERSION = "gcp:secretmanager/secretVersion:SecretVersion"

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


@pytest.mark.parametrize(
    ("replication", "places"),
    [
        ({"auto": {}}, 1),
        ({"userManaged": {"replicas": ({"location": "us-central1"}, {"location": "us-east1"})}}, 2),
    ],
)
def test_a_version_is_counted_once_a_place(
    make: Make, price_first: PriceFirst, replication: Mapping[str, Value], places: int
) -> None:
    secret = make(SECRET, "token", {"replication": replication})
    version = make(VERSION, "token-1", {"secret": UNKNOWN}, property_dependencies={"secret": (secret.urn,)})
    found = price_first(version, secret)
    assert [(part.item, part.quantity, part.unit) for part in found.unpriced] == [
        ("secret.version", Decimal(places), "version-month")
    ]
    assert price_first(secret).free == "a secret costs nothing; its versions do"


def test_a_regional_version_is_in_one_place(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make("gcp:secretmanager/regionalSecretVersion:RegionalSecretVersion", inputs={"secret": "x"}))
    assert [part.quantity for part in found.unpriced] == [Decimal(1)]


def test_what_is_not_here_or_not_seen_is_not_counted(make: Make, price_first: PriceFirst) -> None:
    assert price_first(make(VERSION, inputs={"secret": "far"})).unpriced[0].quantity is None
    secret = make(SECRET, "token", {"replication": UNKNOWN})
    version = make(VERSION, "token-1", {"secret": UNKNOWN}, property_dependencies={"secret": (secret.urn,)})
    assert [part.path for part in price_first(version, secret).unknown] == ["secret.replication.userManaged.replicas"]
