"""Alert policies: by the condition; their price is unconfirmed and says so."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from policies.estimate.model import Estimate
from policies.resources import UNKNOWN, Resource

POLICY = "gcp:monitoring/alertPolicy:AlertPolicy"


def test_every_condition_bills(make: Callable[..., Resource], price_stack: Callable[..., Estimate]) -> None:
    found = price_stack(make(POLICY, "idle", {"conditions": ({}, {})}), idle={"time_series_millions": "4"})
    # 2 x 1.50 + 4 x 0.35
    assert found.amount.monthly == Decimal("4.4")
    assert found.resources[0].components[0].note == "unconfirmed price"
    assert not found.fresh
    assert "the list price of alerting.condition is undated: it counts as stale" in found.notes


def test_unseen_conditions_stay_unknown(make: Callable[..., Resource], price_stack: Callable[..., Estimate]) -> None:
    (found,) = price_stack(make(POLICY, inputs={"conditions": UNKNOWN})).resources
    assert [part.path for part in found.unknown] == ["conditions"]
