"""Reserved addresses: internal, unused, in use, and by whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

ADDRESS = "gcp:compute/address:Address"
GLOBAL = "gcp:compute/globalAddress:GlobalAddress"
VM = "gcp:compute/instance:Instance"
NAT = "gcp:compute/routerNat:RouterNat"
REGION: Mapping[str, Value] = {"region": "us-central1"}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


@pytest.mark.parametrize(
    ("type", "inputs"),
    [(ADDRESS, {"addressType": "INTERNAL"}), (ADDRESS, {"ipVersion": "IPV6"}), (GLOBAL, {"addressType": "INTERNAL"})],
)
def test_internal_and_ipv6_addresses_are_free(
    make: Make, price_first: PriceFirst, type: str, inputs: Mapping[str, Value]
) -> None:
    found = price_first(make(type, inputs={**inputs, **REGION}))
    assert found.free.endswith("cost nothing")
    assert found.amount.monthly == 0


def test_a_reserved_address_that_nothing_uses_bills_more(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(ADDRESS, inputs=REGION))
    # 0.01 x 730
    assert found.amount.monthly == Decimal("7.3")
    assert found.title == "external address · unused"


@pytest.mark.parametrize(
    ("type", "inputs", "monthly"),
    [
        # 0.005 x 730; on a spot VM 0.0025 x 730
        (VM, {"zone": "us-central1-b"}, "3.65"),
        (VM, {"zone": "us-central1-b", "scheduling": {"provisioningModel": "SPOT"}}, "1.825"),
        (NAT, {"region": "us-central1"}, "3.65"),
    ],
)
def test_an_address_in_use(
    make: Make, price_first: PriceFirst, type: str, inputs: Mapping[str, Value], monthly: str
) -> None:
    address = make(ADDRESS, "front", REGION)
    user = make(type, "user", inputs, property_dependencies={"networkInterfaces": (address.urn,)})
    found = price_first(address, user)
    assert found.amount.monthly == Decimal(monthly)
    assert found.components[0].note == "by user"


def test_a_nat_gateway_names_its_address(make: Make, price_first: PriceFirst) -> None:
    address = make(ADDRESS, "front", {**REGION, "name": "exit"})
    gateway = make(NAT, "gateway", {"natIps": ("projects/p/regions/us-central1/addresses/exit",)})
    assert price_first(address, gateway).components[0].note == "by gateway"


def test_a_literal_address_is_found_in_the_interface_that_names_it(make: Make, price_first: PriceFirst) -> None:
    address = make(ADDRESS, "front", REGION, outputs={"address": "203.0.113.7"})
    interfaces = ({"accessConfigs": ({"natIp": "203.0.113.7"},)},)
    user = make(VM, "user", {"zone": "us-central1-b", "networkInterfaces": interfaces})
    assert price_first(address, user).components[0].item == "network.ip.in-use"


@pytest.mark.parametrize(
    ("inputs", "path"), [({"addressType": UNKNOWN}, "addressType"), ({"addressType": "EXTERNAL"}, "region")]
)
def test_what_cannot_be_seen_stays_unknown(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], path: str
) -> None:
    assert [part.path for part in price_first(make(ADDRESS, inputs=inputs)).unknown] == [path]


def test_a_global_address_needs_no_region(make: Make, price_first: PriceFirst) -> None:
    # This book has a price for an unused address in us-central1 only.
    assert [part.item for part in price_first(make(GLOBAL)).unpriced] == ["network.ip.unused"]


@pytest.mark.parametrize("status", ["TERMINATED", "SUSPENDED"])
def test_the_address_of_a_machine_that_does_not_run_bills_as_unused(
    make: Make, price_first: PriceFirst, status: str
) -> None:
    address = make(ADDRESS, "front", {**REGION, "address": "203.0.113.7"})
    interfaces = ({"accessConfigs": ({"natIp": "203.0.113.7"},)},)
    vm = make(VM, "head", {"zone": "us-central1-b", "desiredStatus": status, "networkInterfaces": interfaces})
    found = price_first(address, vm)
    # 0.01 x 730
    assert [(line.item, line.amount.monthly) for line in found.components] == [("network.ip.unused", Decimal("7.3"))]
    assert found.components[0].note == "head does not run: an address bills as unused meanwhile"
