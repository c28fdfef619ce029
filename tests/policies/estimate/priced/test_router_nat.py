"""Cloud NAT: gateway hours by VM, data, addresses."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from policies.estimate.model import Estimate, ResourceEstimate
from policies.resources import UNKNOWN, Resource

NAT = "gcp:compute/routerNat:RouterNat"
INPUTS = {"region": "us-central1", "natIpAllocateOption": "AUTO_ONLY"}

Make = Callable[..., Resource]


@pytest.mark.parametrize(
    ("vms", "gateway"),
    [
        # 20 x 0.0014 x 730 = 20.44; 32 x 0.0014 x 730 = 32.704; from 33 up 0.044 x 730 = 32.12
        ("20", "20.44"),
        ("32", "32.704"),
        ("33", "32.12"),
        ("500", "32.12"),
    ],
)
def test_a_gateway_bills_by_vm_up_to_a_flat_price(
    make: Make, price_first: Callable[..., ResourceEstimate], vms: str, gateway: str
) -> None:
    found = price_first(make(NAT, inputs=INPUTS), it={"vms": vms, "nat_gib": "1000"})
    # 1,000 x 0.045 of data, and one address at 0.005 x 730
    assert [line.amount.monthly for line in found.components] == [Decimal(gateway), Decimal(45), Decimal("3.65")]


def test_an_address_of_ones_own_bills_for_itself(make: Make, price_first: Callable[..., ResourceEstimate]) -> None:
    inputs = {**INPUTS, "natIpAllocateOption": "MANUAL_ONLY"}
    assert [line.name for line in price_first(make(NAT, inputs=inputs), it={"vms": "1"}).components] == [
        "gateway",
        "data",
    ]


def test_an_unused_gateway_costs_nothing_and_says_what_to_set(make: Make, price_stack: Callable[..., Estimate]) -> None:
    found = price_stack(make(NAT, inputs=INPUTS))
    assert (found.amount.monthly, found.complete) == (Decimal(0), True)
    assert [line.note for line in found.resources[0].components] == ["set usage.it.vms", "set usage.it.nat_gib"]
    assert "it: its address bills too, as soon as usage.it.vms is set" in found.notes


def test_how_its_address_is_allocated_decides_whether_it_bills(
    make: Make, price_first: Callable[..., ResourceEstimate]
) -> None:
    gateway = make(NAT, inputs={**INPUTS, "natIpAllocateOption": UNKNOWN})
    assert [part.path for part in price_first(gateway, it={"vms": "1"}).unknown] == ["natIpAllocateOption"]
    assert price_first(gateway).complete


def test_no_region_no_price(make: Make, price_first: Callable[..., ResourceEstimate]) -> None:
    assert [part.path for part in price_first(make(NAT)).unknown] == ["region"]


@pytest.mark.parametrize(
    ("changes", "addresses"),
    [
        ({}, 1),
        # 1,000 x 64 of 64,512 ports; x 65 is more than one address has
        ({"minPortsPerVm": 65}, 2),
        ({"minPortsPerVm": 4096}, 64),
        ({"enableDynamicPortAllocation": True}, 1),
    ],
)
def test_a_gateway_takes_as_many_addresses_as_its_ports_need(
    make: Make, price_first: Callable[..., ResourceEstimate], changes: dict[str, bool | int], addresses: int
) -> None:
    found = price_first(make(NAT, inputs={**INPUTS, **changes}), it={"vms": "1000"})
    assert [line.quantity for line in found.components if line.name == "address"] == [Decimal(addresses)]


@pytest.mark.parametrize("path", ["minPortsPerVm", "enableDynamicPortAllocation"])
def test_ports_that_nobody_can_see_leave_the_addresses_unknown(
    make: Make, price_first: Callable[..., ResourceEstimate], path: str
) -> None:
    found = price_first(make(NAT, inputs={**INPUTS, path: UNKNOWN}), it={"vms": "1000"})
    assert [part.path for part in found.unknown] == [path]
