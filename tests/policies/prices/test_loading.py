"""What a price book may not hold: refused at load, with the file, the line, the column, the value and the rule."""

import hashlib
from decimal import Decimal
from pathlib import Path

import pytest

from policies.errors import InputError
from policies.prices.book import BookError, PriceBook, PriceModel, load_book
from policies.prices.terms import COLUMNS

HEADER = ",".join(COLUMNS)
ROW = {
    "item": "tpu.v6e.chip",
    "price_model": "on-demand",
    "location": "us-east5",
    "pricing_unit": "chip-hour",
    "from_quantity": "0",
    "list_unit_price": "2.70",
    "currency": "USD",
    "as_of": "2026-11-01",
    "sku_id": "",
    "confidence": "high",
    "source": "made up",
}


def row(**cells: str) -> str:
    return ",".join((ROW | cells).values())


def load(folder: Path, *lines: str, header: str = HEADER) -> PriceBook:
    path = folder / "book.csv"
    path.write_text("\n".join((header, *lines, "")), encoding="utf-8")
    return load_book(path)


def test_a_right_book_is_read(tmp_path: Path) -> None:
    book = load(tmp_path, row(), row(location="Europe-West4", list_unit_price="2.97"))
    assert [price.location for price in book.rows] == ["us-east5", "europe-west4"]
    assert [price.unit_price for price in book.rows] == [Decimal("2.70"), Decimal("2.97")]


def test_a_book_without_any_date_has_none(tmp_path: Path) -> None:
    book = load(tmp_path, row(as_of=""))
    assert book.as_of is None
    missing = book.find("tpu.v6e.chip", PriceModel.SPOT, "us-east5")
    assert "(book without a date)" in getattr(missing, "reason", "")


def test_columns_may_stand_in_any_order(tmp_path: Path) -> None:
    turned = list(reversed(COLUMNS))
    book = load(tmp_path, ",".join(ROW[name] for name in turned), header=",".join(turned))
    assert book.rows[0].item == "tpu.v6e.chip"


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("list_unit_price", "-1", "is negative"),
        ("list_unit_price", "-0", "is negative"),
        ("list_unit_price", "", "is empty"),
        ("list_unit_price", " ", "is empty"),
        ("list_unit_price", "null", "is no plain number"),
        ("list_unit_price", "NaN", "is no plain number"),
        ("list_unit_price", "inf", "is no plain number"),
        ("list_unit_price", "1e-3", "is no plain number"),
        ("list_unit_price", "1.", "is no plain number"),
        ("list_unit_price", ".5", "is no plain number"),
        ("list_unit_price", "+1", "is no plain number"),
        ("list_unit_price", "0x1", "is no plain number"),
        ("list_unit_price", "١", "is no plain number"),
        ("list_unit_price", "2.70 ", "is no plain number"),
        ("from_quantity", "-5", "is negative"),
        ("from_quantity", "", "is empty"),
        ("from_quantity", "10", "must be 0 for the first step"),
        ("price_model", "preemptible", "known are on-demand, spot, cud-1y, cud-3y"),
        ("price_model", "ondemand", "did you mean on-demand?"),
        ("confidence", "hihg", "did you mean high?"),
        ("confidence", "", "known are high, medium, low, synthetic"),
        ("pricing_unit", "GiB-Month", "did you mean GiB-month?"),
        ("pricing_unit", "", "is not known"),
        ("as_of", "2026-11-31", "is no date"),
        ("as_of", "20261101", "is no date"),
        ("as_of", "01.11.2026", "is no date"),
        ("as_of", "yesterday", "is no date"),
        ("currency", "", "is no currency"),
        ("currency", "usd", "is no currency"),
        ("item", "", "is no item"),
        ("item", "TPU", "is no item"),
        ("item", "tpu..chip", "is no item"),
        ("location", "", "is no zone"),
        ("location", "us east5", "is no zone"),
        ("source", " ", "is empty"),
    ],
)
def test_a_wrong_cell_is_named(tmp_path: Path, column: str, value: str, rule: str) -> None:
    with pytest.raises(BookError) as refusal:
        load(tmp_path, row(location="asia-east1"), row(**{column: value}))
    said = str(refusal.value)
    assert said.startswith(f'book.csv, line 3, column {column}: "{value}" ')
    assert rule in said


