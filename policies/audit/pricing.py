"""What the things of a record cost, from the same book and by the same code as an estimate."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Final, final

from policies.audit.record import Item
from policies.estimate.market import Market
from policies.estimate.model import CostComponent, Unpriced
from policies.money import Amount
from policies.prices.book import PriceBook
from policies.resources import ResourceSet
from policies.usage import Usage

THROUGHPUT_UNIT: Final = "MiB/s-month"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Pricing:
    """The prices of one audit."""

    book: PriceBook
    as_of: datetime.date
    """The day from which the age of a price is counted."""

    def throughput_rate(self, disk: Item) -> Amount | Unpriced:
        """What 1 MiB/s of that volume costs, so that waste and saving are exact products."""
        kind = str(disk["type"]).rpartition("/")[2]
        place = str(disk.get("zone") or disk.get("region")).rpartition("/")[2]
        market = Market(resources=ResourceSet(()), usage=Usage(), book=self.book, as_of=self.as_of)
        line = market.line("throughput", f"disk.{kind}.throughput", 1, THROUGHPUT_UNIT, place)
        return line.amount if isinstance(line, CostComponent) else line
