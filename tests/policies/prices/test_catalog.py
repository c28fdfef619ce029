"""From SKUs to prices: which SKU is taken, which refused, and what its price is in the unit of the book."""

import dataclasses
import datetime
import random
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.money import Amount
from policies.prices.catalog import Answer, Fault, Offer, answers
from policies.prices.conversion import ConversionError, steps_of
from policies.prices.patterns import Pattern
from policies.prices.sku import Pricing, Rate, Sku
from policies.prices.terms import PriceModel

NOW = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)


def pricing(
    *prices: str, unit: str = "h", currency: str = "USD", effective: datetime.datetime | None = None
) -> Pricing:
    """Steps from 0, 100, 200 ..."""
    rates = tuple(
        Rate(start=Decimal(100 * place), price=Decimal(price), currency=currency) for place, price in enumerate(prices)
    )
    return Pricing(effective=effective, usage_unit=unit, rates=rates)


def sku(
    sku_id: str, description: str, *prices: Pricing, regions: tuple[str, ...] = ("us-east5",), usage: str = "OnDemand"
) -> Sku:
    return Sku(
        sku_id=sku_id,
        description=description,
        family="Compute",
        group="TPU",
        usage_type=usage,
        regions=regions,
        pricings=prices,
    )


def pattern(
    description: str = "Test v6e chip.*", model: PriceModel = PriceModel.ON_DEMAND, unit: str = "chip-hour"
) -> Pattern:
    return Pattern(
        item="test.v6e.chip",
        model=model,
        service="Compute Engine",
        family="Compute",
        groups=frozenset({"TPU"}),
        description=re.compile(description),
        unit=unit,
        source="made up",
    )


CHIP = sku("T-MULTI", "Test v6e chip", pricing("0.7"), regions=("us-east5", "us-central1"))
COMMITTED = sku("T-COMMIT", "Commitment - dollar based v1: Test v6e chip us-east5 for 1 year", pricing("0.4"))
SPOT = sku("T-SPOT", "Test v6e chip Preemptible", pricing("0.3"))
EMPTY = sku("T-EMPTY", "Test v6e chip Spot", pricing(), usage="Preemptible")
FLEX = sku("T-FLEX", "Test v6e chip Flex-start", pricing("0.35"))
CALENDAR = sku("T-CALENDAR", "Test v6e chip Calendar Mode", pricing("0.5"))
DEFINED = sku("T-DEFINED", "Test v6e chip Defined Duration", pricing("0.45"))
LABELLED = sku("T-LABELLED", "Test v6e chip, cheap", pricing("0.1"), usage="Commit1Yr")
TRAPS = (CHIP, COMMITTED, SPOT, FLEX, CALENDAR, DEFINED, LABELLED)


def read(*skus: Sku, asked: Pattern | None = None) -> Mapping[str, Answer]:
    return answers(asked or pattern(), skus, NOW, "USD")


def price(answer: Answer) -> Decimal:
    assert isinstance(answer, Offer)
    ((start, amount),) = answer.tiers
    assert start == 0
    return amount


def reason(answer: Answer) -> str:
    assert isinstance(answer, Fault)
    return answer.reason


def test_every_region_of_a_sku_has_its_price() -> None:
    assert {place: price(answer) for place, answer in read(CHIP).items()} == {
        "us-central1": Decimal("0.7"),
        "us-east5": Decimal("0.7"),
    }


def test_regions_in_capitals_are_the_same_regions() -> None:
    assert set(read(sku("A", "Test v6e chip", pricing("1"), regions=("US-EAST5", "EU", "us east5")))) == {
        "us-east5",
        "eu",
    }


def test_the_order_of_the_catalogue_never_matters() -> None:
    shuffled, seen = list(TRAPS), set()
    chance = random.Random(20)
    for _ in range(100):
        chance.shuffle(shuffled)
        seen.add(tuple(read(*shuffled).items()))
    assert len(seen) == 1
    assert price(read(*shuffled)["us-east5"]) == Decimal("0.7")


@pytest.mark.parametrize("bound", [COMMITTED, FLEX, CALENDAR, DEFINED, LABELLED])
def test_commitments_and_reserved_times_are_never_taken(bound: Sku) -> None:
    anything = pattern(".*")
    assert read(bound, asked=anything) == {}
    assert read(bound, asked=pattern(".*", PriceModel.SPOT)) == {}


def test_spot_is_told_by_the_words_and_not_by_the_usage_type() -> None:
    assert SPOT.usage_type == "OnDemand"
    assert price(read(*TRAPS, asked=pattern(model=PriceModel.SPOT))["us-east5"]) == Decimal("0.3")
    assert "us-central1" not in read(*TRAPS, asked=pattern(model=PriceModel.SPOT))


