"""The shipped prices themselves: complete where the stacks live, plausible, and honest about their age."""

import datetime
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

import policies.prices
from policies.hardware.disks import disk_types
from policies.hardware.machines import machine
from policies.hardware.slices import shape
from policies.hardware.zones import is_zone, tpu_zones
from policies.prices.book import Confidence, MissingPrice, Price, PriceModel, shipped_book
from policies.prices.provenance import read_provenance

ON_DEMAND, SPOT, CUD_1Y, CUD_3Y = PriceModel
BOOK = shipped_book()
DATA = Path(policies.prices.__path__[0]) / "data"
BY_KEY = {(price.item, price.model, price.location): price for price in BOOK.rows}

DISK = r"(?:hyperdisk-(?:ml|balanced|extreme|throughput)|pd-(?:standard|balanced|ssd)(?:-regional)?|pd-extreme"
NAMES = re.compile(
    "|".join(
        (
            r"tpu\.v6e\.chip",
            rf"disk\.{DISK}|local-ssd(?:-c4[ad]?)?)\.(?:capacity|throughput|iops)",
            r"instance\.(?:e2|n1|n2|n2d|n4|n4d|c2d|c3|c3d|c4|c4a|c4d)\.(?:vcpu|memory)",
            r"snapshot\.standard\.capacity|image\.capacity",
            r"storage\.(?:standard|nearline|coldline|archive)\.(?:capacity|class-a|class-b|retrieval)",
            r"storage\.rapid-cache\.(?:capacity|ingest|operations|transfer)|storage\.rapid\.capacity",
            r"storage\.autoclass\.management|storage\.replication",
            r"network\.(?:ip\.(?:in-use|unused)|nat\.(?:gateway|gateway-over-32|data)|vpn\.tunnel)",
            r"transfer\.internet\.(?:worldwide|china|australia)|transfer\.zone\.zone",
            r"transfer\.(?:north-america|europe|asia-pacific)\.(?:north-america|europe|asia-pacific|south-america)",
            r"transfer\.south-america\.south-america",
            r"run\.job\.(?:vcpu|memory)|scheduler\.job|artifact-registry\.capacity|logging\.ingest",
            r"alerting\.(?:condition|time-series)|pubsub\.throughput|gke\.cluster",
        )
    )
)

RANGES = {
    "chip-hour": ("0.2", "3.5"),
    "GiB-month": ("0.001", "0.6"),
    "MiB/s-month": ("0.04", "0.25"),
    "IOPS-month": ("0.005", "0.065"),
    "vCPU-hour": ("0.002", "0.06"),
    "GiB-hour": ("0.0003", "0.007"),
    "IP-hour": ("0.0025", "0.016"),
    "VM-hour": ("0.0014", "0.0014"),
    "hour": ("0.04", "0.1"),
    "GiB": ("0.0005", "0.5"),
    "GB-month": ("0.1", "0.1"),
    "TiB": ("40", "40"),
    "vCPU-second": ("0.00001", "0.00003"),
    "GiB-second": ("0.000001", "0.000003"),
    "job-month": ("0.1", "0.1"),
    "condition-month": ("0.1", "1.5"),
    "million": ("0.35", "0.35"),
    "1000-operations": ("0.0002", "0.1"),
    "1000-objects-month": ("0.0025", "0.0025"),
}


def unit_price(item: str, model: PriceModel, location: str) -> Decimal:
    found = BOOK.find(item, model, location)
    assert isinstance(found, Price), found
    return found.unit_price


def test_the_newest_book_is_shipped_with_its_provenance() -> None:
    provenance = read_provenance(DATA / "2026-11-29.toml")
    assert provenance is not None
    assert (BOOK.name, BOOK.sha256, BOOK.as_of) == ("2026-11-29.csv", provenance.sha256, datetime.date(2026, 11, 29))
    assert BOOK.currency == "USD"
    assert len(provenance.sources) == 8
    assert all(re.fullmatch("[0-9a-f]{64}", source.sha256) for source in provenance.sources)


def test_no_date_is_later_than_the_book() -> None:
    assert BOOK.as_of is not None
    assert max(price.as_of for price in BOOK.rows if price.as_of) <= BOOK.as_of


