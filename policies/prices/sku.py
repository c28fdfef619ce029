"""What the Cloud Billing Catalog says about one SKU. How it is bought is told by its words, not by its usage type."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

_BOUND: Final = re.compile(
    r"\b(?:Commit(?:ments?|ted)|for \d+ Years?|Reserv(?:ed|ations?)|Sole[- ]Tenancy|Flex[- ]?start|Calendar Mode|"
    r"Defined Duration|DWS|Dynamic Workload)\b",
    re.IGNORECASE,
)
"""Commitments, reservations, sole tenancy, Dynamic Workload Scheduler: prices of their own beside on-demand ones."""
_EVER: Final = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_SPOT: Final = re.compile(r"\b(?:Spot|Preemptible)\b", re.IGNORECASE)


@final
@dataclass(frozen=True, kw_only=True)
class Rate:
    """One step of a price as the catalogue has it."""

    start: Decimal
    """Quantity, in usage units, from which the step holds."""
    price: Decimal
    """Of one usage unit: units and nanos put together."""
    currency: str


@final
@dataclass(frozen=True, kw_only=True)
class Pricing:
    """A price that holds from some time on."""

    effective: datetime.datetime | None
    """With a time zone; None where the catalogue gives no time, which means always."""
    usage_unit: str
    """`GiBy.mo`, `h`, ..."""
    rates: tuple[Rate, ...]
    """In the order of the catalogue; may be empty."""


@final
@dataclass(frozen=True, kw_only=True)
class Sku:
    """One entry of the catalogue."""

    sku_id: str
    description: str
    family: str
    """Resource family: `Compute`, `Storage`, `Network`."""
    group: str
    """Resource group: `CPU`, `SSD`, `TPU`, ..."""
    usage_type: str
    """`OnDemand`, `Preemptible`, `Commit1Yr`: wrong for many accelerators and some commitments."""
    regions: tuple[str, ...]
    """All regions that it is for, or `global`."""
    pricings: tuple[Pricing, ...]

    @property
    def bound(self) -> bool:
        """Whether it is a commitment, a reservation or sold on other terms than on demand and spot."""
        return bool(_BOUND.search(self.description)) or self.usage_type.startswith("Commit")

    @property
    def spot(self) -> bool:
        """Whether it is spot capacity. Preemptible TPUs have the usage type OnDemand, so only the words count."""
        return bool(_SPOT.search(self.description))

    def in_force(self, now: datetime.datetime) -> frozenset[Pricing]:
        """The latest pricing that holds already: none where there is none yet, several where they began together."""
        begun = [(pricing.effective or _EVER, pricing) for pricing in self.pricings]
        latest = max((start for start, _ in begun if start <= now), default=None)
        return frozenset(pricing for start, pricing in begun if start == latest)