def test_a_spot_price_without_steps_is_no_price_and_not_zero() -> None:
    answer = read(CHIP, EMPTY, asked=pattern(model=PriceModel.SPOT))["us-east5"]
    assert "T-EMPTY" in reason(answer)
    assert "tieredRates is empty" in reason(answer)


@pytest.mark.parametrize("other", ["0.8", "0.7"])
def test_two_skus_for_one_place_are_ambiguous_and_both_are_named(other: str) -> None:
    second = sku("T-OTHER", "Test v6e chip again", pricing(other))
    one, two = read(CHIP, second), read(second, CHIP)
    assert one == two
    assert re.match(
        r'ambiguous: T-MULTI "Test v6e chip" \(0\.70\) and T-OTHER "Test v6e chip again"', reason(one["us-east5"])
    )
    assert price(one["us-central1"]) == Decimal("0.7")


def test_the_same_sku_twice_is_one() -> None:
    again = sku("T-MULTI", "Test v6e chip", pricing("0.7"), regions=("us-east5",))
    assert price(read(CHIP, again, CHIP)["us-east5"]) == Decimal("0.7")


def test_the_same_id_with_another_price_is_ambiguous() -> None:
    again = sku("T-MULTI", "Test v6e chip", pricing("0.71"))
    assert re.match(r"ambiguous: T-MULTI .*\(0\.70\) and T-MULTI .*\(0\.71\)", reason(read(CHIP, again)["us-east5"]))


def test_the_whole_description_counts() -> None:
    zonal = pattern(r"Balanced PD Capacity( in .+)?")
    wordings = [
        "Balanced PD Capacity",
        "Balanced PD Capacity in Tokyo",
        "Regional Balanced PD Capacity",
        "Balanced PD Capacity2",
    ]
    assert [zonal.fits(sku("A", words, pricing("1"))) for words in wordings] == [True, True, False, False]


@pytest.mark.parametrize(("field", "value"), [("family", "Storage"), ("group", "GPU")])
def test_family_and_group_must_fit(field: str, value: str) -> None:
    change: dict[str, Any] = {field: value}
    assert read(dataclasses.replace(CHIP, **change)) == {}


def test_the_latest_price_that_holds_already_is_taken() -> None:
    dated = {NOW - 40 * DAY: "1", NOW - DAY: "2", NOW + DAY: "3"}
    prices = [pricing(amount, effective=when) for when, amount in dated.items()]
    for order in (prices, prices[::-1]):
        assert price(read(sku("A", "Test v6e chip", *order))["us-east5"]) == Decimal(2)
    assert price(read(sku("A", "Test v6e chip", pricing("5"), prices[0]))["us-east5"]) == Decimal(1)
    assert price(read(sku("A", "Test v6e chip", pricing("5", effective=NOW)))["us-east5"]) == Decimal(5)


def test_a_price_that_does_not_hold_yet_is_none() -> None:
    answer = read(sku("A", "Test v6e chip", pricing("1", effective=NOW + DAY)))["us-east5"]
    assert "no price that holds already" in reason(answer)


def test_two_prices_from_the_same_time_are_refused_whichever_comes_first() -> None:
    prices = [pricing(amount, effective=NOW - DAY) for amount in ("1", "2")]
    for order in (prices, prices[::-1]):
        assert "more than one price that holds already" in reason(read(sku("A", "Test v6e chip", *order))["us-east5"])
    assert price(read(sku("A", "Test v6e chip", prices[0], prices[0]))["us-east5"]) == Decimal(1)


def test_an_id_that_is_none_is_refused() -> None:
    assert "is no id of a SKU" in reason(read(sku("=1+1", "Test v6e chip", pricing("1")))["us-east5"])


@pytest.mark.parametrize(
    ("usage_unit", "unit", "by_usage_unit", "by_unit"),
    [
        ("h", "chip-hour", "2.7", "2.7"),
        ("h", "vCPU-hour", "0.0218", "0.0218"),
        ("h", "IP-hour", "0.005", "0.005"),
        ("h", "VM-hour", "0.0014", "0.0014"),
        ("GiBy.h", "GiB-hour", "0.00292", "0.00292"),
        # A GiB is 1.073741824 GB.
        ("GBy.h", "GiB-hour", "0.01", "0.01073741824"),
        ("GiBy.mo", "GiB-month", "0.02", "0.02"),
        # Some pages have the price of an hour: x 730.
        ("GiBy.h", "GiB-month", "0.000027397", "0.01999981"),
        ("mo", "MiB/s-month", "0.12", "0.12"),
        ("mo", "IOPS-month", "0.005", "0.005"),
        ("GiBy", "GiB", "0.045", "0.045"),
        ("count", "1000-operations", "0.000005", "0.005"),
    ],
)
def test_units(usage_unit: str, unit: str, by_usage_unit: str, by_unit: str) -> None:
    steps = steps_of(pricing(by_usage_unit, unit=usage_unit), unit, "USD")
    assert steps.tiers == ((Decimal(0), Decimal(by_unit)),)
    assert bool(steps.note) is (usage_unit == "GBy.h")


