"""The address plan: private, large enough, and a region that stays where it is when another comes."""

from __future__ import annotations

import pytest

from infra.plan.addresses import private_range, room, subnetworks
from policies.errors import InputError


def test_each_region_gets_a_quarter_and_keeps_it() -> None:
    one = subnetworks("10.64.0.0/20", ["us-central1"])
    three = subnetworks("10.64.0.0/20", ["us-central1", "us-east5", "europe-west4"])
    assert one == {"us-central1": "10.64.0.0/22"}
    assert three == {"us-central1": "10.64.0.0/22", "us-east5": "10.64.4.0/22", "europe-west4": "10.64.8.0/22"}


def test_google_keeps_four_addresses() -> None:
    assert room("10.64.0.0/22") == 1020
    assert room("10.0.0.0/29") == 4


@pytest.mark.parametrize(
    ("cidr", "why"),
    [
        ("10.64.0.1/20", r"A range is named by its first address\. Did you mean 10\.64\.0\.0/20\?"),
        ("10.64.0.0/33", "It must be an IPv4 range such as 10.64.0.0/20"),
        ("everything", "It must be an IPv4 range"),
        ("fd00::/20", "It must be an IPv4 range"),
        ("8.8.0.0/16", "It must lie in a private range: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16"),
        ("8.8.8.0/16", "It must lie in a private range"),
        ("10.0.0.0/28", "It must be /8 to /27: each region gets a quarter of it"),
        ("10.0.0.0", "It must be /8 to /27"),
        ("10.0.0.0/7", "It must lie in a private range"),
    ],
)
def test_a_range_that_cannot_be(cidr: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        private_range(cidr)


def test_a_range_that_is_too_small_for_its_regions() -> None:
    assert subnetworks("10.0.0.0/27", ["a"]) == {"a": "10.0.0.0/29"}
    with pytest.raises(InputError, match="It must be /8 to /27: each region gets a quarter of it"):
        subnetworks("10.0.0.0/28", ["a"])
    with pytest.raises(InputError, match="It has room for 4 regions; the stack is in 5: a, b, c, d, e"):
        subnetworks("10.0.0.0/20", ["a", "b", "c", "d", "e"])
