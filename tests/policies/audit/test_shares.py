"""Shares add up to the cent."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.audit.shares import split


@pytest.mark.parametrize(
    ("whole", "weights", "expected"),
    [
        ("296", [1, 1, 1, 1], ["74.00"] * 4),
        ("296", [1, 1, 1], ["98.67", "98.67", "98.66"]),
        ("100", [4, 1], ["80.00", "20.00"]),
        ("0.01", [1, 1], ["0.01", "0.00"]),
        ("0", [1, 1], ["0.00", "0.00"]),
        ("5", [], []),
    ],
)
def test_shares_by_hand(whole: str, weights: list[int], expected: list[str]) -> None:
    assert split(Fraction(whole), weights) == tuple(map(Decimal, expected))


@given(st.fractions(0, 10**7), st.lists(st.integers(1, 64), min_size=1, max_size=70))
def test_shares_add_up(whole: Fraction, weights: list[int]) -> None:
    shares = split(whole, weights)
    assert sum(shares) == Decimal(round(whole * 100)) / 100
    fair = [round(whole * 100) * Fraction(weight, sum(weights)) for weight in weights]
    assert all(abs(Fraction(share) * 100 - part) < 1 for share, part in zip(shares, fair, strict=True))