def test_every_item_is_named_as_agreed() -> None:
    assert [item for item in {price.item for price in BOOK.rows} if not NAMES.fullmatch(item)] == []


def test_no_price_is_made_up() -> None:
    assert all(price.confidence is not Confidence.SYNTHETIC for price in BOOK.rows)


@pytest.mark.parametrize("unit", RANGES)
def test_prices_are_of_the_right_size(unit: str) -> None:
    least, most = (Decimal(bound) for bound in RANGES[unit])
    found = [tier.unit_price for price in BOOK.rows if price.unit == unit for tier in price.tiers]
    assert found
    assert least <= min(found)
    assert max(found) <= most


def test_the_catalogue_marker_for_a_missing_price_is_no_price() -> None:
    assert max(tier.unit_price for price in BOOK.rows for tier in price.tiers) < 700
    assert min(tier.unit_price for price in BOOK.rows for tier in price.tiers) > 0


DEARER_SPOT = {
    ("disk.local-ssd-c4d.capacity", place) for place in ("asia-east1", "europe-west9", "us-east5", "us-west3")
}


@pytest.mark.parametrize("model", [SPOT, CUD_1Y, CUD_3Y])
def test_a_discount_is_one(model: PriceModel) -> None:
    dearer = {
        (price.item, price.location)
        for price in BOOK.rows
        if price.model is model
        and (listed := BY_KEY.get((price.item, ON_DEMAND, price.location)))
        and price.unit_price >= listed.unit_price
    }
    assert dearer == (DEARER_SPOT if model is SPOT else set())
    assert all(BY_KEY[item, SPOT, place].confidence is Confidence.LOW for item, place in DEARER_SPOT)


def test_three_years_cost_less_than_one() -> None:
    longer = [price for price in BOOK.rows if price.model is CUD_3Y]
    assert len(longer) > 1000
    for price in longer:
        assert price.unit_price < BY_KEY[price.item, CUD_1Y, price.location].unit_price


def test_committed_chips_cost_less_than_on_demand_in_every_zone_of_their_region() -> None:
    zones = [price for price in BOOK.rows if (price.item, price.model) == ("tpu.v6e.chip", ON_DEMAND)]
    discounted = {zone.location for zone in zones if isinstance(BOOK.find(zone.item, CUD_1Y, zone.location), Price)}
    assert len(discounted) == 15
    for zone in discounted:
        listed, year = unit_price("tpu.v6e.chip", ON_DEMAND, zone), unit_price("tpu.v6e.chip", CUD_1Y, zone)
        assert Decimal("0.69") < year / listed < Decimal("0.71")


def test_spot_without_on_demand_is_known() -> None:
    alone = {
        (price.item, price.location)
        for price in BOOK.rows
        if price.model is SPOT and isinstance(BOOK.find(price.item, ON_DEMAND, price.location), MissingPrice)
    }
    assert alone == {
        (f"instance.n1.{part}", place)
        for part in ("vcpu", "memory")
        for place in ("europe-north2", "northamerica-south1")
    }


@pytest.mark.parametrize("model", [ON_DEMAND, SPOT])
def test_which_zones_with_v6e_have_no_price(model: PriceModel) -> None:
    without = {zone for zone in tpu_zones() if isinstance(BOOK.find("tpu.v6e.chip", model, zone), MissingPrice)}
    assert without == {"us-central1-ai1a"}


def test_chips_are_priced_by_zone() -> None:
    for model, zones in ((ON_DEMAND, 19), (SPOT, 18)):
        found = BOOK.locations_of("tpu.v6e.chip", model)
        assert len(found) == zones
        assert all(map(is_zone, found))


def test_a_zone_without_a_spot_price_has_none() -> None:
    found = BOOK.find("tpu.v6e.chip", SPOT, "southamerica-west1-a")
    assert isinstance(found, MissingPrice)
    assert "it is priced there on-demand, and spot in" in found.reason


def test_a_missing_price_names_the_near_places_first() -> None:
    found = BOOK.find("tpu.v6e.chip", SPOT, "europe-west1-b")
    assert isinstance(found, MissingPrice)
    assert "spot in europe-west4-a, asia-northeast1-b" in found.reason
    assert found.reason.endswith(" and 14 more")


