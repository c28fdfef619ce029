"""TPUs of the TPU API: chips and hosts, terms, other generations, queued resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import Estimate, ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

VM = "gcp:tpu/v2Vm:V2Vm"
QUEUED = "gcp:tpu/v2QueuedResource:V2QueuedResource"
SPOT: Mapping[str, Value] = {"spot": True}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]
RefusalOf = Callable[[Resource], str]


@pytest.mark.parametrize(
    ("accelerator", "title", "hourly"),
    [
        # chips x 2.70 an hour; the hosts of a slice share its chips and do not multiply them.
        ("v6e-1", "v6e-1 · 1 host · 1 chip · on demand", "2.70"),
        ("v6e-8", "v6e-8 · 1 host · 8 chips · on demand", "21.60"),
        ("v6e-16", "v6e-16 · 4 hosts · 16 chips · on demand", "43.20"),
        ("v6e-256", "v6e-256 · 64 hosts · 256 chips · on demand", "691.20"),
    ],
)
def test_a_slice_bills_its_chips_once(
    make: Make, price_first: PriceFirst, accelerator: str, title: str, hourly: str
) -> None:
    found = price_first(make(VM, inputs={"acceleratorType": accelerator, "zone": "us-east5-b"}))
    assert found.title == title
    assert found.amount.hourly == Decimal(hourly)
    assert found.complete
    assert found.location == "us-east5-b"
    assert "boot disk of the TPU VMs are included" in found.components[0].note


def test_slices_add_up(make: Make, price_stack: Callable[..., Estimate]) -> None:
    slices = [make(VM, name, {"acceleratorType": "v6e-16", "zone": "us-east5-b"}) for name in ("red", "green", "blue")]
    assert price_stack(*slices[:2]).amount.hourly == Decimal("86.40")
    # 3 x 16 x 2.70 = 129.60 an hour, x 730 = 94,608 a month.
    assert price_stack(*slices).amount.hourly == Decimal("129.60")
    assert price_stack(*slices).amount.monthly == Decimal(94608)


@pytest.mark.parametrize(
    ("config", "title", "hourly"),
    [
        (SPOT, "v6e-16 · 4 hosts · 16 chips · spot", "9.60"),
        ({"preemptible": True}, "v6e-16 · 4 hosts · 16 chips · spot", "9.60"),
        # Both words for one thing: priced once.
        ({"spot": True, "preemptible": True}, "v6e-16 · 4 hosts · 16 chips · spot", "9.60"),
        ({"spot": False}, "v6e-16 · 4 hosts · 16 chips · on demand", "43.20"),
        ({}, "v6e-16 · 4 hosts · 16 chips · on demand", "43.20"),
        ({"reserved": True}, "v6e-16 · 4 hosts · 16 chips · reserved", "43.20"),
    ],
)
def test_terms_decide_the_price_in_program_and_state_alike(
    make: Make, price_first: PriceFirst, config: Mapping[str, Value], title: str, hourly: str
) -> None:
    inputs = {"acceleratorType": "v6e-16", "zone": "us-central1-b", "schedulingConfig": config}
    answered = {**inputs, "acceleratorConfig": {"type": "V6E", "topology": "4x4"}}
    for found in (
        price_first(make(VM, inputs=inputs)),
        price_first(make(VM, inputs=inputs, outputs=answered)),
        price_first(make(VM, outputs=answered)),
    ):
        assert (found.title, found.amount.hourly) == (title, Decimal(hourly))
        assert ("a commitment may make it cheaper" in found.components[0].note) == ("reserved" in config)


@pytest.mark.parametrize(
    ("config", "both"),
    [({"spot": True, "reserved": True}, "spot and reserved"), ({"preemptible": True, "reserved": True}, "preemptible")],
)
def test_terms_that_contradict_each_other_are_refused(
    make: Make, refusal_of: RefusalOf, config: Mapping[str, Value], both: str
) -> None:
    inputs = {"acceleratorType": "v6e-8", "zone": "us-central1-b", "schedulingConfig": config}
    assert re.search(rf"::it: schedulingConfig has {both}", refusal_of(make(VM, inputs=inputs)))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {"acceleratorType": "v6e-4", "acceleratorConfig": {"type": "V6E", "topology": "2x2"}},
            "acceleratorType and acceleratorConfig are both set",
        ),
        ({"acceleratorConfig": {"type": "V6E", "topology": "4x2"}}, r"topology \"4x2\" .* Did you mean 2x4\?"),
        ({"acceleratorConfig": {"type": "V6E"}}, r"acceleratorConfig\.topology is None; it must be text"),
        ({"acceleratorType": "v6e-512"}, r"accelerator type \"v6e-512\" is not a v6e shape"),
        ({"acceleratorType": "V6E-8"}, r"accelerator type \"V6E-8\" is not a v6e shape"),
        ({"acceleratorType": 8}, r"acceleratorType is 8; it must be text"),
    ],
)
def test_a_shape_that_does_not_exist_is_refused(
    make: Make, refusal_of: RefusalOf, inputs: Mapping[str, Value], message: str
) -> None:
    assert re.search(message, refusal_of(make(VM, inputs={**inputs, "zone": "us-central1-b"})))


@pytest.mark.parametrize(
    ("inputs", "item", "name"),
    [
        ({}, "tpu.v2-8", "v2-8 (provider default)"),
        ({"acceleratorType": "v5litepod-16"}, "tpu.v5litepod-16", "v5litepod-16"),
        ({"acceleratorConfig": {"type": "V4", "topology": "2x2x1"}}, "tpu.V4", "V4 2x2x1"),
    ],
)
def test_another_generation_is_never_priced_as_v6e(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], item: str, name: str
) -> None:
    found = price_first(make(VM, inputs={**inputs, "zone": "us-central1-b"}))
    assert not found.components
    assert found.nothing_known
    assert [(part.item, part.quantity, part.unit) for part in found.unpriced] == [(item, Decimal(1), "slice-hour")]
    assert name in found.unpriced[0].reason
    assert found.title == name


def test_a_configuration_is_a_shape_too(make: Make, price_first: PriceFirst) -> None:
    config = {"type": "V6E", "topology": "2x4"}
    found = price_first(make(VM, inputs={"acceleratorConfig": config, "zone": "us-central1-b"}))
    assert found.title == "v6e-8 · 1 host · 8 chips · on demand"


def test_a_price_that_the_book_lacks_is_said_to_be_missing(make: Make, price_stack: Callable[..., Estimate]) -> None:
    inputs = {"acceleratorType": "v6e-16", "zone": "us-east5-b", "schedulingConfig": SPOT}
    found = price_stack(make(VM, inputs=inputs))
    (missing,) = found.resources[0].unpriced
    assert missing.reason.startswith(
        "no spot price for tpu.v6e.chip in us-east5-b, us-east5 or global (book of 2026-11"
    )
    assert (missing.quantity, missing.unit) == (Decimal(16), "chip-hour")
    assert found.resources[0].nothing_known
    assert not found.complete


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"acceleratorType": UNKNOWN, "zone": "us-central1-b"}, "acceleratorType"),
        (
            {"acceleratorConfig": {"type": "V6E", "topology": UNKNOWN}, "zone": "us-central1-b"},
            "acceleratorConfig.topology",
        ),
        ({"acceleratorType": "v6e-8", "zone": UNKNOWN}, "zone"),
        ({"acceleratorType": "v6e-8"}, "zone"),
        (
            {"acceleratorType": "v6e-8", "zone": "us-central1-b", "schedulingConfig": {"spot": UNKNOWN}},
            "schedulingConfig.spot",
        ),
        ({"acceleratorType": "v6e-8", "zone": "us-central1-b", "schedulingConfig": UNKNOWN}, "schedulingConfig.spot"),
    ],
)
def test_what_cannot_be_seen_stays_unknown(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], path: str
) -> None:
    found = price_first(make(VM, inputs=inputs))
    assert [part.path for part in found.unknown] == [path]
    assert found.nothing_known
    assert "UNKNOWN" not in str([part.reason for part in found.unknown])


def test_hours_and_lost_work_scale_the_chip_hours(make: Make, price_first: PriceFirst) -> None:
    inputs = {"acceleratorType": "v6e-8", "zone": "us-central1-b", "schedulingConfig": SPOT}
    found = price_first(make(VM, inputs=inputs), it={"hours_per_day": "10", "preemption_overhead": "0.08"})
    # 8 x 0.60 x 10/24 x 1.08 = 2.16 an hour on the average of the month, 1,576.80 a month.
    assert found.amount.monthly == Decimal("1576.8")
    assert "45 % of the hours of a month" in found.components[0].note


def test_lost_work_is_a_matter_of_spot(make: Make, price_first: PriceFirst) -> None:
    inputs = {"acceleratorType": "v6e-8", "zone": "us-central1-b"}
    found = price_first(make(VM, inputs=inputs), it={"preemption_overhead": "0.08"})
    assert found.amount.hourly == Decimal("21.6")


def test_external_addresses_of_hosts_bill_where_they_are_asked_for(make: Make, price_first: PriceFirst) -> None:
    inputs = {
        "acceleratorType": "v6e-16",
        "zone": "us-central1-b",
        "schedulingConfig": SPOT,
        "networkConfig": {"enableExternalIps": True},
    }
    chips, address = price_first(make(VM, inputs=inputs)).components
    # One for each of 4 hosts, at the price of spot VMs: 4 x 0.0025 = 0.01 an hour.
    assert (address.quantity, address.amount.hourly) == (Decimal(4), Decimal("0.01"))
    assert chips.spot
    closed = {**inputs, "networkConfig": {"enableExternalIps": False}}
    assert len(price_first(make(VM, inputs=closed)).components) == 1


def nodes(*accelerators: str) -> Value:
    return {
        "nodeSpecs": tuple(
            {
                "parent": "projects/p/locations/us-east5-b",
                "nodeId": f"node-{index}",
                "node": {"acceleratorType": accelerator, "runtimeVersion": "v2-alpha-tpuv6e"},
            }
            for index, accelerator in enumerate(accelerators)
        )
    }


@pytest.mark.parametrize("place", [{"zone": "us-east5-b"}, {}])
def test_a_queued_resource_bills_every_node_on_demand(
    make: Make, price_first: PriceFirst, place: Mapping[str, Value]
) -> None:
    found = price_first(make(QUEUED, inputs={**place, "tpu": nodes("v6e-16", "v6e-16")}))
    # 2 x 16 x 2.70 = 86.40 an hour, 63,072 a month; without a zone of its own, that of the nodes' parent holds.
    assert found.amount.hourly == Decimal("86.40")
    assert found.amount.monthly == Decimal(63072)
    assert found.complete
    assert found.title == "queued · 2 × v6e-16 · on demand"
    assert found.location == "us-east5-b"
    assert all("cannot ask for spot" in line.note for line in found.components)


def test_a_queued_resource_bills_the_addresses_and_the_traffic_of_its_nodes(
    make: Make, price_first: PriceFirst
) -> None:
    node = {"acceleratorType": "v6e-16", "networkConfig": {"enableExternalIps": True}}
    inputs = {"zone": "us-central1-b", "tpu": {"nodeSpecs": ({"node": node},)}}
    _, address, logs = price_first(make(QUEUED, inputs=inputs), it={"log_gib": "10"}).components
    # 4 hosts x 0.005 an hour; 10 GiB x 0.50
    assert (address.quantity, address.amount.hourly, logs.amount.monthly) == (Decimal(4), Decimal("0.02"), Decimal(5))


def test_a_queued_node_without_a_type_is_the_default_of_the_provider(make: Make, price_first: PriceFirst) -> None:
    specs = {"nodeSpecs": ({"parent": "p", "node": {"runtimeVersion": "x"}},)}
    found = price_first(make(QUEUED, inputs={"zone": "us-east5-b", "tpu": specs}))
    assert "v2-8 (provider default)" in found.unpriced[0].reason
    assert not found.components


@pytest.mark.parametrize("tpu", [UNKNOWN, None])
def test_a_queued_resource_whose_nodes_cannot_be_seen_is_unknown(
    make: Make, price_first: PriceFirst, tpu: Value
) -> None:
    found = price_first(make(QUEUED, inputs={"zone": "us-east5-b", "tpu": tpu}))
    assert [part.path for part in found.unknown] == ["tpu.nodeSpecs"]
