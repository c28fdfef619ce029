"""The price book: what one unit of an item costs, where, bought how, as of when.

Lookup is the zone, else its region, else `global`, and nothing further: never another region, never another model.
A price that is not there is a `MissingPrice` with a reason, never 0 and never a cheaper thing.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import Final, final

from policies.estimate.model import Freshness
from policies.hardware.errors import closest
from policies.hardware.zones import price_locations
from policies.prices.loading import Key, Line, read_book
from policies.prices.terms import BookError, Confidence, PriceModel

__all__ = [
    "BookError",
    "Confidence",
    "MissingPrice",
    "Price",
    "PriceBook",
    "PriceModel",
    "Tier",
    "load_book",
    "shipped_book",
    "shipped_path",
]

AGES: Final = {PriceModel.SPOT: (30, 45)}
"""Days after which a price is ageing and stale, where they are not `USUAL_AGES`."""
USUAL_AGES: Final = (150, 180)

_NAMED: Final = 4
"""So many other locations a message names."""


@final
@dataclass(frozen=True, kw_only=True)
class Tier:
    """One step of a graduated price."""

    from_quantity: Decimal
    """The step holds for what lies above this quantity, up to the next step."""
    unit_price: Decimal
    """Price of one unit within the step."""


@final
@dataclass(frozen=True, kw_only=True)
class Price:
    """What an item costs in one place, bought in one way."""

    item: str
    """`disk.hyperdisk-ml.throughput`."""
    model: PriceModel
    location: str
    """The zone, region or multi-region that the row is for, lower case, or `global`."""
    unit: str
    """One of `UNITS`."""
    tiers: tuple[Tier, ...]
    """Rising from 0. Most prices have one."""
    currency: str
    """`USD`, the same in the whole book."""
    as_of: datetime.date | None
    """The day on which the price was seen, of several steps the oldest; None where the source has none."""
    sku_id: str
    """Id in Google's catalogue; empty where it is not known."""
    confidence: Confidence
    source: str
    """Where the figure comes from, and the reason for a doubt."""
    newest: datetime.date | None = None
    """The day of the newest step, where the steps are of several days."""

    @property
    def unit_price(self) -> Decimal:
        """The first step that costs something; 0 where none does."""
        return next((tier.unit_price for tier in self.tiers if tier.unit_price), Decimal(0))

    def cost(self, quantity: Decimal) -> Decimal:
        """What `quantity` units cost: every step at its own price. Raises ValueError for less than 0."""
        if quantity < 0:
            raise ValueError(f"{self.item}: a quantity of {quantity} has no price")
        ends = [*(tier.from_quantity for tier in self.tiers[1:]), quantity]
        return sum(
            (
                (min(end, quantity) - tier.from_quantity) * tier.unit_price
                for tier, end in zip(self.tiers, ends, strict=True)
                if quantity > tier.from_quantity
            ),
            Decimal(0),
        )

    def seen(self, on: datetime.date) -> datetime.date | None:
        """The day that decides how far the price can be trusted on `on`: a later one where a step has it."""
        return self.newest if self.newest is not None and self.newest > on else self.as_of

    def freshness(self, on: datetime.date) -> Freshness:
        """How far the price can be trusted on that day. One of a later day counts as stale."""
        day = self.seen(on)
        if day is None:
            return Freshness.UNDATED
        if day > on:
            return Freshness.FUTURE
        ageing, stale = AGES.get(self.model, USUAL_AGES)
        age = (on - day).days
        if age > stale:
            return Freshness.STALE
        return Freshness.AGEING if age > ageing else Freshness.FRESH


@final
@dataclass(frozen=True, kw_only=True)
class MissingPrice:
    """The answer where the book has no price: who sorts by price puts it last, who adds leaves it out and says so."""

    item: str
    model: PriceModel
    location: str
    """As asked."""
    reason: str
    """A sentence: what was looked up where, and where the item does have a price."""


