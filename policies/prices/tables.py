"""The pages of `spotrail prices`: the book as a table or as JSON, its age, and what a refresh changes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from rich import box
from rich.table import Table
from rich.text import Text

from policies.estimate.model import Freshness
from policies.money import plain
from policies.prices.book import Price, PriceBook
from policies.prices.checkup import Checkup, ItemAge
from policies.prices.loading import Line
from policies.prices.refresh import Difference, Outcome, Refreshed
from policies.prices.selection import Selection

SCHEMA: Final = "spotrail.prices/1"
STYLES: Final = {
    Freshness.FRESH: "",
    Freshness.AGEING: "yellow",
    Freshness.STALE: "red",
    Freshness.UNDATED: "red",
    Freshness.FUTURE: "red",
}
_NAMED: Final = 3
"""So many places a line names."""


def price_table(prices: Iterable[Price], on: datetime.date) -> Table:
    """One row a price: what, where, how much, how old."""
    table = _table("item", "model", "location", ">price", "unit", "as of", "confidence", "SKU")
    for price in prices:
        age = price.freshness(on)
        table.add_row(
            *_texts(price.item, price.model.value, price.location),
            Text(_steps((tier.from_quantity, tier.unit_price) for tier in price.tiers)),
            Text(price.unit),
            Text(_day(price.as_of, age), style=STYLES[age]),
            *_texts(price.confidence.value, price.sku_id),
        )
    return table


def price_json(book: PriceBook, selection: Selection, on: datetime.date) -> str:
    """The same as strict JSON, and what has no price: money and quantities are decimal strings."""
    document = {
        "schema": SCHEMA,
        "as_of": on.isoformat(),
        "book": {
            "name": book.name,
            "currency": book.currency,
            "as_of": book.as_of.isoformat() if book.as_of else None,
            "sha256": book.sha256,
        },
        "prices": [_price(price, on) for price in selection.found],
        "missing": [
            {"item": one.item, "price_model": one.model.value, "location": one.location, "reason": one.reason}
            for one in selection.missing
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def age_table(checkup: Checkup) -> Table:
    """One row an item and model: how many prices, how old, and what is wrong."""
    table = _table("item", "model", ">prices", "oldest", "age", "remarks")
    for item in checkup.items:
        table.add_row(
            *_texts(item.item, item.model.value, str(item.prices), str(item.oldest or "undated")),
            Text(_ages(item), style=STYLES[item.worst]),
            Text(_remarks(item)),
        )
    return table


def difference_table(refreshed: Refreshed) -> Table:
    """One row a price that changed or is new."""
    table = _table("item", "model", "location", ">old", ">new", ">change", "unit", "SKU")
    for one in refreshed.taken:
        if one.outcome is not Outcome.SAME:
            table.add_row(
                *_texts(one.item, one.model.value, one.location),
                *(Text(_lines(one.old)), Text(_lines(one.new)), Text(_change(one))),
                *_texts(one.new[0].unit, one.new[0].sku_id),
            )
    return table


def kept_lines(refreshed: Refreshed) -> list[str]:
    """One line for all places of an item that failed for the same reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in refreshed.kept:
        what = f"{'kept' if one.old else 'not added:'} {one.item} {one.model.value}"
        groups.setdefault((what, one.reason), []).append(one.location)
    return [f"{what}, {_places(places)}: {reason}" for (what, reason), places in groups.items()]


def difference_summary(refreshed: Refreshed) -> str:
    """`12 changed, 3 added, 40 the same; 2 kept ...`: one line."""
    count = {outcome: sum(one.outcome is outcome for one in refreshed.differences) for outcome in Outcome}
    return (
        f"{count[Outcome.CHANGED]} changed, {count[Outcome.ADDED]} added, {count[Outcome.SAME]} the same; "
        f"{count[Outcome.KEPT]} not found or not clear and left as they were; "
        f"{refreshed.untouched} that the catalogue is not asked for"
    )


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        # A figure that is cut is another figure, so where the page is too narrow it is the words that fold.
        table.add_column(column.lstrip(">"), justify=justify, overflow="fold", no_wrap=justify == "right")
    return table


def _texts(*words: str) -> list[Text]:
    """Without what would move a cursor: locations and ids may come from a book or a catalogue of anybody."""
    return [Text("".join(sign if sign.isprintable() else "?" for sign in word)) for word in words]


def _price(price: Price, on: datetime.date) -> dict[str, Any]:
    return {
        "item": price.item,
        "price_model": price.model.value,
        "location": price.location,
        "unit": price.unit,
        "tiers": [
            {"from_quantity": f"{tier.from_quantity:f}", "unit_price": plain(tier.unit_price)} for tier in price.tiers
        ],
        "as_of": price.as_of.isoformat() if price.as_of else None,
        "freshness": price.freshness(on).value,
        "sku_id": price.sku_id or None,
        "confidence": price.confidence.value,
        "source": price.source,
    }


def _steps(steps: Iterable[tuple[Any, Any]]) -> str:
    return "\n".join(f"{plain(price)}" if not start else f"from {start:f}: {plain(price)}" for start, price in steps)


def _lines(lines: Sequence[Line]) -> str:
    return _steps((line.from_quantity, line.unit_price) for line in lines) or "-"


def _day(as_of: datetime.date | None, age: Freshness) -> str:
    if as_of is None:
        return Freshness.UNDATED.value
    return f"{as_of}" if age is Freshness.FRESH else f"{as_of} {age.value}"


def _ages(item: ItemAge) -> str:
    return ", ".join(
        f"{count} {age.value}" if len(item.ages) > 1 else age.value
        for age, count in sorted(item.ages.items(), key=lambda pair: list(Freshness).index(pair[0]))
    )


def _remarks(item: ItemAge) -> str:
    remarks = [f"from the future: {_places(item.future)}"] if item.future else []
    remarks += [f"{item.low} of low confidence"] if item.low else []
    return "; ".join(remarks)


def _change(one: Difference) -> str:
    if one.outcome is Outcome.ADDED:
        return Outcome.ADDED.value
    return "-" if one.change is None else f"{one.change:+.1f} %"


def _places(places: Sequence[str]) -> str:
    more = len(places) - _NAMED
    return ", ".join(places[:_NAMED]) + (f" and {more} more" if more > 0 else "")