UNDATED = Counter(
    {
        "tpu": 51,
        "storage.standard.class-a": 6,
        "storage.nearline.class-a": 49,
        "storage.coldline.class-a": 49,
        "storage.archive.class-a": 49,
        "storage.nearline.class-b": 1,
        "storage.coldline.class-b": 1,
        "storage.archive.class-b": 1,
        "storage.replication": 3,
        "transfer": 12,
        "alerting": 2,
        "image": 1,
        "network.ip.in-use": 1,
        "pubsub": 1,
        "gke": 1,
    }
)


def test_these_prices_have_no_date_and_no_others() -> None:
    undated = [price for price in BOOK.rows if price.as_of is None]
    assert (
        Counter(
            price.item if price.item.startswith(("storage", "network")) else price.item.partition(".")[0]
            for price in undated
        )
        == UNDATED
    )
    assert all("undated" in price.source for price in undated)


def test_a_doubt_is_explained() -> None:
    doubted = [price for price in BOOK.rows if price.confidence is Confidence.LOW]
    reasons = ("undated", "taken for", "unconfirmed")
    assert doubted
    assert all(any(reason in price.source for reason in reasons) for price in doubted)
    assert BY_KEY["snapshot.standard.capacity", ON_DEMAND, "us-east5"] in doubted
    assert BY_KEY["tpu.v6e.chip", SPOT, "us-south1-ai1b"] in doubted


STACK_ITEMS = {
    ON_DEMAND: (
        "tpu.v6e.chip",
        *(f"instance.{series}.{part}" for series in ("e2", "n2", "n4", "c3", "c4") for part in ("vcpu", "memory")),
        *(f"disk.{name}.capacity" for name in ("pd-standard", "pd-balanced", "pd-ssd", "pd-extreme", "local-ssd")),
        *(f"disk.{name}-regional.capacity" for name in ("pd-standard", "pd-balanced", "pd-ssd")),
        *(f"disk.hyperdisk-{name}.capacity" for name in ("ml", "balanced", "extreme", "throughput")),
        *(f"disk.hyperdisk-{name}.throughput" for name in ("ml", "balanced", "throughput")),
        *(f"disk.hyperdisk-{name}.iops" for name in ("balanced", "extreme")),
        "disk.pd-extreme.iops",
        "snapshot.standard.capacity",
        "image.capacity",
        *(
            f"storage.{name}.{part}"
            for name in ("standard", "nearline", "coldline", "archive")
            for part in ("capacity", "class-a", "class-b")
        ),
        *(f"storage.{name}.retrieval" for name in ("nearline", "coldline", "archive")),
        *(f"storage.rapid-cache.{part}" for part in ("capacity", "ingest", "operations", "transfer")),
        "storage.rapid.capacity",
        "storage.autoclass.management",
        *(f"network.{part}" for part in ("ip.in-use", "ip.unused", "nat.gateway", "nat.gateway-over-32", "nat.data")),
        "transfer.internet.worldwide",
        "transfer.north-america.north-america",
        "transfer.zone.zone",
        *("run.job.vcpu", "run.job.memory", "scheduler.job", "artifact-registry.capacity", "logging.ingest"),
        *("alerting.condition", "alerting.time-series", "pubsub.throughput", "gke.cluster"),
    ),
    SPOT: ("tpu.v6e.chip", "instance.e2.vcpu", "instance.e2.memory", "network.ip.in-use"),
    CUD_1Y: ("tpu.v6e.chip", "instance.n2.vcpu"),
    CUD_3Y: ("tpu.v6e.chip", "instance.n2.vcpu"),
}


@pytest.mark.parametrize("model", PriceModel)
def test_everything_that_a_stack_declares_has_a_price_in_its_zone(model: PriceModel) -> None:
    answers = [BOOK.find(item, model, "us-central1-b") for item in STACK_ITEMS[model]]
    assert [answer for answer in answers if isinstance(answer, MissingPrice)] == []


def test_hyperdisk_ml_is_priced_in_one_region_only() -> None:
    for part in ("capacity", "throughput"):
        assert BOOK.locations_of(f"disk.hyperdisk-ml.{part}", ON_DEMAND) == ("us-central1",)
        assert isinstance(BOOK.find(f"disk.hyperdisk-ml.{part}", ON_DEMAND, "us-east5-b"), MissingPrice)


