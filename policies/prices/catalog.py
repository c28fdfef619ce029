"""From SKUs to prices: for each region exactly one SKU, or a reason why there is no price. Order never matters."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias, final

from policies.money import plain
from policies.prices.conversion import ConversionError, steps_of
from policies.prices.patterns import Pattern
from policies.prices.sku import Sku

_PLACE: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")


@final
@dataclass(frozen=True, kw_only=True)
class Offer:
    """The price of an item in a place."""

    sku_id: str
    tiers: tuple[tuple[Decimal, Decimal], ...]
    """From which quantity on, and the price of one unit of the book."""
    note: str


@final
@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why an item has no price in a place although the catalogue names it there."""

    reason: str
    """`ambiguous: ...` or `refused: ...`, with the ids and descriptions of the SKUs."""


Answer: TypeAlias = Offer | Fault


def answers(pattern: Pattern, skus: Iterable[Sku], now: datetime.datetime, currency: str) -> Mapping[str, Answer]:
    """What the catalogue says about the item in every place that a fitting SKU names; lower case, alphabetical."""
    fitting: dict[str, list[Sku]] = {}
    for sku in filter(pattern.fits, skus):
        for place in {region.lower() for region in sku.regions}:
            fitting.setdefault(place, []).append(sku)
    return {
        place: _answer(pattern, found, now, currency)
        for place, found in sorted(fitting.items())
        if _PLACE.fullmatch(place)
    }


def _answer(pattern: Pattern, found: Sequence[Sku], now: datetime.datetime, currency: str) -> Answer:
    """The one answer of all SKUs. The same id with the same price may stand there twice."""
    told = {(sku.sku_id, _read(pattern, sku, now, currency)) for sku in found}
    if len(told) == 1:
        return told.pop()[1]
    # Named by id, so that the message is the same whatever the order of the catalogue.
    named = sorted({f'{sku.sku_id} "{sku.description}" ({_said(_read(pattern, sku, now, currency))})' for sku in found})
    return Fault(reason=f"ambiguous: {' and '.join(named)}")


def _read(pattern: Pattern, sku: Sku, now: datetime.datetime, currency: str) -> Answer:
    if not _ID.fullmatch(sku.sku_id):
        return Fault(reason=f'refused: "{sku.sku_id}" is no id of a SKU')
    pricings = sku.in_force(now)
    try:
        if len(pricings) != 1:
            count = "more than one price" if pricings else "no price"
            raise ConversionError(f"it has {count} that holds already")
        (pricing,) = pricings
        steps = steps_of(pricing, pattern.unit, currency)
    except ConversionError as error:
        return Fault(reason=f'refused: {sku.sku_id} "{sku.description}": {error}')
    return Offer(sku_id=sku.sku_id, tiers=steps.tiers, note=steps.note)


def _said(answer: Answer) -> str:
    return " then ".join(plain(price) for _, price in answer.tiers) if isinstance(answer, Offer) else "no price"
