"""The cells of a price book: what each may hold. Every distinct text is checked once, so a large book loads fast."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Final, final

from policies.hardware.errors import closest
from policies.prices.terms import UNITS, Confidence, PriceModel

_PLAIN: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_ITEM: Final = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)+")
_LOCATION: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@final
class CellError(ValueError):
    """A cell that breaks its rule; whoever knows the line makes a BookError of it."""

    def __init__(self, column: str, value: str, rule: str) -> None:
        super().__init__(f'column {column}: "{value}" {rule}')


@cache
def item(text: str) -> str:
    """Lower-case words with dots and dashes."""
    if not _ITEM.fullmatch(text):
        raise CellError("item", text, "is no item; it is lower-case words with dots, such as disk.pd-ssd.capacity")
    return text


@cache
def price_model(text: str) -> PriceModel:
    """One of PriceModel."""
    return PriceModel(_member("price_model", text, [model.value for model in PriceModel]))


@cache
def location(text: str) -> str:
    """A zone, region or multi-region in any letter case, or `global`; given back in lower case."""
    if not _LOCATION.fullmatch(text.lower()):
        raise CellError("location", text, "is no zone, region or multi-region, and not global")
    return text.lower()


@cache
def pricing_unit(text: str) -> str:
    """One of UNITS."""
    return _member("pricing_unit", text, sorted(UNITS))


@cache
def number(column: str, text: str) -> Decimal:
    """Digits with at most one point: no sign, no exponent, no NaN, nothing empty."""
    if not _PLAIN.fullmatch(text):
        bare = text.strip()
        fault = "is empty" if not bare else "is negative" if bare.startswith("-") else "is no plain number"
        rule = "it is digits with at most one point, at least 0, never null, NaN or with an exponent"
        raise CellError(column, text, f"{fault}; {rule}")
    return Decimal(text)


@cache
def currency(text: str) -> str:
    """Three capital letters."""
    if not _CURRENCY.fullmatch(text):
        raise CellError("currency", text, "is no currency; it is three capital letters, such as USD")
    return text


@cache
def as_of(text: str) -> datetime.date | None:
    """YYYY-MM-DD; None for an empty cell, which is an undated price."""
    if not text:
        return None
    try:
        if _DATE.fullmatch(text):
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    raise CellError("as_of", text, "is no date; it is YYYY-MM-DD, or empty where the source has none")


@cache
def confidence(text: str) -> Confidence:
    """One of Confidence."""
    return Confidence(_member("confidence", text, [confidence.value for confidence in Confidence]))


@cache
def source(text: str) -> str:
    """Any text but an empty one."""
    if not text.strip():
        raise CellError("source", text, "is empty; every price says where it comes from")
    return text


def meant(value: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing where nothing is near."""
    near = closest(value, known)
    return f"; did you mean {near}?" if near else ""


def _member(column: str, value: str, known: list[str]) -> str:
    if value not in known:
        raise CellError(column, value, f"is not known; known are {', '.join(known)}{meant(value, known)}")
    return value
