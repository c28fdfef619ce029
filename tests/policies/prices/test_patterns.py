"""The table of patterns: every wording that was seen in the catalogue fits its item and no other."""

import dataclasses
import re

import pytest

from policies.prices.book import shipped_book
from policies.prices.patterns import Pattern, patterns
from policies.prices.sku import Sku
from policies.prices.terms import PriceModel

ON_DEMAND, SPOT = PriceModel.ON_DEMAND, PriceModel.SPOT
WORDINGS = [
    ("Compute", "TPU", "TpuV6e in Ohio", "tpu.v6e.chip", ON_DEMAND),
    ("Compute", "TPU", "TpuV6e Preemptible in Ohio", "tpu.v6e.chip", SPOT),
    ("Storage", "SSD", "Hyperdisk ML Capacity in Iowa", "disk.hyperdisk-ml.capacity", ON_DEMAND),
    ("Storage", "SSD", "Hyperdisk ML Throughput in Iowa", "disk.hyperdisk-ml.throughput", ON_DEMAND),
    ("Storage", "SSD", "Hyperdisk Balanced IOPS in Santiago", "disk.hyperdisk-balanced.iops", ON_DEMAND),
    ("Storage", "SSD", "Hyperdisk Balanced Throughput in Mumbai", "disk.hyperdisk-balanced.throughput", ON_DEMAND),
    ("Storage", "SSD", "Hyperdisk Extreme IOPS in Iowa", "disk.hyperdisk-extreme.iops", ON_DEMAND),
    ("Storage", "SSD", "Hyperdisk Throughput Capacity in Iowa", "disk.hyperdisk-throughput.capacity", ON_DEMAND),
    ("Storage", "SSD", "Hyperdisk Throughput Throughput in Iowa", "disk.hyperdisk-throughput.throughput", ON_DEMAND),
    (
        "Storage",
        "SSD",
        "Hyperdisk Throughput Throughput Capacity in Iowa",
        "disk.hyperdisk-throughput.throughput",
        ON_DEMAND,
    ),
    ("Storage", "PDStandard", "Storage PD Capacity", "disk.pd-standard.capacity", ON_DEMAND),
    (
        "Storage",
        "PDStandard",
        "Regional Storage PD Capacity in Mumbai",
        "disk.pd-standard-regional.capacity",
        ON_DEMAND,
    ),
    ("Storage", "SSD", "Balanced PD Capacity in Japan", "disk.pd-balanced.capacity", ON_DEMAND),
    ("Storage", "SSD", "Regional Balanced PD Capacity", "disk.pd-balanced-regional.capacity", ON_DEMAND),
    ("Storage", "SSD", "SSD backed PD Capacity", "disk.pd-ssd.capacity", ON_DEMAND),
    ("Storage", "LocalSSD", "SSD backed Local Storage", "disk.local-ssd.capacity", ON_DEMAND),
    (
        "Storage",
        "LocalSSD",
        "SSD backed Local Storage attached to Spot Preemptible VMs",
        "disk.local-ssd.capacity",
        SPOT,
    ),
    ("Storage", "PDSnapshot", "Storage PD Snapshot in US", "snapshot.standard.capacity", ON_DEMAND),
    ("Compute", "CPU", "E2 Instance Core running in Americas", "instance.e2.vcpu", ON_DEMAND),
    ("Compute", "RAM", "Spot Preemptible E2 Instance Ram running in Paris", "instance.e2.memory", SPOT),
    ("Compute", "N1Standard", "N1 Predefined Instance Core running in Americas", "instance.n1.vcpu", ON_DEMAND),
    ("Compute", "CPU", "Compute optimized Core running in Americas", "instance.c2.vcpu", ON_DEMAND),
    ("Compute", "RAM", "Spot Preemptible Compute optimized Ram running in Paris", "instance.c2.memory", SPOT),
    ("Compute", "CPU", "T2D AMD Instance Core running in Iowa", "instance.t2d.vcpu", ON_DEMAND),
    ("Compute", "RAM", "N2D AMD Instance Ram running in Iowa", "instance.n2d.memory", ON_DEMAND),
    ("Network", "IpAddress", "External IP Charge on a Standard VM", "network.ip.in-use", ON_DEMAND),
    ("Network", "IpAddress", "External IP Charge on a Spot Preemptible VM", "network.ip.in-use", SPOT),
    ("Network", "IpAddress", "Static Ip Charge in Mumbai", "network.ip.unused", ON_DEMAND),
    ("Network", "Nat", "Networking Cloud Nat Gateway Uptime", "network.nat.gateway", ON_DEMAND),
    ("Network", "Nat", "Networking Cloud Nat Data Processing", "network.nat.data", ON_DEMAND),
    ("Storage", "RegionalStorage", "Standard Storage Iowa", "storage.standard.capacity", ON_DEMAND),
    ("Storage", "MultiRegionalStorage", "Standard Storage US Multi-region", "storage.standard.capacity", ON_DEMAND),
    ("Storage", "NearlineStorage", "Nearline Storage Doha", "storage.nearline.capacity", ON_DEMAND),
    ("Storage", "RegionalOps", "Regional Standard Class A Operations", "storage.standard.class-a", ON_DEMAND),
    ("Storage", "NearlineOps", "Nearline Data Retrieval", "storage.nearline.retrieval", ON_DEMAND),
]
UNPRICED = ("c2", "t2a", "t2d")
TRAPS = [
    ("Compute", "TPU", "Reserved TpuV6e in Ohio"),
    ("Compute", "TPU", "TpuV6e Reservation in Ohio"),
    ("Compute", "TPU", "Committed use v1: TpuV6e in Ohio"),
    ("Compute", "TPU", "TpuV6e in Ohio for 3 Years"),
    ("Compute", "TPU", "Sole-Tenancy TpuV6e in Ohio"),
    ("Compute", "TPU", "Dynamic Workload TpuV6e in Ohio"),
    ("Compute", "CPU", "Compute optimized Sole Tenancy Core running in Iowa"),
    ("Compute", "CPU", "Commitment v1: E2 Cpu in Americas for 1 Year"),
    ("Compute", "CPU", "E2 Custom Instance Core running in Americas"),
    ("Compute", "CPU", "N2 Sole Tenancy Instance Core running in Americas"),
    ("Compute", "RAM", "N2 Custom Extended Instance Ram running in Americas"),
    ("Compute", "TPU", "TpuV6e Flex-start in Ohio"),
    ("Compute", "TPU", "TpuV6e Calendar Mode in Ohio"),
    ("Compute", "TPU", "TpuV5p in Ohio"),
    ("Storage", "SSD", "Hyperdisk Balanced IOPS - Confidential Mode in Mumbai"),
    ("Storage", "SSD", "Hyperdisk Balanced High Availability Capacity in Iowa"),
    ("Storage", "SSD", "Hyperdisk Balanced Storage Pools Standard Capacity in Iowa"),
    ("Storage", "PDSnapshot", "Storage PD Snapshot Archive in South Carolina"),
    ("Storage", "NearlineStorage", "Nearline Storage Doha (Early Delete)"),
    ("Storage", "RegionalStorage", "Standard Storage Iowa/South Carolina Dual-region"),
    ("Network", "Nat", "Networking Private Nat Gateway Uptime"),
]


