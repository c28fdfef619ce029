"""Figures for people."""

from __future__ import annotations

from decimal import Decimal

import pytest

from policies.report.figures import HOURLY, UNIT, counted, money, quantity, rules_passed


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        ("3461.1344", Decimal("0.01"), "3,461.13"),
        ("1.005", Decimal("0.01"), "1.00"),
        ("1.015", Decimal("0.01"), "1.02"),
        ("0", Decimal("0.01"), "0.00"),
        ("4.74128", HOURLY, "4.7413"),
        ("0.59266", UNIT, "0.592660"),
        ("0.000002", UNIT, "0.000002"),
        ("-96", Decimal("0.01"), "-96.00"),
    ],
)
def test_money_has_thousands_apart_and_rounds_half_even(value: str, step: Decimal, text: str) -> None:
    assert money(Decimal(value), step) == text


@pytest.mark.parametrize(
    ("value", "text"), [("1200", "1,200"), ("107.3741824", "107.374"), ("0.5", "0.5"), ("16.750", "16.75"), ("0", "0")]
)
def test_a_quantity_is_whole_where_it_is(value: str, text: str) -> None:
    assert quantity(Decimal(value)) == text


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "network", "network"),
        (4, "service account", "4 service accounts"),
        (2, "resource policy", "2 resource policies"),
        (2, "service account key", "2 service account keys"),
    ],
)
def test_nouns_are_counted(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 rules passed"), (1, "1 rule passed"), (23, "23 rules passed")])
def test_rules_are_counted(number: int, text: str) -> None:
    assert rules_passed(number) == text
