"""Exact money: sums, months and hours, decimal text."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.estimate.model import total
from policies.money import PLACES, ZERO, Amount, dearness, decimal_of, plain

cents = st.decimals(min_value=0, max_value=10**9, places=9, allow_nan=False, allow_infinity=False)


@given(st.lists(cents))
def test_a_sum_of_monthly_prices_is_exact(prices: list[Decimal]) -> None:
    # Integers of 1e-9 are an independent way to add the same decimals without any rounding.
    expected = sum(int(price.scaleb(9)) for price in prices)
    assert total(Amount.by_month(price) for price in prices).per_month == Fraction(expected, 10**9)


@given(st.lists(cents), st.randoms(use_true_random=False))
def test_the_order_of_a_sum_does_not_matter(prices: list[Decimal], random: Random) -> None:
    amounts = [Amount.by_hour(price) if index % 2 else Amount.by_month(price) for index, price in enumerate(prices)]
    shuffled = list(amounts)
    random.shuffle(shuffled)
    assert total(shuffled) == total(amounts)


@given(cents)
def test_what_is_priced_by_the_hour_comes_back_by_the_hour(rate: Decimal) -> None:
    assert Amount.by_hour(rate).hourly == rate
    assert Amount.by_hour(rate).monthly == Decimal(int(rate.scaleb(9)) * 730).scaleb(-9)
    assert Amount.by_month(rate).monthly == rate


@given(st.lists(cents, min_size=1))
def test_totals_add_first_and_divide_once(prices: list[Decimal]) -> None:
    whole = total(Amount.by_month(price) for price in prices)
    parts = sum((Fraction(Amount.by_month(price).hourly) for price in prices), Fraction(0))
    assert abs(Fraction(whole.hourly) - parts) <= Fraction(len(prices) + 1, 2 * 10**PLACES)


def test_three_parts_of_a_third_of_a_cent_keep_their_digits() -> None:
    parts = [Amount.by_month(Decimal("0.335"))] * 3
    assert plain(total(parts).monthly) == "1.005"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 8), "0.125"),
        (Fraction(7, 20), "0.35"),
        # 0.02 / 730 = 0.0000273972602739..., cut at 12 places to the nearest.
        (Fraction(2, 100) / 730, "0.000027397260"),
        # 2/3 to 12 places rounds up; the half of the last place goes to the even digit.
        (Fraction(2, 3), "0.666666666667"),
        (Fraction(-1, 3), "-0.333333333333"),
        (Fraction(10**30), "1000000000000000000000000000000"),
    ],
)
def test_a_fraction_becomes_a_decimal(value: Fraction, text: str) -> None:
    assert decimal_of(value) == Decimal(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "0.00"),
        ("1.5", "1.50"),
        ("1451.200", "1451.20"),
        ("1E+3", "1000.00"),
        ("0.59266", "0.59266"),
        ("2.5E-7", "0.00000025"),
        ("-96", "-96.00"),
    ],
)
def test_json_decimals_have_no_exponent_and_two_places_at_least(value: str, text: str) -> None:
    assert plain(Decimal(value)) == text


def test_amounts_are_compared_and_scaled_as_money() -> None:
    hour = Amount.by_hour(1)
    assert hour == Amount.by_month(730)
    assert hour * Decimal("0.5") == Amount.by_month(365)
    assert hour - hour == ZERO
    assert not ZERO
    assert Amount.by_month(Decimal("0.01")) > ZERO
    assert hour.daily == Decimal(24)


@given(st.lists(cents))
def test_the_dearest_is_first_and_equals_keep_their_order(prices: list[Decimal]) -> None:
    amounts = [Amount.by_month(price) for price in prices]
    places = sorted(range(len(prices)), key=lambda place: dearness(amounts)(amounts[place]))
    assert places == sorted(range(len(prices)), key=lambda place: -prices[place])