def series_of(item: str) -> str:
    return item.split(".")[1]


def fitting(family: str, group: str, description: str) -> list[tuple[str, PriceModel]]:
    sku = Sku(
        sku_id="A", description=description, family=family, group=group, usage_type="OnDemand", regions=(), pricings=()
    )
    return [(one.item, one.model) for one in patterns() if one.fits(sku)]


@pytest.mark.parametrize(("family", "group", "description", "item", "model"), WORDINGS)
def test_a_wording_of_the_catalogue_is_one_item(
    family: str, group: str, description: str, item: str, model: PriceModel
) -> None:
    assert fitting(family, group, description) == [(item, model)]


@pytest.mark.parametrize(("family", "group", "description"), TRAPS)
def test_what_lies_beside_it_is_none(family: str, group: str, description: str) -> None:
    assert fitting(family, group, description) == []


def test_each_item_has_one_pattern_a_model() -> None:
    keys = [(one.item, one.model) for one in patterns()]
    assert len(keys) == len(set(keys))


def test_every_pattern_is_of_an_item_of_the_shipped_book_in_its_unit() -> None:
    units = {(price.item, price.model): price.unit for price in shipped_book().rows}
    asked = {(one.item, one.model): one.unit for one in patterns() if series_of(one.item) not in UNPRICED}
    assert asked.items() <= units.items()


def test_series_without_a_price_are_asked_for_too() -> None:
    """The book has none of them yet; a refresh adds them."""
    priced = {price.item for price in shipped_book().rows}
    for series in UNPRICED:
        units = {(one.item, one.model): one.unit for one in patterns() if series_of(one.item) == series}
        assert units == {
            (f"instance.{series}.{part}", model): unit
            for part, unit in (("vcpu", "vCPU-hour"), ("memory", "GiB-hour"))
            for model in (ON_DEMAND, SPOT)
        }
        assert not {item for item, _ in units} & priced


@pytest.mark.parametrize(
    ("place", "holds"),
    [
        ("us-central1", True),
        ("us-central1-b", True),
        ("global", False),
        ("us", False),
        ("nam4", False),
        ("asia1", False),
    ],
)
def test_the_price_of_regions_is_none_of_multi_regions(place: str, holds: bool) -> None:
    by_item = {one.item: one for one in patterns()}
    assert by_item["storage.standard.class-a"].holds_in(place) is holds
    assert by_item["storage.standard.capacity"].holds_in(place)


def test_every_pattern_says_where_its_wording_comes_from() -> None:
    assert all(one.source for one in patterns())


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("model", PriceModel.CUD_1Y, "cud-1y has no pattern; it is on-demand or spot"),
        ("unit", "GiB-year", "GiB-year is no unit"),
        ("locations", "zones", "locations is 'zones'; it is empty or regions"),
    ],
)
def test_a_row_that_cannot_be_is_refused(field: str, value: object, words: str) -> None:
    pattern: Pattern = patterns()[0]
    with pytest.raises(ValueError, match=re.escape(words)):
        dataclasses.replace(pattern, **{field: value})  # type: ignore[arg-type]
