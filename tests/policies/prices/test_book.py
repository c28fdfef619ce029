"""Lookup, graduated prices and ages, on a small made-up book."""

import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.estimate.model import Freshness
from policies.prices.book import (
    Confidence,
    MissingPrice,
    Price,
    PriceBook,
    PriceModel,
    Tier,
    load_book,
)
from policies.prices.terms import COLUMNS

ON_DEMAND, SPOT, CUD_1Y, CUD_3Y = PriceModel
BOOK = load_book(Path(__file__).with_name("small_book.csv"))


def priced(item: str, model: PriceModel, location: str, book: PriceBook = BOOK) -> Price:
    found = book.find(item, model, location)
    assert isinstance(found, Price)
    return found


def reason(item: str, model: PriceModel, location: str) -> str:
    found = BOOK.find(item, model, location)
    assert isinstance(found, MissingPrice)
    assert (found.item, found.model, found.location) == (item, model, location)
    return found.reason


def steps(*pairs: tuple[str, str], model: PriceModel = ON_DEMAND, as_of: datetime.date | None = None) -> Price:
    return Price(
        item="transfer.internet.worldwide",
        model=model,
        location="global",
        unit="GiB",
        tiers=tuple(Tier(from_quantity=Decimal(start), unit_price=Decimal(price)) for start, price in pairs),
        currency="USD",
        as_of=as_of,
        sku_id="",
        confidence=Confidence.SYNTHETIC,
        source="made up",
    )


def test_a_price_has_all_that_its_row_says() -> None:
    assert priced("disk.hyperdisk-ml.throughput", ON_DEMAND, "us-east5") == Price(
        item="disk.hyperdisk-ml.throughput",
        model=ON_DEMAND,
        location="us-east5",
        unit="MiB/s-month",
        tiers=(Tier(from_quantity=Decimal(0), unit_price=Decimal("0.12")),),
        currency="USD",
        as_of=datetime.date(2026, 11, 1),
        sku_id="",
        confidence=Confidence.SYNTHETIC,
        source="made up",
    )


@pytest.mark.parametrize("location", ["us-east5-b", "us-east5", "US-EAST5", "US-EAST5-B"])
def test_a_zone_has_the_price_of_its_region_in_any_letter_case(location: str) -> None:
    assert priced("tpu.v6e.chip", ON_DEMAND, location).unit_price == Decimal("2.70")


@pytest.mark.parametrize(
    ("location", "price"),
    [
        ("us-east5-b", "0.0016"),
        ("us-east5-a", "0.0015"),
        ("us-east5", "0.0015"),
        ("eu", "0.0014"),
        ("GLOBAL", "0.0014"),
    ],
)
def test_the_zone_goes_before_its_region_and_that_before_global(location: str, price: str) -> None:
    assert priced("network.nat.gateway", ON_DEMAND, location).unit_price == Decimal(price)


@pytest.mark.parametrize(
    ("later", "as_of"),
    [("2026-05-01", datetime.date(2026, 5, 1)), ("2026-12-01", datetime.date(2026, 11, 1)), ("", None)],
)
def test_a_price_in_steps_is_as_old_as_its_oldest_step(tmp_path: Path, later: str, as_of: datetime.date | None) -> None:
    row = "transfer.internet.china,on-demand,global,GiB,{},{},USD,{},,synthetic,made up\n"
    text = row.format(0, "0.23", "2026-11-01") + row.format(10240, "0.20", later)
    (tmp_path / "book.csv").write_text(",".join(COLUMNS) + "\n" + text, encoding="utf-8")
    found = load_book(tmp_path / "book.csv").find("transfer.internet.china", ON_DEMAND, "global")
    assert isinstance(found, Price)
    assert found.as_of == as_of


def test_there_is_no_spot_price_where_only_on_demand_is_known() -> None:
    assert reason("tpu.v6e.chip", SPOT, "us-east5-b") == (
        "no spot price for tpu.v6e.chip in us-east5-b, us-east5 or global (book of 2026-11-01); "
        "it is priced there on-demand, and spot in europe-west4"
    )


def test_there_is_no_price_of_another_region() -> None:
    assert reason("disk.pd-balanced.capacity", ON_DEMAND, "us-central1-a") == (
        "no on-demand price for disk.pd-balanced.capacity in us-central1-a, us-central1 or global "
        "(book of 2026-11-01); it is priced on-demand in us-east5"
    )
    assert "in eu or global" in reason("storage.standard.capacity", ON_DEMAND, "EU")


def test_a_model_without_any_price_is_said_to_be_nowhere() -> None:
    assert reason("storage.standard.capacity", SPOT, "eu").endswith("it is priced on-demand in us-east5, spot nowhere")


def test_an_item_that_nobody_has_is_told_the_near_one() -> None:
    assert reason("disk.hyperdisk-ml.capacty", ON_DEMAND, "us-east5").endswith(
        "the book has no such item, did you mean disk.hyperdisk-ml.capacity?"
    )


