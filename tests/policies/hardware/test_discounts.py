"""Sustained-use discounts, by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.hardware.discounts import sustained_share


@pytest.mark.parametrize(
    ("series", "share", "paid"),
    [
        # (1 + 0.8678 + 0.733 + 0.6) / 4
        ("n2", "1", "0.8002"),
        ("n2d", "1", "0.8002"),
        ("c2", "1", "0.8002"),
        # (1 + 0.8 + 0.6 + 0.4) / 4: 30 % off
        ("n1", "1", "0.7"),
        # a quarter at the full price and a sixth of the month at 0.8: 0.25 + 0.8 / 6
        ("n1", "5/12", "23/60"),
        ("n1", "0.25", "0.25"),
        ("n1", "0.5", "0.45"),
        ("n2", "0", "0"),
        ("e2", "1", "1"),
        ("c3", "1", "1"),
        ("c4", "1", "1"),
        ("n4", "0.5", "0.5"),
    ],
)
def test_what_a_part_of_a_month_pays(series: str, share: str, paid: str) -> None:
    assert sustained_share(series, Fraction(share)) == Fraction(paid)


@given(st.fractions(0, 1), st.fractions(0, 1))
def test_more_hours_never_cost_less(one: Fraction, other: Fraction) -> None:
    less, more = sorted((one, other))
    assert sustained_share("n1", less) <= sustained_share("n1", more) <= more
