"""A newer book from an older one and the catalogue: rows that were found are replaced, all others stay as they are."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

from policies.errors import InputError
from policies.hardware.zones import price_locations
from policies.prices.book import PriceBook
from policies.prices.catalog import Answer, Fault, Offer, answers
from policies.prices.loading import Key, Line
from policies.prices.patterns import Pattern
from policies.prices.sku import Sku
from policies.prices.terms import Confidence, PriceModel

SOURCE: Final = "Cloud Billing Catalog"
CURRENCY: Final = "USD"
"""What the catalogue is asked for: list prices are made in it, and all others are converted from it."""
ANYWHERE: Final = "anywhere"
"""Stands for the place of an item that neither the book nor the catalogue has anywhere."""


@final
class RefreshError(ValueError):
    """A catalogue that cannot be right: it would leave a whole service without prices. Nothing is to be written."""


@final
class Outcome(enum.Enum):
    """What became of a price."""

    CHANGED = "changed"
    SAME = "same"
    ADDED = "added"
    KEPT = "kept"
    """The catalogue has no price, or more than one: the old row stays, and the item has failed."""


@final
@dataclass(frozen=True, kw_only=True)
class Difference:
    """One price, before and after."""

    item: str
    model: PriceModel
    location: str
    outcome: Outcome
    old: tuple[Line, ...]
    """The steps in the old book; empty for a price that is new."""
    new: tuple[Line, ...]
    """The steps in the new book; empty where there is none, and equal to `old` where it was kept."""
    reason: str = ""
    """Why it was kept: `missing: ...`, `ambiguous: ...` or `refused: ...`."""

    @property
    def change(self) -> Decimal | None:
        """By how much the first step that costs something has changed, in per cent; None without an old price."""
        before, after = _charged(self.old), _charged(self.new)
        return (after / before - 1) * 100 if before and after else None


@final
@dataclass(frozen=True, kw_only=True)
class Refreshed:
    """What a refresh comes to."""

    lines: tuple[Line, ...]
    """Every line of the new book, sorted by item, model and location."""
    differences: tuple[Difference, ...]
    """Every price that a pattern asks for, in the order of the patterns and then of the places."""
    untouched: int
    """Prices of the old book that no pattern asks for."""

    @property
    def kept(self) -> tuple[Difference, ...]:
        """What has failed."""
        return tuple(one for one in self.differences if one.outcome is Outcome.KEPT)

    @property
    def taken(self) -> tuple[Difference, ...]:
        """What comes from the catalogue."""
        return tuple(one for one in self.differences if one.outcome is not Outcome.KEPT)


def check_currency(book: PriceBook) -> None:
    """Raises InputError for a book that the catalogue cannot refresh."""
    if book.currency != CURRENCY:
        raise InputError(
            f"{book.name}: is in {book.currency}; the catalogue is read in {CURRENCY}, so give such a book"
        )


def refresh(
    book: PriceBook, catalogue: Mapping[str, Sequence[Sku]], patterns: Iterable[Pattern], now: datetime.datetime
) -> Refreshed:
    """The new lines of `book` and what is different. `catalogue` has the SKUs of each service by its display name.

    Raises RefreshError where a service has none of the prices that the book has of it.
    """
    asked = [(one, answers(one, catalogue.get(one.service, ()), now, book.currency)) for one in patterns]
    _check_services(book, catalogue, asked)
    differences = tuple(
        difference
        for pattern, found in asked
        for difference in _differences(book, pattern, found, now.astimezone(datetime.UTC).date())
    )
    groups: dict[Key, Sequence[Line]] = dict(book.lines)
    groups.update({(one.item, one.model, one.location): one.new for one in differences if one.new})
    untouched = len(book.lines) - sum(bool(one.old) for one in differences)
    return Refreshed(
        lines=tuple(line for key in sorted(groups, key=_order) for line in groups[key]),
        differences=differences,
        untouched=untouched,
    )


def _check_services(
    book: PriceBook, catalogue: Mapping[str, Sequence[Sku]], asked: Sequence[tuple[Pattern, Mapping[str, Answer]]]
) -> None:
    """An answer that is cut short must not pass for prices that have gone."""
    for service in dict.fromkeys(pattern.service for pattern, _ in asked):
        of_service = [(pattern, found) for pattern, found in asked if pattern.service == service]
        priced = [pattern for pattern, _ in of_service if book.locations_of(pattern.item, pattern.model)]
        offers = any(isinstance(answer, Offer) for _, found in of_service for answer in found.values())
        if priced and not offers:
            raise RefreshError(
                f"{service}: its {len(catalogue.get(service, ()))} SKUs have no price for any of the {len(priced)} "
                "items that the book has of it; the answer is cut short or the catalogue has other words now, "
                "so nothing is written"
            )


def _differences(
    book: PriceBook, pattern: Pattern, found: Mapping[str, Answer], day: datetime.date
) -> Iterable[Difference]:
    named = {*book.locations_of(pattern.item, pattern.model), *found}
    places = sorted(filter(pattern.holds_in, named))
    if not places:
        yield _difference(book, pattern, ANYWHERE, (), None, day)
    for place in places:
        # A row of a zone gets the price of its region, which is all that the catalogue has.
        answer = next((found[where] for where in price_locations(place) if where in found), None)
        old = tuple(book.lines.get((pattern.item, pattern.model, place), ()))
        yield _difference(book, pattern, place, old, answer, day)


def _difference(
    book: PriceBook, pattern: Pattern, place: str, old: tuple[Line, ...], answer: Answer | None, day: datetime.date
) -> Difference:
    if isinstance(answer, Offer):
        new = _lines(book, pattern, place, answer, day)
        outcome, reason = (_outcome(old, new), "")
    else:
        outcome, new = Outcome.KEPT, old
        reason = answer.reason if isinstance(answer, Fault) else f"missing: no SKU of {pattern.service} fits"
    return Difference(
        item=pattern.item, model=pattern.model, location=place, outcome=outcome, old=old, new=new, reason=reason
    )


def _outcome(old: Sequence[Line], new: Sequence[Line]) -> Outcome:
    if not old:
        return Outcome.ADDED
    same = _terms(old) == _terms(new)
    return Outcome.SAME if same else Outcome.CHANGED


def _terms(lines: Sequence[Line]) -> list[tuple[str, Decimal, Decimal]]:
    return [(line.unit, line.from_quantity, line.unit_price) for line in lines]


def _lines(book: PriceBook, pattern: Pattern, place: str, offer: Offer, day: datetime.date) -> tuple[Line, ...]:
    return tuple(
        Line(
            0,  # of no file yet
            pattern.item,
            pattern.model,
            place,
            pattern.unit,
            start,
            price,
            book.currency,
            day,
            offer.sku_id,
            Confidence.HIGH,
            f"{SOURCE}; {offer.note}" if offer.note else SOURCE,
        )
        for start, price in offer.tiers
    )


def _charged(lines: Sequence[Line]) -> Decimal:
    return next((line.unit_price for line in lines if line.unit_price), Decimal(0))


def _order(key: Key) -> tuple[str, int, str]:
    item, model, location = key
    return item, list(PriceModel).index(model), location
