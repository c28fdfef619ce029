"""Instances: machines, terms, boot disks, local SSDs, addresses, TPU hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

VM = "gcp:compute/instance:Instance"
ADDRESS = "gcp:compute/address:Address"
BOOT: Mapping[str, Value] = {"initializeParams": {"type": "pd-balanced", "size": 50}}
HEAD: Mapping[str, Value] = {"machineType": "e2-standard-4", "zone": "us-central1-b", "bootDisk": BOOT}
TPU: Mapping[str, Value] = {
    "machineType": "ct6e-standard-8t",
    "zone": "us-central1-b",
    "scheduling": {"provisioningModel": "SPOT", "preemptible": True},
    "bootDisk": {
        "initializeParams": {
            "type": "hyperdisk-balanced",
            "size": 100,
            "provisionedIops": 3000,
            "provisionedThroughput": 140,
        }
    },
}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]
RefusalOf = Callable[[Resource], str]


def lines(found: ResourceEstimate) -> list[tuple[str, Decimal, Decimal]]:
    return [(line.name, line.quantity, line.amount.monthly) for line in found.components]


def test_a_machine_bills_its_vcpus_its_memory_and_its_boot_disk(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(VM, inputs=HEAD))
    assert found.title == "e2-standard-4 · not spot"
    # 4 x 0.02 x 730 = 58.40; 16 x 0.003 x 730 = 35.04; 50 x 0.10 = 5.00
    assert lines(found) == [
        ("vCPU", Decimal(4), Decimal("58.4")),
        ("memory", Decimal(16), Decimal("35.04")),
        ("boot disk pd-balanced", Decimal(50), Decimal(5)),
    ]
    assert found.complete


def test_a_spot_machine_bills_spot_prices(make: Make, price_first: PriceFirst) -> None:
    inputs = {**HEAD, "scheduling": {"provisioningModel": "SPOT"}, "networkInterfaces": ({"accessConfigs": ({},)},)}
    found = price_first(make(VM, inputs=inputs))
    # 4 x 0.008 x 730 = 23.36; 16 x 0.001 x 730 = 11.68; an address of a spot VM 0.0025 x 730 = 1.825
    assert lines(found)[:3] == [
        ("vCPU, spot", Decimal(4), Decimal("23.36")),
        ("memory, spot", Decimal(16), Decimal("11.68")),
        ("external address, spot", Decimal(1), Decimal("1.825")),
    ]


@pytest.mark.parametrize(
    ("inputs", "usage", "vcpu", "memory", "note"),
    [
        # 8 x 0.025 x 730 x 0.8002; 32 x 0.004 x 730 x 0.8002
        ({}, {}, "116.8292", "74.770688", "20 % off for sustained use"),
        # 10 of 24 hours: 1/4 in full and 1/6 at 0.8678, so 0.3946333... of a month
        (
            {},
            {"hours_per_day": "10"},
            "57.616466666667",
            "36.874538666667",
            "42 % of the hours of a month; 5.3 % off for sustained use",
        ),
        ({"scheduling": {"provisioningModel": "SPOT"}}, {}, "58.4", "23.36", ""),
        # n1: 8 x 0.03 x 730 x 0.7; 30 x 0.004 x 730 x 0.7
        ({"machineType": "n1-standard-8"}, {}, "122.64", "61.32", "30 % off for sustained use"),
    ],
)
def test_long_use_on_demand_is_discounted_on_some_series(
    make: Make,
    price_first: PriceFirst,
    inputs: Mapping[str, Value],
    usage: Mapping[str, str],
    vcpu: str,
    memory: str,
    note: str,
) -> None:
    found = price_first(make(VM, inputs={**HEAD, "machineType": "n2d-standard-8", **inputs}), it=usage)
    assert [line.amount.monthly for line in found.components[:2]] == [Decimal(vcpu), Decimal(memory)]
    assert [line.note for line in found.components[:2]] == [note, note]


def test_a_tpu_host_bills_its_chips_and_its_boot_disk(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(VM, inputs=TPU))
    assert found.title == "v6e-8 · 1 host · 8 chips · spot"
    # 8 x 0.60 x 730 = 3,504; 100 x 0.08 = 8, and nothing for vCPUs and memory.
    assert lines(found) == [
        ("TPU v6e chip, spot", Decimal(8), Decimal(3504)),
        ("boot disk hyperdisk-balanced", Decimal(100), Decimal(8)),
    ]


@pytest.mark.parametrize(
    ("scheduling", "title"),
    [
        ({"provisioningModel": "SPOT"}, "spot"),
        ({"preemptible": True}, "spot"),
        ({"preemptible": True, "provisioningModel": "STANDARD"}, "spot"),
        ({"provisioningModel": "STANDARD"}, "on demand"),
        ({}, "on demand"),
        ({"provisioningModel": "RESERVATION_BOUND"}, "reserved"),
    ],
)
def test_scheduling_decides_the_terms(
    make: Make, price_first: PriceFirst, scheduling: Mapping[str, Value], title: str
) -> None:
    found = price_first(make(VM, inputs={**TPU, "scheduling": scheduling}))
    assert found.title == f"v6e-8 · 1 host · 8 chips · {title}"
    assert found.components[0].spot == (title == "spot")


def test_a_specific_reservation_is_reserved_capacity(make: Make, price_first: PriceFirst) -> None:
    affinity = {"type": "SPECIFIC_RESERVATION", "specificReservation": {"key": "k", "values": ("r",)}}
    found = price_first(make(VM, inputs={**TPU, "scheduling": {}, "reservationAffinity": affinity}))
    assert found.title.endswith("reserved")
    assert "a commitment may make it cheaper" in found.components[0].note


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"scheduling": {"preemptible": True, "provisioningModel": "RESERVATION_BOUND"}}, "preemptible and reserved"),
        ({"scheduling": {"preemptible": True, "provisioningModel": "FLEX_START"}}, "preemptible and flex-start"),
        ({"reservationAffinity": {"type": "SPECIFIC_RESERVATION"}}, "spot capacity takes no reservation"),
        ({"scheduling": {"provisioningModel": "SPOTT"}}, r"'SPOTT'; models are .* Did you mean SPOT\?"),
    ],
)
def test_terms_that_cannot_be_are_refused(
    make: Make, refusal_of: RefusalOf, inputs: Mapping[str, Value], message: str
) -> None:
    assert re.search(message, refusal_of(make(VM, inputs={**TPU, **inputs})))


def test_flex_start_is_counted_and_unpriced(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(VM, inputs={**TPU, "scheduling": {"provisioningModel": "FLEX_START"}}))
    assert [(part.item, part.quantity) for part in found.unpriced] == [("tpu.v6e.chip", Decimal(8))]
    assert "flex-start has prices of its own" in found.unpriced[0].reason


@pytest.mark.parametrize(
    ("machine", "item"),
    [
        ("z9-standard-8", "instance.z9-standard-8"),
        ("c3-standard-8-lssd", "instance.c3-standard-8-lssd"),
        ("ct5lp-hightpu-4t", "instance.ct5lp-hightpu-4t"),
        # A custom type bills more than the predefined ones: their price does not stand in for it.
        ("e2-custom-4-8192", "instance.e2-custom.vcpu"),
        # In this book the vCPU of an n2 is priced by the machine-hour, which nobody expects.
        ("n2-standard-4", "instance.n2.vcpu"),
    ],
)
def test_a_machine_without_a_price_is_never_priced_as_another(
    make: Make, price_first: PriceFirst, machine: str, item: str
) -> None:
    found = price_first(make(VM, inputs={**HEAD, "machineType": f"projects/p/zones/z/machineTypes/{machine}"}))
    assert found.unpriced[0].item == item
    assert [line.name for line in found.components] == ["boot disk pd-balanced"]


def test_a_price_in_an_unexpected_unit_is_not_used(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(VM, inputs={**HEAD, "machineType": "n2-standard-4"}))
    assert "by the hour, where a vCPU-hour was expected" in found.unpriced[0].reason


@pytest.mark.parametrize(
    ("inputs", "paths"),
    [
        ({"machineType": UNKNOWN}, ["machineType"]),
        ({"machineType": None}, ["machineType"]),
        ({"scheduling": UNKNOWN}, ["scheduling.provisioningModel"]),
        ({"bootDisk": UNKNOWN}, ["bootDisk"]),
        ({"bootDisk": {"initializeParams": {"image": "debian-12"}}}, ["bootDisk.initializeParams.size"]),
        ({"bootDisk": {"initializeParams": {"size": 10, "type": UNKNOWN}}}, ["bootDisk.initializeParams.type"]),
        ({"networkInterfaces": UNKNOWN}, ["networkInterfaces"]),
        ({"networkInterfaces": ({"accessConfigs": UNKNOWN},)}, ["networkInterfaces[0].accessConfigs"]),
        ({"scratchDisks": UNKNOWN}, ["scratchDisks"]),
        ({"scratchDisks": ({"size": UNKNOWN},)}, ["scratchDisks[0].size"]),
        ({"guestAccelerators": UNKNOWN}, ["guestAccelerators"]),
        ({"zone": None}, ["zone"]),
    ],
)
def test_what_cannot_be_seen_stays_unknown(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], paths: list[str]
) -> None:
    assert [part.path for part in price_first(make(VM, inputs={**HEAD, **inputs})).unknown] == paths


def test_an_unseen_machine_leaves_the_boot_disk_known(make: Make, price_first: PriceFirst) -> None:
    assert price_first(make(VM, inputs={**HEAD, "machineType": UNKNOWN})).amount.monthly == Decimal(5)


def test_a_boot_disk_from_elsewhere_bills_for_itself(make: Make, price_first: PriceFirst) -> None:
    inputs = {**HEAD, "bootDisk": {"source": "boot"}}
    found = price_first(make(VM, inputs=inputs, outputs={"bootDisk": {**BOOT, "source": "boot"}}))
    assert [line.name for line in found.components] == ["vCPU", "memory"]
    assert found.complete


def test_local_ssds_and_gpus(make: Make, price_first: PriceFirst) -> None:
    inputs = {
        **HEAD,
        "scratchDisks": ({"interface": "NVME"}, {"interface": "NVME", "size": 375}),
        "guestAccelerators": ({"type": "projects/p/zones/z/acceleratorTypes/nvidia-l4", "count": 2},),
    }
    found = price_first(make(VM, inputs=inputs))
    # 2 x 375 x 0.08 = 60
    assert ("local SSD", Decimal(750), Decimal(60)) in lines(found)
    assert [(part.item, part.quantity) for part in found.unpriced] == [("accelerator.nvidia-l4", Decimal(2))]


def test_a_series_with_dearer_local_ssds_is_not_priced_as_the_others(make: Make, price_first: PriceFirst) -> None:
    inputs = {**HEAD, "machineType": "c4-standard-8", "scratchDisks": ({"interface": "NVME"},)}
    missing = {part.item: part.quantity for part in price_first(make(VM, inputs=inputs)).unpriced}
    assert missing["disk.local-ssd-c4.capacity"] == Decimal(375)


def test_hours_a_day_scale_the_machine_and_not_its_disk(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(VM, inputs=HEAD), it={"hours_per_day": "6"})
    assert [monthly for _, _, monthly in lines(found)] == [Decimal("14.6"), Decimal("8.76"), Decimal(5)]
    assert found.components[0].note == "25 % of the hours of a month"


def test_a_stopped_machine_bills_its_disk(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(VM, inputs={**HEAD, "desiredStatus": "TERMINATED"}))
    assert found.title == "e2-standard-4 · stopped"
    assert [line.name for line in found.components] == ["boot disk pd-balanced"]


def test_an_address_resource_pays_for_its_machine(make: Make, price_first: PriceFirst) -> None:
    address = make(ADDRESS, "front", {"region": "us-central1", "name": "front"})
    inputs = {**HEAD, "networkInterfaces": ({"accessConfigs": ({"natIp": UNKNOWN},)}, {"accessConfigs": ({},)})}
    vm = make(VM, inputs=inputs, property_dependencies={"networkInterfaces": (address.urn,)})
    names = [line.name for line in price_first(vm, address).components]
    assert names.count("external address") == 1
    assert price_first(vm, address).components[2].quantity == 1
    alone = make(VM, inputs=inputs)
    assert price_first(alone).components[2].quantity == 2


def test_traffic_and_logs_bill_where_usage_names_them(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(VM, inputs=HEAD), it={"egress_gib": "2000", "log_gib": "10"})
    # 1,024 x 0.12 + 976 x 0.11 = 122.88 + 107.36; 10 x 0.50
    assert lines(found)[3:] == [
        ("to the internet", Decimal(2000), Decimal("230.24")),
        ("logs", Decimal(10), Decimal(5)),
    ]


def test_a_suspended_machine_bills_the_memory_that_it_keeps(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(VM, inputs={**HEAD, "desiredStatus": "SUSPENDED"}))
    assert found.title == "e2-standard-4 · suspended"
    assert [line.name for line in found.components] == ["boot disk pd-balanced"]
    assert [(part.item, part.quantity, part.unit) for part in found.unpriced] == [
        ("instance.suspended.memory", Decimal(16), "GiB-hour")
    ]
    odd = price_first(make(VM, inputs={**HEAD, "machineType": "z9-standard-4", "desiredStatus": "SUSPENDED"}))
    assert [(part.item, part.quantity) for part in odd.unpriced] == [("instance.suspended.memory", None)]


@pytest.mark.parametrize(
    ("boot", "lines_of_it", "notes"),
    [
        ({"storagePool": "zones/us-central1-b/storagePools/pool"}, [], True),
        # In two zones at 0.20
        ({"replicaZones": ("us-central1-a", "us-central1-b")}, [(Decimal(50), Decimal(10))], False),
    ],
)
def test_a_boot_disk_in_a_pool_or_in_two_zones(
    make: Make,
    price_first: PriceFirst,
    boot: Mapping[str, Value],
    lines_of_it: list[tuple[Decimal, Decimal]],
    notes: bool,
) -> None:
    inputs = {**HEAD, "bootDisk": {"initializeParams": {"type": "pd-balanced", "size": 50, **boot}}}
    found = price_first(make(VM, inputs=inputs))
    assert [line[1:] for line in lines(found)[2:]] == lines_of_it
    assert (found.notes == ("its boot disk stands in a storage pool, which bills for it",)) is notes
    assert found.complete


@pytest.mark.parametrize(
    ("changes", "item", "quantity", "unit"),
    [
        ({"image": "windows-cloud/windows-2022"}, "license.windows", 4, "vCPU-hour"),
        ({"image": "projects/rhel-cloud/global/images/rhel-9"}, "license.rhel", 4, "vCPU-hour"),
        ({"image": "sles-15"}, "license.sles", 4, "vCPU-hour"),
        ({"confidential": {"enableConfidentialCompute": True}}, "instance.confidential.vcpu", 4, "vCPU-hour"),
        ({"confidential": {"confidentialInstanceType": "SEV_SNP"}}, "instance.confidential.vcpu", 4, "vCPU-hour"),
        ({"tier": "TIER_1"}, "network.tier-1", 1, "VM-hour"),
    ],
)
def test_surcharges_are_counted_and_unpriced(
    make: Make, price_first: PriceFirst, changes: Mapping[str, Value], item: str, quantity: int, unit: str
) -> None:
    inputs = {
        **HEAD,
        "bootDisk": {"initializeParams": {"type": "pd-balanced", "size": 50, "image": changes.get("image")}},
        "confidentialInstanceConfig": changes.get("confidential"),
        "networkPerformanceConfig": {"totalEgressBandwidthTier": changes.get("tier")},
    }
    found = price_first(make(VM, inputs=inputs))
    assert [(part.item, part.quantity, part.unit) for part in found.unpriced] == [(item, Decimal(quantity), unit)]


@pytest.mark.parametrize(
    "image", ["debian-cloud/debian-12", "projects/p/global/images/windows-of-ours", "debian-12", UNKNOWN, None]
)
def test_an_image_without_a_licence_has_no_surcharge(make: Make, price_first: PriceFirst, image: Value) -> None:
    inputs = {**HEAD, "bootDisk": {"initializeParams": {"type": "pd-balanced", "size": 50, "image": image}}}
    assert price_first(make(VM, inputs=inputs)).complete


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        (
            {"confidentialInstanceConfig": {"enableConfidentialCompute": UNKNOWN}},
            "confidentialInstanceConfig.enableConfidentialCompute",
        ),
        (
            {"networkPerformanceConfig": {"totalEgressBandwidthTier": UNKNOWN}},
            "networkPerformanceConfig.totalEgressBandwidthTier",
        ),
    ],
)
def test_a_surcharge_that_nobody_can_see_yet_is_named(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], path: str
) -> None:
    assert [part.path for part in price_first(make(VM, inputs={**HEAD, **inputs})).unknown] == [path]


@pytest.mark.parametrize(
    ("name", "series", "vcpus", "memory"),
    [("c2-standard-60", "c2", 60, 240), ("t2d-standard-8", "t2d", 8, 32), ("t2a-standard-1", "t2a", 1, 4)],
)
def test_a_series_without_a_price_is_unpriced_by_its_vcpus_and_memory(
    make: Make, price_first: PriceFirst, name: str, series: str, vcpus: int, memory: int
) -> None:
    found = price_first(make(VM, inputs={**HEAD, "machineType": name}))
    assert [(part.item, part.quantity, part.unit) for part in found.unpriced] == [
        (f"instance.{series}.vcpu", Decimal(vcpus), "vCPU-hour"),
        (f"instance.{series}.memory", Decimal(memory), "GiB-hour"),
    ]


def test_the_address_of_a_flex_start_machine_has_the_usual_price(make: Make, price_first: PriceFirst) -> None:
    terms = {"scheduling": {"provisioningModel": "FLEX_START"}, "networkInterfaces": ({"accessConfigs": ({},)},)}
    found = price_first(make(VM, inputs={**TPU, **terms}))
    assert [part.item for part in found.unpriced] == ["tpu.v6e.chip"]
    # 0.005 x 730; 100 x 0.08
    assert [line.amount.monthly for line in found.components] == [Decimal("3.65"), Decimal(8)]
