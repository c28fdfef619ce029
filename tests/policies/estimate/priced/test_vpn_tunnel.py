"""VPN tunnels: each bills its hours."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource

TUNNEL = "gcp:compute/vPNTunnel:VPNTunnel"

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def test_a_tunnel_bills_its_hours_and_what_it_sends(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(TUNNEL, inputs={"region": "us-central1"}), it={"egress_gib": "10"})
    # 0.05 x 730; 10 x 0.12
    assert [line.amount.monthly for line in found.components] == [Decimal("36.5"), Decimal("1.2")]
    assert found.complete


def test_a_tunnel_somewhere_else_has_no_price(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(TUNNEL, inputs={"region": "us-east5"}))
    assert [(part.item, part.quantity, part.unit) for part in found.unpriced] == [
        ("network.vpn.tunnel", Decimal(1), "hour")
    ]


def test_a_tunnel_that_nobody_can_place_is_unknown(make: Make, price_first: PriceFirst) -> None:
    assert [part.path for part in price_first(make(TUNNEL, inputs={"region": UNKNOWN})).unknown] == ["region"]