def test_memory_by_decimal_gb_notes_both_readings() -> None:
    note = steps_of(pricing("0.01", unit="GBy.h"), "GiB-hour", "USD").note
    assert "0.01 by decimal GB, so 0.01073741824 by GiB" in note


@pytest.mark.parametrize(
    ("usage_unit", "unit"),
    [("GiBy.d", "GiB-month"), ("count", "GiB-month"), ("GiBy.mo", "GiB-hour"), ("h", "GiB-month"), ("", "chip-hour")],
)
def test_a_unit_that_is_not_known_is_refused_by_name(usage_unit: str, unit: str) -> None:
    with pytest.raises(
        ConversionError, match=rf'usage unit "{re.escape(usage_unit)}" is not known for a price by {unit}'
    ):
        steps_of(pricing("1", unit=usage_unit), unit, "USD")


def test_a_price_by_the_month_is_not_multiplied_by_hours() -> None:
    ((_, amount),) = steps_of(pricing("0.02", unit="GiBy.mo"), "GiB-month", "USD").tiers
    monthly = Amount.by_month(amount) * 1000
    assert monthly.monthly == Decimal(20)
    assert str(monthly.hourly).startswith("0.0273972")


@pytest.mark.parametrize(
    ("prices", "tiers"),
    [
        (("0", "0.04"), ((0, "0.04"),)),
        (("0", "0", "0.04"), ((0, "0.04"),)),
        (("0", "0.12", "0.11"), ((0, "0.12"), (200, "0.11"))),
        (("0.12", "0.11", "0.08"), ((0, "0.12"), (100, "0.11"), (200, "0.08"))),
        # Free at the end is a price: more costs nothing.
        (("0.12", "0"), ((0, "0.12"), (100, "0"))),
    ],
)
def test_free_steps_at_the_start_are_left_out_and_graduated_ones_kept(
    prices: tuple[str, ...], tiers: tuple[tuple[int, str], ...]
) -> None:
    found = steps_of(pricing(*prices, unit="GiBy"), "GiB", "USD").tiers
    assert found == tuple((Decimal(start), Decimal(amount)) for start, amount in tiers)


def test_the_steps_of_operations_are_by_the_thousand() -> None:
    assert steps_of(pricing("0.005", "0.004", unit="count"), "1000-operations", "USD").tiers == (
        (Decimal(0), Decimal(5)),
        (Decimal("0.1"), Decimal(4)),
    )


def rate(start: str, amount: str, currency: str = "USD") -> Rate:
    return Rate(start=Decimal(start), price=Decimal(amount), currency=currency)


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ((), "tieredRates is empty"),
        ((rate("0", "0"),), "0 at every quantity"),
        ((rate("0", "-1"),), "its price is -1; a price is at least 0"),
        ((rate("0", "1", "EUR"),), 'its currency is "EUR"; the book is in USD'),
        ((rate("0", "1"), rate("5", "1", "")), 'its currency is ""; the book is in USD'),
        ((rate("5", "1"),), "its first step begins at 5"),
        ((rate("0", "1"), rate("0", "2")), "begin at the same quantity"),
        ((rate("0", "1"), rate("NaN", "2")), "a step begins at NaN"),
        ((rate("0", "1"), rate("Infinity", "2")), "a step begins at Infinity"),
        ((rate("0", "1"), rate("1E+300", "2")), "a step begins at 1e+300; steps begin from 0 to"),
        ((rate("0", "9000000000000"),), "its price is 9000000000000; a price is at least 0 and at most 1,000,000"),
    ],
)
def test_a_price_that_cannot_be_is_refused(rates: tuple[Rate, ...], words: str) -> None:
    with pytest.raises(ConversionError, match=re.escape(words)):
        steps_of(Pricing(effective=None, usage_unit="h", rates=rates), "chip-hour", "USD")


STEPS = st.dictionaries(st.integers(0, 10**6), st.decimals(0, 100, places=9), max_size=5)


@given(STEPS, st.randoms(use_true_random=False))
def test_steps_rise_from_zero_and_cost_what_the_catalogue_says(
    steps: dict[int, Decimal], chance: random.Random
) -> None:
    rates = [Rate(start=Decimal(start), price=amount, currency="USD") for start, amount in steps.items()]
    chance.shuffle(rates)
    try:
        tiers = steps_of(Pricing(effective=None, usage_unit="GiBy", rates=tuple(rates)), "GiB", "USD").tiers
    except ConversionError:
        assert 0 not in steps or not any(steps.values())
        return
    starts = [start for start, _ in tiers]
    assert starts == sorted(set(starts))
    assert starts[0] == 0
    assert tiers[0][1] > 0
    assert all(steps[int(start)] == amount for start, amount in tiers[1:])
