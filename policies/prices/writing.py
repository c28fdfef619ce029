"""A price book as text: the CSV, and the TOML that says where it comes from. What is written is read back first."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import final

from policies.money import plain
from policies.prices.loading import Line, check_book
from policies.prices.provenance import Source
from policies.prices.terms import COLUMNS

SCHEMA = "spotrail.price-book/1"


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class BookFiles:
    """The two files of a book."""

    csv: str
    toml: str


def book_files(
    name: str, lines: Iterable[Line], as_of: datetime.date, method: str, sources: Sequence[Source]
) -> BookFiles:
    """The book `name` of these lines. Raises BookError where it is no book that could be loaded again."""
    text = _csv(lines)
    data = text.encode("utf-8")
    found = check_book(name, data)
    return BookFiles(
        csv=text,
        toml=_toml(name, hashlib.sha256(data).hexdigest(), found.currency, as_of, method, sources),
    )


def _csv(lines: Iterable[Line]) -> str:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(_row, lines))
    return stream.getvalue()


def _row(line: Line) -> tuple[str, ...]:
    return (
        line.item,
        line.model.value,
        line.location,
        line.unit,
        _quantity(line.from_quantity),
        plain(line.unit_price),
        line.currency,
        line.as_of.isoformat() if line.as_of else "",
        line.sku_id,
        line.confidence.value,
        line.source,
    )


def _quantity(value: Decimal) -> str:
    text = plain(value)
    return text.removesuffix(".00")


def _toml(name: str, sha256: str, currency: str, as_of: datetime.date, method: str, sources: Sequence[Source]) -> str:
    head = [
        f"# Where {name} comes from. The loader refuses the book when its bytes are not these.",
        f"schema = {_string(SCHEMA)}",
        f"as_of = {as_of.isoformat()}",
        f"currency = {_string(currency)}",
        f"sha256 = {_string(sha256)}",
        f"method = {_string(method)}",
    ]
    return "\n".join([*head, *(line for source in sources for line in _source(source)), ""])


def _source(source: Source) -> list[str]:
    return ["", "[[source]]", *(f"{name} = {_string(value)}" for name, value in dataclasses.asdict(source).items())]


def _string(text: str) -> str:
    """A basic string of TOML: as in JSON, and without a bare DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
