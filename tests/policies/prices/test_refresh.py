"""A newer book from an older one and a catalogue: what is replaced, what is added, what stays, and what is refused."""

import dataclasses
import datetime
import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

import pytest
from rich.console import Console

from policies.prices.book import BookError, MissingPrice, Price, PriceBook, load_book
from policies.prices.loading import Line
from policies.prices.patterns import Pattern
from policies.prices.provenance import read_provenance
from policies.prices.publishing import refreshed_files
from policies.prices.refresh import ANYWHERE, Difference, Outcome, Refreshed, RefreshError, refresh
from policies.prices.sku import Pricing, Rate, Sku
from policies.prices.tables import difference_table
from policies.prices.terms import COLUMNS, Confidence, PriceModel
from policies.prices.writing import book_files

NOW = datetime.datetime(2026, 11, 29, 23, 30, tzinfo=datetime.UTC)
ON_DEMAND, SPOT = PriceModel.ON_DEMAND, PriceModel.SPOT
OLD = """\
tpu.v6e.chip,on-demand,us-east5,chip-hour,0,2.70,USD,2026-05-01,,high,a page
tpu.v6e.chip,spot,us-central1-b,chip-hour,0,1.50,USD,,,medium,a table
tpu.v6e.chip,spot,us-east5-a,chip-hour,0,1.20,USD,,,medium,a table
tpu.v6e.chip,spot,us-east5-b,chip-hour,0,1.30,USD,,,medium,a table
tpu.v6e.chip,cud-1y,us-east5,chip-hour,0,1.89,USD,,,high,a page
network.nat.data,on-demand,global,GiB,0,0.045,USD,2026-05-01,,high,a page
transfer.internet.worldwide,on-demand,us-east5,GiB,0,0.12,USD,2026-05-01,,high,a page
transfer.internet.worldwide,on-demand,us-east5,GiB,1024,0.11,USD,2026-05-01,,high,a page
"""


def write_book(folder: Path, rows: str = OLD) -> Path:
    path = folder / "old.csv"
    path.write_text(f"{','.join(COLUMNS)}\n{rows}", encoding="utf-8")
    return path


@pytest.fixture
def book(tmp_path: Path) -> PriceBook:
    return load_book(write_book(tmp_path))


def pattern(
    item: str, description: str, model: PriceModel = ON_DEMAND, service: str = "Compute Engine", unit: str = "chip-hour"
) -> Pattern:
    return Pattern(
        item=item,
        model=model,
        service=service,
        family="Compute",
        groups=frozenset({"TPU"}),
        description=re.compile(description),
        unit=unit,
        source="made up",
    )


PATTERNS = (
    pattern("tpu.v6e.chip", "TpuV6e.*"),
    pattern("tpu.v6e.chip", "TpuV6e.*", SPOT),
    pattern("network.nat.data", "Nat Data", service="Networking", unit="GiB"),
    pattern("transfer.internet.worldwide", "Internet", unit="GiB"),
)


def sku(sku_id: str, description: str, *prices: str, regions: tuple[str, ...] = ("us-east5",), unit: str = "h") -> Sku:
    rates = tuple(
        Rate(start=Decimal(1024 * place), price=Decimal(price), currency="USD") for place, price in enumerate(prices)
    )
    return Sku(
        sku_id=sku_id,
        description=description,
        family="Compute",
        group="TPU",
        usage_type="OnDemand",
        regions=regions,
        pricings=(Pricing(effective=None, usage_unit=unit, rates=rates),),
    )


NAT = sku("NAT", "Nat Data", "0.045", regions=("global",), unit="GiBy")
CHIP = sku("CHIP", "TpuV6e in Ohio", "2.97")
SPOT_CHIP = sku("SPOT", "TpuV6e Preemptible in Ohio", "1.10")
INTERNET = sku("NET", "Internet", "0.12", "0.11", unit="GiBy")


def refreshed(book: PriceBook, *compute: Sku, networking: Iterable[Sku] = (NAT,)) -> Refreshed:
    return refresh(book, {"Compute Engine": compute, "Networking": tuple(networking)}, PATTERNS, NOW)


def difference(found: Refreshed, item: str, location: str, model: PriceModel = ON_DEMAND) -> Difference:
    (one,) = [one for one in found.differences if (one.item, one.model, one.location) == (item, model, location)]
    return one


def published(found: Refreshed, book: PriceBook, folder: Path, *compute: Sku) -> PriceBook:
    catalogue = {"Compute Engine": compute, "Networking": (NAT,)}
    files = refreshed_files("new.csv", book, folder / "old.csv", found, catalogue, NOW.date())
    (folder / "new.csv").write_text(files.csv, encoding="utf-8")
    (folder / "new.toml").write_text(files.toml, encoding="utf-8")
    return load_book(folder / "new.csv")


