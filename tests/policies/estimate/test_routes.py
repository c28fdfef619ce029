"""Reads from elsewhere: which route they take in the book, and when they are free."""

from __future__ import annotations

import pytest

from policies.estimate.routes import continent, transfer_item


@pytest.mark.parametrize(
    ("source", "reader", "item"),
    [
        ("us-east5", "us-east5-b", None),
        ("us-east5", "us-east5", None),
        ("nam4", "us-central1-b", None),
        ("nam4", "us-east5-b", "transfer.north-america.north-america"),
        ("us", "us-central1-b", "transfer.north-america.north-america"),
        ("eu", "europe-west4-a", "transfer.europe.europe"),
        ("europe-west4", "us-east5-b", "transfer.europe.north-america"),
        ("asia-northeast1", "southamerica-west1-a", "transfer.asia-pacific.south-america"),
        ("northamerica-northeast1", "us-east1-d", "transfer.north-america.north-america"),
    ],
)
def test_a_read_has_a_route_unless_it_is_at_home(source: str, reader: str, item: str | None) -> None:
    assert transfer_item(source, reader) == item


def test_a_place_that_nobody_knows_is_its_own_continent() -> None:
    assert continent("moon-base1") == "moon-base1"
