"""Which SKUs of the Cloud Billing Catalog price which item: the table patterns.csv."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, final

from policies.prices.sku import Sku
from policies.prices.terms import UNITS, PriceModel

REGIONS: Final = "regions"
TABLE: Final = Path(__file__).with_name("patterns.csv")


@final
@dataclass(frozen=True, kw_only=True)
class Pattern:
    """One row: what a SKU must be for its price to be that of the item, in every region that it names."""

    item: str
    model: PriceModel
    """On demand or spot; commitments are never taken from the catalogue."""
    service: str
    """Display name: `Compute Engine`."""
    family: str
    groups: frozenset[str]
    """Resource groups, one of which it has."""
    description: re.Pattern[str]
    """Matches the whole description."""
    unit: str
    """The unit of the book."""
    source: str
    """Where the wording was seen."""
    locations: str = ""
    """`regions` where the price is none of multi-regions and dual-regions, which have their own; empty for all."""

    def __post_init__(self) -> None:
        if self.model not in (PriceModel.ON_DEMAND, PriceModel.SPOT):
            raise ValueError(f"{self.item}: {self.model.value} has no pattern; it is on-demand or spot")
        if self.unit not in UNITS:
            raise ValueError(f"{self.item}: {self.unit} is no unit of a price book")
        if self.locations not in ("", REGIONS):
            raise ValueError(f"{self.item}: locations is {self.locations!r}; it is empty or {REGIONS}")

    def holds_in(self, place: str) -> bool:
        """Whether the price of a fitting SKU is one of that place: a zone, a region, a multi-region, or `global`.

        A global price of regions is none of `global`, where the book looks for multi-regions too.
        """
        return self.locations != REGIONS or "-" in place

    def fits(self, sku: Sku) -> bool:
        """Whether the price of `sku` is a price of the item, bought in the model of the pattern."""
        return (
            sku.family == self.family
            and sku.group in self.groups
            and self.description.fullmatch(sku.description) is not None
            and not sku.bound
            and sku.spot is (self.model is PriceModel.SPOT)
        )


@cache
def patterns() -> tuple[Pattern, ...]:
    """Every row of the table, in its order."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(map(_pattern, csv.DictReader(file, strict=True)))


def _pattern(row: dict[str, str]) -> Pattern:
    return Pattern(
        item=row["item"],
        model=PriceModel(row["price_model"]),
        service=row["service"],
        family=row["resource_family"],
        groups=frozenset(row["resource_group"].split("|")),
        description=re.compile(row["description"]),
        unit=row["pricing_unit"],
        locations=row["locations"],
        source=row["source"],
    )