@final
@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """All prices of one file."""

    name: str
    """File name of the book."""
    currency: str
    as_of: datetime.date | None
    """The day that its provenance gives, else that of its newest row; None where all rows are undated."""
    sha256: str
    """Digest of the bytes of the file."""
    lines: Mapping[Key, Sequence[Line]]
    """The validated lines of the file by what they price, the steps of a price in rising order."""

    @cached_property
    def rows(self) -> tuple[Price, ...]:
        """Every price, in the order of the file."""
        return tuple(map(_price, self.lines.values()))

    def find(self, item: str, model: PriceModel, location: str) -> Price | MissingPrice:
        """The price of `item` in `location` (any letter case): of the zone, else its region, else `global`."""
        places = price_locations(location)
        for place in places:
            lines = self.lines.get((item, model, place))
            if lines is not None:
                return _price(lines)
        return MissingPrice(item=item, model=model, location=location, reason=self._why(item, model, places))

    def locations_of(self, item: str, model: PriceModel) -> tuple[str, ...]:
        """Where `item` has a price in that model, in alphabetical order."""
        return tuple(sorted(place for name, bought, place in self.lines if (name, bought) == (item, model)))

    def _why(self, item: str, model: PriceModel, places: Sequence[str]) -> str:
        dated = f"of {self.as_of}" if self.as_of else "without a date"
        looked = f"no {model.value} price for {item} in {_either(places)} (book {dated})"
        elsewhere = {other: self.locations_of(item, other) for other in PriceModel}
        if not any(elsewhere.values()):
            near = closest(item, {name for name, _, _ in self.lines})
            return f"{looked}; the book has no such item" + (f", did you mean {near}?" if near else "")
        here = [other.value for other, found in elsewhere.items() if set(found) & set(places)]
        said = [f"it is priced there {_either(here, 'and')}"] if here else []
        if elsewhere[model]:
            said.append(f"{'' if here else 'it is priced '}{model.value} in {_some(elsewhere[model], places[0])}")
        elif not here:
            other, found = next((other, found) for other, found in elsewhere.items() if found)
            said.append(f"it is priced {other.value} in {_some(found, places[0])}, {model.value} nowhere")
        return f"{looked}; {', and '.join(said)}"


def load_book(path: str | Path) -> PriceBook:
    """The book in the CSV file `path`, every cell checked; a TOML of the same stem beside it must have its digest.

    Raises BookError: file, line, column, value and rule of the first mistake.
    """
    found = read_book(Path(path))
    return PriceBook(
        name=Path(path).name, currency=found.currency, as_of=found.as_of, sha256=found.sha256, lines=found.lines
    )


@cache
def shipped_book() -> PriceBook:
    """The newest book that comes with spotrail. Raises BookError where its file was changed by hand."""
    return load_book(shipped_path())


def shipped_path() -> Path:
    """Where the newest book that comes with spotrail lies."""
    return max((Path(__file__).parent / "data").glob("*.csv"))


def _price(lines: Sequence[Line]) -> Price:
    first, days = lines[0], [line.as_of for line in lines]
    dated = {day for day in days if day}
    return Price(
        item=first.item,
        model=first.model,
        location=first.location,
        unit=first.unit,
        tiers=tuple(Tier(from_quantity=line.from_quantity, unit_price=line.unit_price) for line in lines),
        currency=first.currency,
        # A price is as old as its oldest step: an undated step makes all of it undated.
        as_of=None if None in days else min(dated),
        sku_id=first.sku_id,
        confidence=first.confidence,
        source=first.source,
        newest=max(dated) if len(set(days)) > 1 else None,
    )


def _either(words: Sequence[str], last: str = "or") -> str:
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else words[0]


def _some(places: Sequence[str], near: str) -> str:
    """A few of the places, those that share a continent with `near` first."""
    continent = near.partition("-")[0]
    nearest = sorted(places, key=lambda place: place.partition("-")[0] != continent)
    more = len(places) - _NAMED
    return ", ".join(nearest[:_NAMED]) + (f" and {more} more" if more > 0 else "")