def test_where_an_item_has_a_price() -> None:
    assert BOOK.locations_of("tpu.v6e.chip", ON_DEMAND) == ("europe-west4", "us-east5")
    assert BOOK.locations_of("tpu.v6e.chip", CUD_3Y) == ()


def test_the_book_is_as_old_as_its_newest_row() -> None:
    assert (BOOK.currency, BOOK.as_of, BOOK.name) == ("USD", datetime.date(2026, 11, 1), "small_book.csv")
    assert len(BOOK.rows) == 11


@pytest.mark.parametrize(
    ("quantity", "cost"),
    [
        ("0", "0"),
        ("100", "0"),
        ("101", "0.12"),
        ("1124", "122.88"),
        ("1125", "122.965"),
        ("2124", "207.88"),
        ("100.5", "0.06"),
    ],
)
def test_every_step_is_paid_at_its_own_price(quantity: str, cost: str) -> None:
    price = priced("transfer.internet.worldwide", ON_DEMAND, "us-east5")
    assert price.cost(Decimal(quantity)) == Decimal(cost)
    assert price.unit_price == Decimal("0.12")


def test_a_disk_is_billed_in_gib() -> None:
    assert priced("disk.hyperdisk-ml.capacity", ON_DEMAND, "us-east5").cost(Decimal(100)) == Decimal("8.00")


def test_a_price_of_nothing_is_nothing() -> None:
    assert steps(("0", "0")).unit_price == 0


def test_less_than_nothing_has_no_price() -> None:
    with pytest.raises(ValueError, match="a quantity of -1 has no price"):
        steps(("0", "1")).cost(Decimal(-1))


@given(
    starts=st.lists(st.integers(1, 50), unique=True, max_size=4).map(sorted),
    cents=st.lists(st.integers(0, 99), min_size=5, max_size=5),
    quantity=st.integers(0, 60),
)
def test_a_graduated_price_adds_up_unit_by_unit(starts: list[int], cents: list[int], quantity: int) -> None:
    steps_of = list(zip([0, *starts], cents, strict=False))
    price = steps(*((str(start), f"0.{cent:02}") for start, cent in steps_of))
    one_by_one = sum(max((start, cent) for start, cent in steps_of if start <= unit)[1] for unit in range(quantity))
    assert price.cost(Decimal(quantity)) == Decimal(one_by_one) / 100


@pytest.mark.parametrize(
    ("model", "days", "expected"),
    [
        (SPOT, -1, Freshness.FUTURE),
        (SPOT, 0, Freshness.FRESH),
        (SPOT, 30, Freshness.FRESH),
        (SPOT, 31, Freshness.AGEING),
        (SPOT, 45, Freshness.AGEING),
        (SPOT, 46, Freshness.STALE),
        (ON_DEMAND, -400, Freshness.FUTURE),
        (ON_DEMAND, 46, Freshness.FRESH),
        (ON_DEMAND, 150, Freshness.FRESH),
        (ON_DEMAND, 151, Freshness.AGEING),
        (ON_DEMAND, 180, Freshness.AGEING),
        (ON_DEMAND, 181, Freshness.STALE),
        (CUD_1Y, 180, Freshness.AGEING),
        (CUD_3Y, 181, Freshness.STALE),
    ],
)
def test_a_price_ages(model: PriceModel, days: int, expected: Freshness) -> None:
    seen = datetime.date(2026, 6, 1)
    price = steps(("0", "1"), model=model, as_of=seen)
    assert price.freshness(seen + datetime.timedelta(days)) is expected


def test_one_step_from_the_future_spoils_a_price(tmp_path: Path) -> None:
    path = tmp_path / "book.csv"
    rows = ("0,5,USD,2026-06-01", "10,4,USD,2026-06-03")
    cells = (f"network.nat.data,on-demand,global,GiB,{row},,synthetic,made up" for row in rows)
    path.write_text("\n".join((",".join(COLUMNS), *cells, "")))
    price = load_book(path).find("network.nat.data", ON_DEMAND, "us-east5")
    assert isinstance(price, Price)
    assert price.freshness(datetime.date(2026, 6, 2)) is Freshness.FUTURE
    assert price.seen(datetime.date(2026, 6, 2)) == datetime.date(2026, 6, 3)
    assert price.freshness(datetime.date(2026, 6, 3)) is Freshness.FRESH
    assert price.seen(datetime.date(2026, 6, 3)) == datetime.date(2026, 6, 1)


@pytest.mark.parametrize("model", PriceModel)
def test_a_price_without_a_date_is_undated_on_any_day(model: PriceModel) -> None:
    assert steps(("0", "1"), model=model).freshness(datetime.date(2026, 6, 1)) is Freshness.UNDATED
