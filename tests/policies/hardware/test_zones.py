"""Zones with v6e, and the places where a price is looked up."""

import pytest

from policies.hardware.errors import HardwareError
from policies.hardware.zones import check_zone, is_zone, price_locations, region_of, tpu_zones

LISTED = (
    "us-central1-b",
    "us-east1-d",
    "us-east5-a",
    "us-east5-b",
    "us-central1-ai1a",
    "us-south1-ai1b",
    "europe-west4-a",
    "asia-northeast1-b",
)


def test_the_zones_of_the_list() -> None:
    assert tpu_zones() == LISTED


@pytest.mark.parametrize("zone", LISTED)
def test_a_listed_zone_passes(zone: str) -> None:
    check_zone(zone)


@pytest.mark.parametrize("zone", ["us-central1-a", "us-central1-c"])
def test_a_zone_that_only_the_catalogue_knows_is_refused(zone: str) -> None:
    with pytest.raises(HardwareError) as refusal:
        check_zone(zone)
    lines = str(refusal.value).splitlines()
    assert lines[0] == f"v6e is not listed in {zone} (table of 2026-11, policies/hardware/zones.csv)."
    assert lines[1] == f"Zones with v6e: {', '.join(LISTED)}."
    assert lines[2] == "Did you mean us-central1-b? To allow a zone that is newer than the table: spotrail:extra_zones."


@pytest.mark.parametrize("zone", ["US-CENTRAL1-B", "us-central-1b", "us-central1b"])
def test_a_misspelt_zone_is_told_the_right_one(zone: str) -> None:
    with pytest.raises(HardwareError, match=r"Did you mean us-central1-b\?"):
        check_zone(zone)


def test_nothing_near_is_not_guessed() -> None:
    with pytest.raises(HardwareError) as refusal:
        check_zone("mars")
    assert "Did you mean" not in str(refusal.value)


def test_a_zone_that_the_user_vouches_for_passes() -> None:
    check_zone("us-west1-c", extra=["us-west1-c"])
    with pytest.raises(HardwareError, match="us-west1-c"):
        check_zone("us-west1-b", extra=["us-west1-c"])


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-central1-b", "us-central1"),
        ("us-south1-ai1b", "us-south1"),
        ("northamerica-northeast1-a", "northamerica-northeast1"),
        ("europe-west12-c", "europe-west12"),
    ],
)
def test_the_region_of_a_zone(zone: str, region: str) -> None:
    assert region_of(zone) == region
    assert is_zone(zone)
    assert not is_zone(region)


@pytest.mark.parametrize("place", ["us-central1", "us", "nam4", "global", "", "us-central1-", "US-CENTRAL1-B"])
def test_what_is_no_zone_has_no_region(place: str) -> None:
    assert not is_zone(place)
    with pytest.raises(HardwareError, match="is not a zone"):
        region_of(place)


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        ("us-east5-b", ("us-east5-b", "us-east5", "global")),
        ("us-south1-ai1b", ("us-south1-ai1b", "us-south1", "global")),
        ("US-EAST5", ("us-east5", "global")),
        ("EU", ("eu", "global")),
        ("NAM4", ("nam4", "global")),
        ("global", ("global",)),
    ],
)
def test_a_price_is_looked_up_in_the_zone_its_region_and_global_only(location: str, asked: tuple[str, ...]) -> None:
    assert price_locations(location) == asked