def test_disk_items_are_disk_types() -> None:
    names = {price.item.split(".")[1] for price in BOOK.rows if price.item.startswith("disk.")}
    plain = {name.removesuffix("-regional") for name in names if not name.startswith("local-ssd-")}
    assert plain <= set(disk_types())
    for name in names:
        if name.endswith("-regional"):
            assert disk_types()[name.removesuffix("-regional")].regional


@pytest.mark.parametrize(
    ("name", "monthly"), [("e2-standard-4", "97.84"), ("n2-standard-8", "283.58"), ("c4-standard-8", "288.60")]
)
def test_a_head_node_costs_what_is_known(name: str, monthly: str) -> None:
    found = machine(name)
    assert found is not None
    vcpu, memory = (
        unit_price(f"instance.{found.series}.{part}", ON_DEMAND, "us-central1-b") for part in ("vcpu", "memory")
    )
    total = (found.vcpus * vcpu + found.memory_gib * memory) * 730
    assert total.quantize(Decimal("0.01")) == Decimal(monthly)


def test_a_slice_costs_what_is_known() -> None:
    chips = shape("v6e-64").chips
    assert unit_price("tpu.v6e.chip", ON_DEMAND, "us-central1-b") * chips == Decimal("172.80")
    assert unit_price("tpu.v6e.chip", SPOT, "us-east5-b") * chips == Decimal("81.648")
    assert unit_price("tpu.v6e.chip", SPOT, "us-central1-b") * 8 == Decimal("4.74128")


def test_a_model_volume_costs_what_is_known() -> None:
    throughput = unit_price("disk.hyperdisk-ml.throughput", ON_DEMAND, "us-central1-b")
    capacity = unit_price("disk.hyperdisk-ml.capacity", ON_DEMAND, "us-central1-b")
    assert throughput == Decimal("0.12")
    assert throughput * 1200 == 144
    assert throughput * 12_000 == 1440
    assert capacity * 500 + throughput * 1200 == 184


@pytest.mark.parametrize(
    ("item", "location", "price"),
    [
        ("disk.pd-balanced.capacity", "us-central1", "0.1"),
        ("disk.pd-balanced-regional.capacity", "us-central1", "0.2"),
        ("disk.pd-ssd.capacity", "us-central1", "0.17"),
        ("disk.pd-standard.capacity", "us-central1", "0.04"),
        ("disk.hyperdisk-extreme.capacity", "europe-west4", "0.131"),
        ("disk.hyperdisk-extreme.capacity", "us-east1", "0.141"),
        ("snapshot.standard.capacity", "us-central1", "0.05"),
        ("snapshot.standard.capacity", "us", "0.065"),
        ("snapshot.standard.capacity", "eu", "0.075"),
        ("snapshot.standard.capacity", "asia", "0.083"),
        ("storage.standard.capacity", "us-east4", "0.023"),
        ("storage.standard.capacity", "US", "0.026"),
        ("storage.archive.capacity", "us", "0.0024"),
        ("storage.standard.class-a", "us-central1", "0.005"),
        ("storage.standard.class-a", "nam4", "0.01"),
        ("network.ip.in-use", "us-central1", "0.005"),
        ("network.ip.unused", "us-central1", "0.010"),
        ("network.ip.unused", "europe-west4", "0.011"),
        ("transfer.europe.north-america", "global", "0.05"),
    ],
)
def test_a_price_that_is_known_from_elsewhere(item: str, location: str, price: str) -> None:
    assert unit_price(item, ON_DEMAND, location) == Decimal(price)


def test_traffic_to_the_internet_gets_cheaper_in_steps() -> None:
    price = BY_KEY["transfer.internet.worldwide", ON_DEMAND, "us-central1"]
    assert [(tier.from_quantity, tier.unit_price) for tier in price.tiers] == [
        (Decimal(0), Decimal("0.12")),
        (Decimal(1024), Decimal("0.11")),
        (Decimal(10_240), Decimal("0.08")),
    ]
    assert price.cost(Decimal(11_240)) == Decimal("1216.64")


def test_a_class_a_operation_of_an_unknown_dual_region_is_not_that_of_one_region() -> None:
    assert isinstance(BOOK.find("storage.standard.class-a", ON_DEMAND, "eur7"), MissingPrice)
