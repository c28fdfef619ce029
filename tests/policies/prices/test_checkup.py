"""The age of a book, item by item."""

import datetime
from pathlib import Path

import pytest

from policies.estimate.model import Freshness
from policies.prices.book import load_book, shipped_book, shipped_path
from policies.prices.checkup import Checkup, check_book_age
from policies.prices.terms import COLUMNS, PriceModel

ON = datetime.date(2026, 11, 29)


def checked(folder: Path, *rows: str, toml: str | None = "", on: datetime.date = ON) -> Checkup:
    path = folder / "book.csv"
    path.write_text("\n".join([",".join(COLUMNS), *rows, ""]), encoding="utf-8")
    if toml is not None:
        source = (
            '[[source]]\nname = "n"\nwhat = "w"\ndate = "d"\nmethod = "m"\nlicence = "l"\nfile = "f"\nsha256 = "s"\n'
        )
        digest = load_book(path).sha256
        path.with_suffix(".toml").write_text(toml or f'as_of = 2026-11-01\nsha256 = "{digest}"\nmethod = "m"\n{source}')
    return check_book_age(load_book(path), path, on)


def row(as_of: str, model: str = "on-demand", location: str = "us-east5", confidence: str = "high") -> str:
    return f"tpu.v6e.chip,{model},{location},chip-hour,0,1.2,USD,{as_of},,{confidence},a page"


@pytest.mark.parametrize(
    ("as_of", "model", "age", "trusted"),
    [
        # 30 and 45 days before for spot, 150 and 180 days before for the rest; a day more is the next age.
        ("2026-10-30", "spot", Freshness.FRESH, True),
        ("2026-10-29", "spot", Freshness.AGEING, True),
        ("2026-10-15", "spot", Freshness.AGEING, True),
        ("2026-10-14", "spot", Freshness.STALE, False),
        ("2026-07-02", "on-demand", Freshness.FRESH, True),
        ("2026-07-01", "on-demand", Freshness.AGEING, True),
        ("2026-06-02", "on-demand", Freshness.AGEING, True),
        ("2026-06-01", "on-demand", Freshness.STALE, False),
        ("", "on-demand", Freshness.UNDATED, False),
    ],
)
def test_ages(tmp_path: Path, as_of: str, model: str, age: Freshness, trusted: bool) -> None:
    found = checked(tmp_path, row(as_of, model))
    (item,) = found.items
    assert (item.worst, item.trusted, found.trusted) == (age, trusted, trusted)


def test_one_old_price_makes_an_item_old(tmp_path: Path) -> None:
    found = checked(tmp_path, row("2026-11-01"), row("2026-01-01", location="us-west1"), row("2026-11-01", "cud-1y"))
    old, fine = found.items
    assert (old.model, old.prices, old.oldest) == (PriceModel.ON_DEMAND, 2, datetime.date(2026, 1, 1))
    assert old.ages == {Freshness.FRESH: 1, Freshness.STALE: 1}
    assert (old.worst, fine.worst, found.trusted) == (Freshness.STALE, Freshness.FRESH, False)


def test_a_price_from_the_future_is_not_trusted(tmp_path: Path) -> None:
    found = checked(tmp_path, row("2026-11-30"), row("2026-11-29", location="us-west1"))
    assert found.items[0].future == ("us-east5",)
    assert not found.trusted


def test_low_confidence_is_counted(tmp_path: Path) -> None:
    found = checked(
        tmp_path, row("2026-11-01", confidence="low"), row("2026-11-01", location="a-b1", confidence="medium")
    )
    assert (found.items[0].low, found.trusted) == (1, True)


def test_a_book_without_provenance_is_not_trusted(tmp_path: Path) -> None:
    found = checked(tmp_path, row("2026-11-01"), toml=None)
    assert found.doubts == ("book.toml is not there: nothing says where book.csv comes from",)
    assert not found.trusted


def test_a_book_from_the_future_is_not_trusted(tmp_path: Path) -> None:
    found = checked(tmp_path, row("2026-10-01"), on=datetime.date(2026, 10, 31))
    assert found.doubts == ("book.csv is of 2026-11-01, which is later than 2026-10-31",)


def test_provenance_without_sources_is_a_doubt(tmp_path: Path) -> None:
    path = tmp_path / "book.csv"
    path.write_text("\n".join([",".join(COLUMNS), row("2026-11-01"), ""]))
    toml = f'as_of = 2026-11-01\nsha256 = "{load_book(path).sha256}"\nmethod = "m"\n'
    assert checked(tmp_path, row("2026-11-01"), toml=toml).doubts == ("book.toml names no source",)


def test_the_shipped_book_says_where_it_comes_from_and_what_is_undated() -> None:
    found = check_book_age(shipped_book(), shipped_path(), ON)
    assert found.doubts == ()
    undated = {item.item for item in found.items if item.worst is Freshness.UNDATED}
    assert undated == {price.item for price in shipped_book().rows if price.as_of is None}
    assert sum(item.prices for item in found.items) == len(shipped_book().rows)