def test_a_refreshed_row_has_the_day_the_sku_and_full_confidence(book: PriceBook, tmp_path: Path) -> None:
    skus = (CHIP, SPOT_CHIP, INTERNET)
    new = published(refreshed(book, *skus), book, tmp_path, *skus)
    found = new.find("tpu.v6e.chip", ON_DEMAND, "us-east5")
    assert isinstance(found, Price)
    assert (found.unit_price, found.as_of, found.sku_id) == (Decimal("2.97"), datetime.date(2026, 11, 29), "CHIP")
    assert (found.confidence, found.source, found.unit) == (Confidence.HIGH, "Cloud Billing Catalog", "chip-hour")
    assert new.as_of == datetime.date(2026, 11, 29)


def test_change_is_told_in_per_cent(book: PriceBook) -> None:
    one = difference(refreshed(book, CHIP), "tpu.v6e.chip", "us-east5")
    assert (one.outcome, one.change) == (Outcome.CHANGED, Decimal(10))


def test_rows_of_zones_get_the_price_of_their_region_and_no_other(book: PriceBook) -> None:
    found = refreshed(book, CHIP, SPOT_CHIP)
    spot = {one.location: one for one in found.differences if one.model is SPOT}
    assert {place: one.outcome for place, one in spot.items()} == {
        "us-central1-b": Outcome.KEPT,
        "us-east5": Outcome.ADDED,
        "us-east5-a": Outcome.CHANGED,
        "us-east5-b": Outcome.CHANGED,
    }
    assert {line.unit_price for line in (*spot["us-east5-a"].new, *spot["us-east5-b"].new)} == {Decimal("1.10")}
    assert [line.unit_price for line in spot["us-central1-b"].new] == [Decimal("1.50")]


def test_what_is_missing_keeps_its_row_to_the_last_cell(book: PriceBook, tmp_path: Path) -> None:
    found = refreshed(book, CHIP)
    assert {(one.item, one.location): one.reason for one in found.kept if one.model is SPOT} == {
        ("tpu.v6e.chip", place): "missing: no SKU of Compute Engine fits"
        for place in ("us-central1-b", "us-east5-a", "us-east5-b")
    }
    new = published(found, book, tmp_path, CHIP)
    for place in ("us-central1-b", "us-east5-a", "us-east5-b"):
        assert new.find("tpu.v6e.chip", SPOT, place) == book.find("tpu.v6e.chip", SPOT, place)


def test_what_is_ambiguous_keeps_its_row_and_names_both(book: PriceBook) -> None:
    one = difference(refreshed(book, CHIP, INTERNET, sku("TWIN", "TpuV6e in Ohio", "2.5")), "tpu.v6e.chip", "us-east5")
    assert one.outcome is Outcome.KEPT
    assert one.new == one.old
    assert one.reason == 'ambiguous: CHIP "TpuV6e in Ohio" (2.97) and TWIN "TpuV6e in Ohio" (2.50)'


def test_a_price_that_is_refused_where_there_was_none_adds_nothing(book: PriceBook) -> None:
    found = refreshed(book, CHIP, sku("EMPTY", "TpuV6e in Tokyo", regions=("asia-northeast1",)))
    one = difference(found, "tpu.v6e.chip", "asia-northeast1")
    assert (one.outcome, one.old, one.new) == (Outcome.KEPT, (), ())
    assert "tieredRates is empty" in one.reason
    assert all(line.location != "asia-northeast1" for line in found.lines)


def test_an_item_that_is_nowhere_is_said_to_be_missing(tmp_path: Path) -> None:
    book = load_book(write_book(tmp_path, OLD.replace("network.nat.data", "network.nat.bytes")))
    one = difference(refreshed(book, CHIP, networking=()), "network.nat.data", ANYWHERE)
    assert (one.outcome, one.old, one.new) == (Outcome.KEPT, (), ())


