"""Image registries: decimal GB, virtual repositories."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import SECRET, UNKNOWN, Resource, Value

REPOSITORY = "gcp:artifactregistry/repository:Repository"


def test_a_registry_bills_decimal_gigabytes(
    make: Callable[..., Resource], price_first: Callable[..., ResourceEstimate]
) -> None:
    found = price_first(make(REPOSITORY, inputs={"location": "us-central1", "format": "DOCKER"}), it={"gib": "100"})
    # 100 GiB are 107.3741824 GB: x 0.10
    assert found.amount.monthly == Decimal("10.73741824")
    assert found.components[0].quantity == Decimal("107.3741824")
    assert found.title == "registry · docker"


def test_an_empty_registry_says_what_to_set(
    make: Callable[..., Resource], price_first: Callable[..., ResourceEstimate]
) -> None:
    found = price_first(make(REPOSITORY, "images", {"location": "us"}))
    assert (found.amount.monthly, found.components[0].note) == (Decimal(0), "set usage.images.gib")


def test_a_virtual_repository_holds_nothing(
    make: Callable[..., Resource], price_first: Callable[..., ResourceEstimate]
) -> None:
    found = price_first(make(REPOSITORY, inputs={"mode": "VIRTUAL_REPOSITORY"}), it={"gib": "100"})
    assert found.free == "a virtual repository holds nothing of its own"


@pytest.mark.parametrize("opaque", [UNKNOWN, SECRET])
def test_a_format_that_nobody_can_see_is_not_printed(
    make: Callable[..., Resource], price_first: Callable[..., ResourceEstimate], opaque: Value
) -> None:
    found = price_first(make(REPOSITORY, inputs={"location": "us", "format": opaque}))
    assert (found.title, found.complete) == ("registry", True)


def test_no_location_no_price(make: Callable[..., Resource], price_first: Callable[..., ResourceEstimate]) -> None:
    assert [part.path for part in price_first(make(REPOSITORY)).unknown] == ["location"]
