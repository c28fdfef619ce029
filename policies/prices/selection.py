"""Which prices of a book somebody asks for."""

from __future__ import annotations

import fnmatch

from policies.errors import InputError
from policies.hardware.errors import closest
from policies.prices.book import MissingPrice, Price, PriceBook
from policies.prices.terms import PriceModel


def select_prices(book: PriceBook, item: str, location: str | None, model: PriceModel | None) -> tuple[Price, ...]:
    """The prices of the items that `item`, a name or a glob, stands for, in the order of the book.

    With a `location` those that hold there, with a `model` those bought so. Raises InputError where there is none.
    """
    fitting = [(name, bought) for name, bought in _asked(book, item) if model in (None, bought)]
    if location is None:
        wanted = set(fitting)
        found: tuple[Price, ...] = tuple(price for price in book.rows if (price.item, price.model) in wanted)
    else:
        answers = [book.find(name, bought, location) for name, bought in fitting]
        found = tuple(answer for answer in answers if isinstance(answer, Price))
        missing = [answer for answer in answers if isinstance(answer, MissingPrice)]
        if missing and not found:
            raise InputError("\n".join(answer.reason for answer in missing[:4]))
    if not found:
        bought = f" bought {model.value}" if model else ""
        raise InputError(f'no price for "{item}"{bought} in {book.name}')
    return found


def _asked(book: PriceBook, item: str) -> list[tuple[str, PriceModel]]:
    keys = dict.fromkeys((name, model) for name, model, _ in book.lines)
    fitting = [(name, model) for name, model in keys if fnmatch.fnmatchcase(name, item.lower())]
    if not fitting:
        near = closest(item, {name for name, _ in keys})
        hint = f"did you mean {near}?" if near else "`spotrail prices show` lists all; a glob such as 'disk.*' is fine"
        raise InputError(f'no item "{item}" in {book.name}; {hint}')
    return fitting