def test_a_global_price_of_regions_leaves_multi_regions_alone(tmp_path: Path) -> None:
    rows = "".join(
        f"storage.standard.class-a,on-demand,{place},1000-operations,0,{price},USD,2026-05-01,,high,a page\n"
        for place, price in (("us-east5", "0.005"), ("us", "0.01"), ("nam4", "0.01"))
    )
    book = load_book(write_book(tmp_path, rows))
    asked = dataclasses.replace(
        pattern("storage.standard.class-a", "Regional Class A", unit="1000-operations"), locations="regions"
    )
    operations = sku("A", "Regional Class A", "0.000006", regions=("global",), unit="count")
    found = refresh(book, {"Compute Engine": (operations,)}, (asked,), NOW)
    assert {one.location: one.outcome for one in found.differences} == {"us-east5": Outcome.CHANGED}
    assert found.untouched == 2
    assert {line.location: line.unit_price for line in found.lines} == {
        "us-east5": Decimal("0.006"),
        "us": Decimal("0.01"),
        "nam4": Decimal("0.01"),
    }


def test_a_global_price_of_regions_finds_no_place_in_an_empty_book(tmp_path: Path) -> None:
    book = load_book(
        write_book(tmp_path, "network.nat.data,on-demand,global,GiB,0,0.045,USD,2026-05-01,,high,a page\n")
    )
    asked = dataclasses.replace(
        pattern("storage.standard.class-a", "Regional Class A", unit="1000-operations"), locations="regions"
    )
    operations = sku("A", "Regional Class A", "0.000006", regions=("global",), unit="count")
    found = refresh(book, {"Compute Engine": (operations,)}, (asked,), NOW)
    assert [(one.location, one.outcome) for one in found.differences] == [(ANYWHERE, Outcome.KEPT)]
    assert [line.item for line in found.lines] == ["network.nat.data"]


def test_graduated_prices_are_compared_step_by_step(book: PriceBook) -> None:
    assert (
        difference(refreshed(book, CHIP, INTERNET), "transfer.internet.worldwide", "us-east5").outcome is Outcome.SAME
    )
    other = sku("NET", "Internet", "0.12", "0.10", unit="GiBy")
    one = difference(refreshed(book, CHIP, other), "transfer.internet.worldwide", "us-east5")
    assert one.outcome is Outcome.CHANGED
    assert [(line.from_quantity, line.unit_price) for line in one.new] == [
        (Decimal(0), Decimal("0.12")),
        (Decimal(1024), Decimal("0.10")),
    ]


def test_what_the_catalogue_is_not_asked_for_stays(book: PriceBook, tmp_path: Path) -> None:
    found = refreshed(book, CHIP)
    assert found.untouched == 1
    new = published(found, book, tmp_path, CHIP)
    assert new.find("tpu.v6e.chip", PriceModel.CUD_1Y, "us-east5") == book.find(
        "tpu.v6e.chip", PriceModel.CUD_1Y, "us-east5"
    )


def test_no_price_is_ever_lost(book: PriceBook, tmp_path: Path) -> None:
    skus = (CHIP, SPOT_CHIP, sku("TWIN", "TpuV6e in Ohio", "2.5"))
    new = published(refreshed(book, *skus), book, tmp_path, *skus)
    assert set(book.lines) <= set(new.lines)
    for item, model, location in book.lines:
        assert not isinstance(new.find(item, model, location), MissingPrice)


@pytest.mark.parametrize(
    ("compute", "networking", "words"),
    [
        ((), (NAT,), r"Compute Engine: its 0 SKUs have no price for any of the 3 items"),
        ((CHIP,), (), r"Networking: its 0 SKUs have no price for any of the 1 items"),
        ((sku("X", "Other words", "1"),), (NAT,), r"Compute Engine: its 1 SKUs .* nothing is written"),
        ((sku("X", "TpuV6e"),), (NAT,), r"Compute Engine: its 1 SKUs"),
    ],
)
def test_a_section_is_never_blanked(
    book: PriceBook, compute: tuple[Sku, ...], networking: tuple[Sku, ...], words: str
) -> None:
    with pytest.raises(RefreshError, match=words):
        refreshed(book, *compute, networking=networking)


def test_the_order_of_the_catalogue_changes_nothing(book: PriceBook, tmp_path: Path) -> None:
    skus = (CHIP, SPOT_CHIP, INTERNET, sku("TWIN", "TpuV6e in Ohio", "2.5"))
    first = refreshed(book, *skus)
    again = refreshed(book, *reversed(skus))
    assert first == again
    catalogues = [{"Compute Engine": order, "Networking": (NAT,)} for order in (skus, skus[::-1])]
    files = [refreshed_files("n.csv", book, tmp_path / "old.csv", first, one, NOW.date()) for one in catalogues]
    assert files[0] == files[1]