def test_a_refusal_is_bad_input_and_no_bug(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        load(tmp_path, row(list_unit_price="-1"))


def test_two_currencies_are_never_summed(tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r'line 3, column currency: "EUR" in a book that begins in USD'):
        load(tmp_path, row(), row(location="us-east1", currency="EUR"))


@pytest.mark.parametrize("location", ["us-east5", "US-EAST5"])
def test_a_price_stands_there_once(tmp_path: Path, location: str) -> None:
    said = r"line 3, column from_quantity: \"0\" repeats line 2: tpu.v6e.chip on-demand in us-east5 is priced twice"
    with pytest.raises(BookError, match=said):
        load(tmp_path, row(), row(location=location, list_unit_price="9"))


@pytest.mark.parametrize(
    ("starts", "said"),
    [
        (["0", "10", "5"], r'line 4, column from_quantity: "5" is below line 3'),
        (["0", "10", "10"], r'line 4, column from_quantity: "10" repeats line 3'),
        (["0", "10", "10.0"], r'line 4, column from_quantity: "10.0" repeats line 3'),
        (["5", "10"], r'line 2, column from_quantity: "5" must be 0'),
        (["10", "0"], r'line 2, column from_quantity: "10" must be 0'),
    ],
)
def test_the_steps_of_a_price_rise_from_0(tmp_path: Path, starts: list[str], said: str) -> None:
    with pytest.raises(BookError, match=said):
        load(tmp_path, *(row(from_quantity=start) for start in starts))


def test_the_steps_of_a_price_have_one_unit(tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r'line 3, column pricing_unit: "hour" differs from line 2'):
        load(tmp_path, row(), row(from_quantity="10", pricing_unit="hour"))


def test_the_steps_of_a_price_may_be_apart(tmp_path: Path) -> None:
    book = load(tmp_path, row(), row(location="us-east1"), row(from_quantity="10", list_unit_price="1"))
    assert [len(price.tiers) for price in book.rows] == [2, 1]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (HEADER.replace(",as_of", ""), "column as_of is missing"),
        (HEADER + ",note", 'column "note" is not known'),
        (HEADER.replace("list_unit_price", "list_price"), 'column "list_price" is not known; did you mean'),
        (HEADER + ",source", "column source stands there twice"),
    ],
)
def test_columns_are_those_and_no_others(tmp_path: Path, header: str, said: str) -> None:
    with pytest.raises(BookError) as refusal:
        load(tmp_path, row(), header=header)
    assert "book.csv, line 1: " in str(refusal.value)
    assert said in str(refusal.value)


@pytest.mark.parametrize("line", [row() + ",", row().rpartition(",")[0]])
def test_a_line_has_as_many_cells_as_there_are_columns(tmp_path: Path, line: str) -> None:
    with pytest.raises(BookError, match=r"line 2: has 1[02] cells; there are 11 columns"):
        load(tmp_path, line)


def test_an_open_quote_is_no_csv(tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r"book\.csv, line \d+: is not CSV"):
        load(tmp_path, row(source='"never closed'))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (HEADER.encode() + b"\n", "has columns and no prices"),
        (f"{HEADER}\n{row()}\n".encode("utf-16"), "is UTF-16"),
        (f"{HEADER}\n{row()}\n".encode("utf-16-be"), "is UTF-16"),
        (f"{HEADER}\n{row()}\n".encode().replace(b"made up", b"m\xe4de up"), "line 2: is not UTF-8"),
    ],
)
def test_a_file_that_is_no_book(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "book.csv").write_bytes(data)
    with pytest.raises(BookError, match=rf"book\.csv.*{said}"):
        load_book(tmp_path / "book.csv")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r"nowhere\.csv: cannot be read: No such file"):
        load_book(tmp_path / "nowhere.csv")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_and_line_ends_of_windows_are_read(tmp_path: Path, mark: str, newline: str) -> None:
    data = (mark + newline.join((HEADER, row(), "", row(location="us-east1"), ""))).encode()
    (tmp_path / "book.csv").write_bytes(data)
    book = load_book(tmp_path / "book.csv")
    assert len(book.rows) == 2
    assert book.sha256 == hashlib.sha256(data).hexdigest()


def provenance(folder: Path, text: str) -> None:
    (folder / "book.toml").write_text(text, encoding="utf-8")


def test_the_provenance_has_the_digest_and_the_day(tmp_path: Path) -> None:
    digest = load(tmp_path, row()).sha256
    provenance(tmp_path, f'as_of = 2026-12-24\nsha256 = "{digest}"\nmethod = "by hand"\n')
    assert str(load(tmp_path, row()).as_of) == "2026-12-24"
    with pytest.raises(BookError, match=rf"book\.csv: its sha256 is .* but book\.toml was written for {digest}"):
        load(tmp_path, row(list_unit_price="2.71"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("as_of = ", "cannot be read as TOML"),
        ('sha256 = "0"', "as_of is None"),
        ("as_of = 2026-11-29T00:00:00", "as_of is datetime"),
        ("as_of = 2026-11-29", "sha256 is None"),
        ('as_of = 2026-11-29\nsha256 = "0"', 'sha256 is "0"; it must be the 64 hex digits'),
        (f'as_of = 2026-11-29\nsha256 = "{"0" * 64}"', "method is None"),
        (f'as_of = 2026-11-29\nsha256 = "{"0" * 64}"\nmethod = "m"\n[[source]]\nname = "n"', "source 1: what is None"),
    ],
)
def test_a_damaged_provenance_is_named(tmp_path: Path, text: str, said: str) -> None:
    provenance(tmp_path, text)
    with pytest.raises(BookError, match=r"book\.toml") as refusal:
        load(tmp_path, row())
    assert said in str(refusal.value)
