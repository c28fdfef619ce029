"""Which prices of a book somebody asks for."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from policies.errors import InputError
from policies.hardware.errors import closest
from policies.prices.book import MissingPrice, Price, PriceBook
from policies.prices.terms import PriceModel


@final
@dataclass(frozen=True, kw_only=True)
class Selection:
    """The answer: what has a price, and what has none where it was asked for."""

    found: tuple[Price, ...]
    """In the order of the book."""
    missing: tuple[MissingPrice, ...] = ()
    """Only where a location was asked for. One of the two is never empty."""


def select_prices(book: PriceBook, item: str, location: str | None, model: PriceModel | None) -> Selection:
    """The prices of the items that `item`, a name or a glob, stands for.

    With a `location` those that hold there, with a `model` those bought so. Raises InputError for an item that is not
    in the book, or that nobody can buy so.
    """
    names = _names(book, item)
    bought = [(name, one) for name in names for one in PriceModel if model in (None, one)]
    sold = [(name, one) for name, one in bought if book.locations_of(name, one)]
    if location is not None:
        # Who names one item and one model is told why there is no price; a glob asks for what there is.
        asked = bought if model and names == [item.lower()] else sold
        answers = [book.find(name, one, location) for name, one in asked]
        found = tuple(answer for answer in answers if isinstance(answer, Price))
        missing = tuple(answer for answer in answers if isinstance(answer, MissingPrice))
    else:
        found, missing = _everywhere(book, sold), ()
    if model and not (found or missing):
        raise InputError(f'no price for "{item}" bought {model.value} in {book.name} (book of {book.as_of})')
    return Selection(found=found, missing=missing)


def _names(book: PriceBook, item: str) -> list[str]:
    known = dict.fromkeys(name for name, _, _ in book.lines)
    fitting = [name for name in known if fnmatch.fnmatchcase(name, item.lower())]
    if not fitting:
        near = closest(item, known)
        hint = f"did you mean {near}?" if near else "`spotrail prices show` lists all; a glob such as 'disk.*' is fine"
        raise InputError(f'no item "{item}" in {book.name}; {hint}')
    return fitting


def _everywhere(book: PriceBook, sold: Sequence[tuple[str, PriceModel]]) -> tuple[Price, ...]:
    wanted = set(sold)
    return tuple(price for price in book.rows if (price.item, price.model) in wanted)