def test_a_second_refresh_finds_all_the_same(book: PriceBook, tmp_path: Path) -> None:
    skus = (CHIP, SPOT_CHIP, INTERNET)
    once = published(refreshed(book, *skus), book, tmp_path, *skus)
    twice = refreshed(once, *skus)
    assert {one.outcome for one in twice.taken} == {Outcome.SAME}
    catalogue = {"Compute Engine": skus, "Networking": (NAT,)}
    files = refreshed_files("newer.csv", once, tmp_path / "new.csv", twice, catalogue, NOW.date())
    assert files.csv == (tmp_path / "new.csv").read_text(encoding="utf-8")
    assert files.toml.count('name = "Cloud Billing Catalog"') == 1


def test_memory_by_decimal_gb_says_so_in_its_source(tmp_path: Path) -> None:
    book = load_book(
        write_book(tmp_path, "instance.c4d.memory,on-demand,us-east5,GiB-hour,0,0.004,USD,,,high,a page\n")
    )
    asked = pattern("instance.c4d.memory", "C4D Ram", unit="GiB-hour")
    found = refresh(book, {"Compute Engine": [sku("RAM", "C4D Ram", "0.004", unit="GBy.h")]}, [asked], NOW)
    (line,) = found.lines
    assert line.unit_price == Decimal("0.004294967296")
    assert line.source == (
        "Cloud Billing Catalog; 0.004 by decimal GB, so 0.004294967296 by GiB; "
        "the documentation reads GB as GiB: the larger is kept"
    )


def test_the_provenance_names_the_catalogue_first_and_keeps_the_old_sources(book: PriceBook, tmp_path: Path) -> None:
    rest = ("what", "date", "method", "licence", "file", "sha256")
    source = "\n".join(["[[source]]", 'name = "a \\"page\\""', *(f'{name} = "x"' for name in rest), ""])
    (tmp_path / "old.toml").write_text(
        f'as_of = 2026-05-01\nsha256 = "{book.sha256}"\nmethod = "by hand"\n{source}', encoding="utf-8"
    )
    skus = (CHIP, SPOT_CHIP)
    new = published(refreshed(book, *skus), book, tmp_path, *skus)
    found = read_provenance(tmp_path / "new.toml")
    assert found is not None
    assert (found.as_of, found.sha256) == (datetime.date(2026, 11, 29), new.sha256)
    assert [one.name for one in found.sources] == ["Cloud Billing Catalog", 'a "page"']
    assert f"old.csv (sha256 {book.sha256})" in found.method
    assert "5 prices are from there" in found.method  # chip, spot in two zones and the region, NAT


def test_a_book_that_could_not_be_loaded_again_is_never_written(book: PriceBook) -> None:
    line: Line = next(iter(book.lines.values()))[0]
    with pytest.raises(BookError, match="twice"):
        book_files("new.csv", [line, line], NOW.date(), "m", [])
    with pytest.raises(BookError, match="currency"):
        book_files("new.csv", [line, line._replace(location="us-west1", currency="EUR")], NOW.date(), "m", [])


def test_every_sign_survives_the_toml(book: PriceBook, tmp_path: Path) -> None:
    line = next(iter(book.lines.values()))[0]
    words = 'quote " back \\ tab \t line \n del \x7f nul \x00 smile 😀'
    files = book_files("new.csv", [line], NOW.date(), words, [])
    (tmp_path / "new.toml").write_text(files.toml, encoding="utf-8")
    found = read_provenance(tmp_path / "new.toml")
    assert found is not None
    assert found.method == words


def test_numbers_are_written_in_full(book: PriceBook) -> None:
    line = next(iter(book.lines.values()))[0]._replace(unit_price=Decimal("5E-9"))
    more = line._replace(from_quantity=Decimal("1E+3"), unit_price=Decimal("4E-9"))
    written = book_files("new.csv", [line, more], NOW.date(), "m", []).csv.splitlines()
    assert [row.split(",")[4:6] for row in written[1:]] == [["0", "0.000000005"], ["1000", "0.000000004"]]


def test_a_difference_without_an_old_price_has_no_per_cent(book: PriceBook) -> None:
    one = difference(refreshed(book, CHIP, SPOT_CHIP), "tpu.v6e.chip", "us-east5", SPOT)
    assert (one.outcome, one.change) == (Outcome.ADDED, None)
    assert dataclasses.replace(one, old=one.new).change == 0


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_figure_of_the_difference_is_cut_however_narrow_the_page(
    book: PriceBook, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    exact = sku("CHIP", "TpuV6e in Ohio", "2.971234567")
    Console(width=width).print(difference_table(refreshed(book, exact, SPOT_CHIP)))
    said = capsys.readouterr().out
    assert all(figure in said for figure in ("2.971234567", "+10.0 %", "1.20", "-8.3 %"))
