"""Reading a price book: one pass over the CSV that checks every cell and refuses the first mistake.

What gets through is plain lines with exact numbers; `policies.prices.book` makes prices of them when asked.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, final

from policies.prices import cells
from policies.prices.provenance import Provenance, read_provenance
from policies.prices.terms import COLUMNS, BookError, Confidence, PriceModel

_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")

Key: TypeAlias = tuple[str, PriceModel, str]
"""Item, model, location: what has one price."""


class Line(NamedTuple):
    """One checked line of a book: a price, or one step of it."""

    number: int
    """Line of the file, from 1."""
    item: str
    model: PriceModel
    location: str
    """Lower case."""
    unit: str
    from_quantity: Decimal
    unit_price: Decimal
    currency: str
    as_of: datetime.date | None
    sku_id: str
    confidence: Confidence
    source: str


@final
@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a file holds once nothing is wrong with it."""

    lines: Mapping[Key, Sequence[Line]]
    """The steps of every price, rising from 0. At least one price."""
    currency: str
    as_of: datetime.date | None
    """The day that its provenance gives, else that of its newest line; None where there is neither."""
    sha256: str


def read_book(path: Path) -> Checked:
    """Read and check the book `path`. Raises BookError for the first mistake."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BookError(f"{path}: cannot be read: {error.strerror}") from error
    provenance = read_provenance(path.with_suffix(".toml"))
    if provenance is None:
        return check_book(path.name, data)
    _check_digest(path, hashlib.sha256(data).hexdigest(), provenance)
    return replace(check_book(path.name, data), as_of=provenance.as_of)


def check_book(file: str, data: bytes) -> Checked:
    """Check the bytes of the book `file`, which need not lie anywhere. Raises BookError for the first mistake."""
    lines = tuple(_lines(file, _text(file, data)))
    return Checked(
        lines=_grouped(file, lines),
        currency=_one_currency(file, lines),
        as_of=max((line.as_of for line in lines if line.as_of), default=None),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def _check_digest(path: Path, digest: str, provenance: Provenance) -> None:
    if digest != provenance.sha256:
        raise BookError(
            f"{path.name}: its sha256 is {digest}, but {provenance.file} was written for {provenance.sha256}: "
            "the book was changed after it was built; build it again, or use it in a place without the TOML"
        )


def _text(file: str, data: bytes) -> str:
    if data.startswith(_UTF_16) or b"\0" in data:
        raise BookError(f"{file}: is UTF-16 or binary; a price book is UTF-8 text, save it as that")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BookError(f"{file}, line {line}: is not UTF-8 text; save the book as UTF-8") from error


def _lines(file: str, text: str) -> Iterator[Line]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = _columns(file, next(reader, []))
        for row in reader:
            if row:
                yield _line(file, reader.line_num, columns, row)
    except csv.Error as error:
        raise BookError(f"{file}, line {reader.line_num}: is not CSV: {error}") from error


def _columns(file: str, header: list[str]) -> tuple[int, ...]:
    """The position of each of COLUMNS in the file."""
    if not header:
        raise BookError(f"{file}: is empty; a price book begins with the line {','.join(COLUMNS)}")
    wrong = [f"column {name} is missing" for name in COLUMNS if name not in header]
    wrong += [f'column "{name}" is not known{cells.meant(name, COLUMNS)}' for name in header if name not in COLUMNS]
    wrong += [f"column {name} stands there twice" for name in COLUMNS if header.count(name) > 1]
    if wrong:
        raise BookError(f"{file}, line 1: {'; '.join(wrong)}. Columns: {','.join(COLUMNS)}")
    return tuple(header.index(name) for name in COLUMNS)


def _line(file: str, number: int, columns: tuple[int, ...], row: list[str]) -> Line:
    if len(row) != len(columns):
        raise BookError(f"{file}, line {number}: has {len(row)} cells; there are {len(columns)} columns")
    item, model, location, unit, start, price, currency, as_of, sku_id, confidence, source = [
        row[column] for column in columns
    ]
    try:
        return Line(
            number,
            cells.item(item),
            cells.price_model(model),
            cells.location(location),
            cells.pricing_unit(unit),
            cells.number("from_quantity", start),
            cells.number("list_unit_price", price),
            cells.currency(currency),
            cells.as_of(as_of),
            sku_id,
            cells.confidence(confidence),
            cells.source(source),
        )
    except cells.CellError as error:
        raise BookError(f"{file}, line {number}, {error}") from error


def _one_currency(file: str, lines: Sequence[Line]) -> str:
    if not lines:
        raise BookError(f"{file}: has columns and no prices; a price book has at least one row")
    first = lines[0].currency
    for line in lines:
        if line.currency != first:
            rule = f"in a book that begins in {first}; a book has one currency"
            raise _refused(file, line, "currency", line.currency, rule)
    return first


def _grouped(file: str, lines: Iterable[Line]) -> Mapping[Key, Sequence[Line]]:
    """The steps of every price. Raises BookError where they repeat, do not rise from 0, or differ in unit."""
    groups: dict[Key, list[Line]] = {}
    for line in lines:
        groups.setdefault((line.item, line.model, line.location), []).append(line)
    for group in groups.values():
        if group[0].from_quantity:
            raise _refused(file, group[0], "from_quantity", str(group[0].from_quantity), "must be 0 for the first step")
        for before, line in itertools.pairwise(group):
            _check_step(file, before, line)
    return groups


def _check_step(file: str, before: Line, line: Line) -> None:
    start = str(line.from_quantity)
    if line.from_quantity == before.from_quantity:
        what = f"{line.item} {line.model.value} in {line.location} is priced twice"
        raise _refused(file, line, "from_quantity", start, f"repeats line {before.number}: {what}")
    if line.from_quantity < before.from_quantity:
        raise _refused(file, line, "from_quantity", start, f"is below line {before.number}; the steps of a price rise")
    if line.unit != before.unit:
        raise _refused(
            file, line, "pricing_unit", line.unit, f"differs from line {before.number}; a price has one unit"
        )


def _refused(file: str, line: Line, column: str, value: str, rule: str) -> BookError:
    return BookError(f"{file}, line {line.number}, {cells.CellError(column, value, rule)}")
