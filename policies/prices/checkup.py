"""How far a price book can be trusted, item by item: age, dates that cannot be, where it comes from."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from policies.estimate.model import Freshness
from policies.prices.book import Price, PriceBook
from policies.prices.provenance import read_provenance
from policies.prices.terms import Confidence, PriceModel

_WORST_LAST: Final = tuple(Freshness)


@final
@dataclass(frozen=True, kw_only=True)
class ItemAge:
    """The prices of one item in one model."""

    item: str
    model: PriceModel
    prices: int
    ages: Mapping[Freshness, int]
    """How many of them are how old."""
    oldest: datetime.date | None
    """The earliest day among those that have one."""
    future: tuple[str, ...]
    """Places whose price is from a later day than the one asked for."""
    low: int
    """Prices of low confidence or made up."""

    @property
    def worst(self) -> Freshness:
        """The age of its least trusted price."""
        return max(self.ages, key=_WORST_LAST.index)

    @property
    def trusted(self) -> bool:
        """Whether every price has a day that can be, and not too old a one."""
        return self.worst.trusted and not self.future


@final
@dataclass(frozen=True, kw_only=True)
class Checkup:
    """The verdict on a book."""

    items: tuple[ItemAge, ...]
    """Sorted by name and model."""
    doubts: tuple[str, ...]
    """Sentences about the whole book."""

    @property
    def trusted(self) -> bool:
        """Whether nothing is old, undated, from the future or without provenance."""
        return not self.doubts and all(item.trusted for item in self.items)


def check_book_age(book: PriceBook, path: Path, on: datetime.date) -> Checkup:
    """The verdict on `book`, which lies at `path`, as of that day. Raises BookError for a damaged TOML."""
    groups: dict[tuple[str, PriceModel], list[Price]] = {}
    for price in book.rows:
        groups.setdefault((price.item, price.model), []).append(price)
    order = sorted(groups, key=lambda key: (key[0], list(PriceModel).index(key[1])))
    return Checkup(items=tuple(_age(groups[key], on) for key in order), doubts=tuple(_doubts(book, path, on)))


def _age(prices: Sequence[Price], on: datetime.date) -> ItemAge:
    return ItemAge(
        item=prices[0].item,
        model=prices[0].model,
        prices=len(prices),
        ages=Counter(price.freshness(on) for price in prices),
        oldest=min((price.as_of for price in prices if price.as_of), default=None),
        future=tuple(sorted(price.location for price in prices if price.freshness(on) is Freshness.FUTURE)),
        low=sum(price.confidence in (Confidence.LOW, Confidence.SYNTHETIC) for price in prices),
    )


def _doubts(book: PriceBook, path: Path, on: datetime.date) -> list[str]:
    found = read_provenance(path.with_suffix(".toml"))
    doubts = []
    if found is None:
        doubts.append(f"{path.with_suffix('.toml').name} is not there: nothing says where {book.name} comes from")
    elif not found.sources:
        doubts.append(f"{found.file} names no source")
    if book.as_of and book.as_of > on:
        doubts.append(f"{book.name} is of {book.as_of}, which is later than {on}")
    return doubts
