"""`spotrail prices`: the shipped book shown and checked, and refreshed from a catalogue served on this machine."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias, final

import grpc
import pytest
from google.cloud import billing_v1

from policies.prices.book import Price, PriceModel, load_book, shipped_book
from policies.prices.terms import COLUMNS
from scripts.cli import run
from tests.google_cloud.billing_catalog import Catalogue, served, sku

AS_OF = ("--as-of", "2026-11-29")


@final
@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of a command."""

    returncode: int
    stdout: str
    stderr: str


Command: TypeAlias = Callable[..., Ran]


@pytest.fixture
def prices(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `spotrail prices ...` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def ran(*arguments: str) -> Ran:
        code = run(("prices", *arguments))
        said = capsys.readouterr()
        return Ran(returncode=code, stdout=said.out, stderr=said.err)

    return ran


def shown(ran: Ran) -> list[dict[str, Any]]:
    assert (ran.returncode, ran.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(ran.stdout)["prices"]
    return found


# --- show ---


@pytest.mark.parametrize("place", ["us-east5", "US-EAST5", "us-east5-b", "US-EAST5-B"])
def test_a_place_in_any_letter_case_has_the_price_that_holds_there(prices: Command, place: str) -> None:
    (found,) = shown(prices("show", "storage.standard.capacity", "-l", place, "--format", "json"))
    assert (found["location"], found["tiers"]) == ("us-east5", [{"from_quantity": "0", "unit_price": "0.02"}])


def test_json_has_every_price_with_its_age_and_source(prices: Command) -> None:
    ran = prices("show", "--format", "json", *AS_OF)
    assert len(shown(ran)) == len(shipped_book().rows)
    document = json.loads(ran.stdout, parse_float=lambda number: pytest.fail(f"{number} is a float"))
    assert document["book"]["sha256"] == shipped_book().sha256
    first = document["prices"][0]
    assert (first["item"], first["as_of"], first["freshness"]) == ("alerting.condition", None, "undated")
    assert first["source"]


def test_a_glob_and_a_model_choose(prices: Command) -> None:
    found = shown(prices("show", "TPU.*", "--model", "spot", "--format", "json"))
    assert {(one["item"], one["price_model"]) for one in found} == {("tpu.v6e.chip", "spot")}
    assert len(found) == len(shipped_book().locations_of("tpu.v6e.chip", PriceModel.SPOT))


def test_the_table_has_steps_and_ages(prices: Command) -> None:
    ran = prices("show", "transfer.internet.worldwide", "-l", "us-east5", *AS_OF)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "from 1024: " in ran.stdout
    old = prices("show", "transfer.internet.worldwide", "-l", "us-east5", "--as-of", "2027-11-29").stdout
    assert "2026-07-30 stale" in old
    assert "stale" not in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tpu.v6e.chp",), ('no item "tpu.v6e.chp"', "did you mean tpu.v6e.chip?")),
        (("nothing.*",), ('no item "nothing.*"', "disk.*")),
        (("image.capacity", "-m", "spot"), ('no price for "image.capacity" bought spot',)),
        (("tpu.*", "-m", "spto"), ("spto", "on-demand", "spot")),
    ],
)
def test_what_has_no_price_is_said_and_never_zero(
    prices: Command, arguments: tuple[str, ...], words: Sequence[str]
) -> None:
    ran = prices("show", *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Traceback" not in ran.stderr
    for word in words:
        assert word in ran.stderr


def test_a_place_that_the_book_has_not_gets_no_price_of_another_region(prices: Command) -> None:
    ran = prices("show", "storage.standard.capacity", "-l", "MARS1")
    assert (ran.returncode, ran.stdout) == (4, "")
    assert "no on-demand price for storage.standard.capacity in mars1 or global (book of 2026-11-29)" in ran.stderr


@pytest.mark.parametrize("option", ["--prices", "--book"])
def test_a_book_without_the_spot_price_says_its_date(prices: Command, tmp_path: Path, option: str) -> None:
    book = write(tmp_path / "book.csv", "tpu.v6e.chip,on-demand,us-east5,chip-hour,0,2.70,USD,2026-11-01,,high,a page")
    ran = prices("show", "tpu.v6e.chip", "-l", "us-east5", "-m", "spot", option, str(book))
    assert (ran.returncode, ran.stdout) == (4, "")
    assert "no spot price for tpu.v6e.chip in us-east5 or global (book of 2026-11-01)" in ran.stderr
    assert "it is priced there on-demand" in ran.stderr
    none = prices("show", "tpu.v6e.chip", "-m", "spot", "--book", str(book))
    assert (none.returncode, none.stdout) == (2, "")
    assert 'no price for "tpu.v6e.chip" bought spot in book.csv (book of 2026-11-01)' in none.stderr


def test_what_is_missing_beside_what_is_found_is_named(prices: Command, tmp_path: Path) -> None:
    row = "tpu.v6e.chip,{},{},chip-hour,0,2.70,USD,2026-11-01,,high,a page"
    rows = [row.format("on-demand", "us-east5"), row.format("spot", "us-west1")]
    book = write(tmp_path / "book.csv", *rows)
    ran = prices("show", "-l", "us-east5", "--book", str(book), "--format", "json")
    assert ran.returncode == 0
    document = json.loads(ran.stdout)
    assert [one["price_model"] for one in document["prices"]] == ["on-demand"]
    assert [(one["price_model"], one["location"]) for one in document["missing"]] == [("spot", "us-east5")]
    assert ran.stderr == f"{document['missing'][0]['reason']}\n"


def test_a_long_list_of_missing_prices_is_cut(prices: Command) -> None:
    ran = prices("show", "disk.*", "-l", "mars1")
    assert (ran.returncode, ran.stdout) == (4, "")
    assert len(ran.stderr.splitlines()) == 5
    assert ran.stderr.splitlines()[-1].endswith("more without a price there")


def test_a_book_in_another_currency_is_not_refreshed(prices: Command, tmp_path: Path) -> None:
    book = write(tmp_path / "book.csv", "tpu.v6e.chip,on-demand,us-east5,chip-hour,0,2.70,EUR,2026-11-01,,high,a page")
    ran = prices("refresh", "--book", str(book), "--endpoint", "127.0.0.1:1")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "book.csv: is in EUR; the catalogue is read in USD" in ran.stderr


@pytest.mark.parametrize("cells", ["-1,USD", ",USD", "null,USD", "0.9,EUR"])
def test_an_error_code_is_no_price(prices: Command, tmp_path: Path, cells: str) -> None:
    row = "tpu.v6e.chip,on-demand,{},chip-hour,0,{},2026-11-01,,high,a page"
    book = write(tmp_path / "book.csv", row.format("us-east1", "2.70,USD"), row.format("us-east5", cells))
    ran = prices("show", "--book", str(book))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "book.csv, line 3, column" in ran.stderr


# --- verify ---


def test_the_shipped_book_has_undated_prices(prices: Command) -> None:
    ran = prices("verify", *AS_OF)
    assert (ran.returncode, ran.stderr) == (4, "")
    assert f"{len(shipped_book().rows)} prices" in ran.stdout
    assert "not to be trusted on 2026-11-29" in ran.stdout
    line = next(line for line in ran.stdout.splitlines() if "disk.hyperdisk-ml.throughput" in line)
    assert line.split()[1:5] == ["on-demand", "1", "2026-10-06", "fresh"]


@pytest.mark.parametrize(
    ("as_of", "words"),
    [("2027-11-29", "stale"), ("2026-10-31", "from the future: us-east5"), ("2026-11-29", "doubt: book.toml is not")],
)
def test_a_book_that_cannot_be_trusted(prices: Command, tmp_path: Path, as_of: str, words: str) -> None:
    book = write(tmp_path / "book.csv", "tpu.v6e.chip,on-demand,us-east5,chip-hour,0,2.70,USD,2026-11-01,,high,a page")
    ran = prices("verify", "--book", str(book), "--as-of", as_of)
    assert ran.returncode == 4
    assert words in ran.stdout


# --- refresh ---


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join([",".join(COLUMNS), *rows, ""]), encoding="utf-8")
    return path


def a_book(folder: Path) -> Path:
    return write(
        folder / "old.csv",
        "tpu.v6e.chip,on-demand,us-east5,chip-hour,0,2.70,USD,2026-05-01,,high,a page",
        "tpu.v6e.chip,spot,us-east5-b,chip-hour,0,1.20,USD,,,medium,a table",
        "disk.hyperdisk-ml.throughput,on-demand,us-east5,MiB/s-month,0,0.12,USD,2026-05-01,,high,a page",
        "network.nat.data,on-demand,global,GiB,0,0.045,USD,2026-05-01,,high,a page",
        "storage.nearline.retrieval,on-demand,us-east5,GiB,0,0.01,USD,2026-05-01,,high,a page",
        "gke.cluster,on-demand,global,hour,0,0.10,USD,2026-05-01,,high,a page",
    )


def skus() -> dict[str, list[billing_v1.Sku]]:
    """One price each, among the traps of a real catalogue."""
    disk = {"family": "Storage", "group": "SSD"}
    return {
        "Compute Engine": [
            sku("CUD", "Commitment v1: TpuV6e in Columbus for 1 Year", ["us-east5"], "h", "1.2"),
            sku("DWS", "TpuV6e Calendar Mode in Columbus", ["us-east5"], "h", "1.8"),
            sku("CHIP", "TpuV6e in Columbus", ["us-east5", "us-central1"], "h", "2.97"),
            sku("SPOT", "TpuV6e Preemptible in Columbus", ["us-east5"], "h", "1.10"),
            sku("MLT", "Hyperdisk ML Throughput in Columbus", ["us-east5"], "mo", "0.12", **disk),
        ],
        "Networking": [
            sku(
                "NAT",
                "Networking Cloud Nat Data Processing",
                ["global"],
                "GiBy",
                "0.045",
                family="Network",
                group="Nat",
            )
        ],
        "Cloud Storage": [
            sku(
                "RETRIEVAL",
                "Nearline Data Retrieval",
                ["us-east5"],
                "GiBy",
                (0, "0"),
                (5, "0.01"),
                family="Storage",
                group="NearlineOps",
            )
        ],
    }


@pytest.fixture
def only_these_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patterns of the items that the small book has; the others would all be missing."""
    from policies.prices import patterns

    wanted = {"tpu.v6e.chip", "disk.hyperdisk-ml.throughput", "network.nat.data", "storage.nearline.retrieval"}
    chosen = tuple(one for one in patterns.patterns() if one.item in wanted)
    monkeypatch.setattr(patterns, "patterns", lambda: chosen)


def refreshed(prices: Command, folder: Path, catalogue: Catalogue, *more: str) -> Ran:
    with served(catalogue) as endpoint:
        arguments = ("--book", str(a_book(folder)), "--endpoint", endpoint, "--output", "new.csv")
        return prices("refresh", *arguments, *more)


@pytest.mark.usefixtures("only_these_items")
def test_a_refresh_writes_a_book_that_has_the_prices_of_the_catalogue(prices: Command, tmp_path: Path) -> None:
    ran = refreshed(prices, tmp_path, Catalogue(skus=skus(), page_size=2))
    assert ran.returncode == 0
    assert "2 changed, 2 added, 3 the same; 0 not found or not clear" in ran.stdout
    assert "+10.0 %" in ran.stdout
    assert "Compute Engine: 5 SKUs" in ran.stderr
    today = datetime.datetime.now(tz=datetime.UTC).date()
    book = load_book(tmp_path / "new.csv")
    found = {(one.item, one.model.value, one.location): one for one in book.rows}
    assert {key: (one.unit_price, one.sku_id) for key, one in found.items()} == {
        ("tpu.v6e.chip", "on-demand", "us-east5"): (Decimal("2.97"), "CHIP"),
        ("tpu.v6e.chip", "on-demand", "us-central1"): (Decimal("2.97"), "CHIP"),
        ("tpu.v6e.chip", "spot", "us-east5"): (Decimal("1.10"), "SPOT"),
        ("tpu.v6e.chip", "spot", "us-east5-b"): (Decimal("1.10"), "SPOT"),
        ("disk.hyperdisk-ml.throughput", "on-demand", "us-east5"): (Decimal("0.12"), "MLT"),
        ("network.nat.data", "on-demand", "global"): (Decimal("0.045"), "NAT"),
        ("storage.nearline.retrieval", "on-demand", "us-east5"): (Decimal("0.01"), "RETRIEVAL"),
        ("gke.cluster", "on-demand", "global"): (Decimal("0.10"), ""),
    }
    assert {one.as_of for one in book.rows if one.sku_id} == {today}
    assert book.as_of == today
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "new.toml", "old.csv"]


@pytest.mark.usefixtures("only_these_items")
def test_without_a_name_the_book_has_that_of_the_day(prices: Command, tmp_path: Path) -> None:
    with served(Catalogue(skus=skus())) as endpoint:
        ran = prices("refresh", "--quiet", "--book", str(a_book(tmp_path)), "--endpoint", endpoint)
    today = datetime.datetime.now(tz=datetime.UTC).date()
    assert ran.returncode == 0
    assert load_book(tmp_path / f"{today}.csv").as_of == today
    assert "SKUs" not in ran.stderr


@pytest.mark.usefixtures("only_these_items")
def test_what_is_missing_or_ambiguous_is_kept_and_the_command_says_so(prices: Command, tmp_path: Path) -> None:
    found = skus()
    found["Compute Engine"] = [one for one in found["Compute Engine"] if one.sku_id != "MLT"]
    found["Compute Engine"].append(sku("TWIN", "TpuV6e in Colum\x1b[31mbus", ["us-east5"], "h", "2.5"))
    ran = refreshed(prices, tmp_path, Catalogue(skus=found))
    assert ran.returncode == 4
    kept = [line for line in ran.stdout.splitlines() if line.startswith("kept ")]
    assert kept == [
        'kept tpu.v6e.chip on-demand, us-east5: ambiguous: CHIP "TpuV6e in Columbus" (2.97) and '
        'TWIN "TpuV6e in Colum\\x1b[31mbus" (2.50)',
        "kept disk.hyperdisk-ml.throughput on-demand, us-east5: missing: no SKU of Compute Engine fits",
    ]
    assert "\x1b" not in ran.stdout
    book = load_book(tmp_path / "new.csv")
    old = book.find("tpu.v6e.chip", PriceModel.ON_DEMAND, "us-east5")
    assert isinstance(old, Price)
    assert (old.unit_price, old.as_of, old.sku_id) == (Decimal("2.70"), datetime.date(2026, 5, 1), "")


def test_the_shipped_book_can_be_refreshed_and_loses_nothing(prices: Command, tmp_path: Path) -> None:
    with served(Catalogue(skus=skus())) as endpoint:
        ran = prices("refresh", "--endpoint", endpoint, "-o", "new.csv")
    assert ran.returncode == 4
    new = load_book(tmp_path / "new.csv")
    assert set(shipped_book().lines) <= set(new.lines)
    changed = {key[0] for key, lines in new.lines.items() if lines[0].sku_id}
    assert changed == {"tpu.v6e.chip", "disk.hyperdisk-ml.throughput", "network.nat.data", "storage.nearline.retrieval"}


@pytest.mark.parametrize(
    ("catalogue", "words"),
    [
        (Catalogue(skus=skus(), always=grpc.StatusCode.PERMISSION_DENIED), "does not have permission"),
        (Catalogue(skus=skus(), failures=[grpc.StatusCode.RESOURCE_EXHAUSTED] * 99), "429"),
        (Catalogue(skus=skus(), garbage=True), "Cloud Billing Catalog failed"),
        (Catalogue(skus={"Networking": []}), "no service called Compute Engine or Cloud Storage"),
        (Catalogue(skus=skus() | {"Networking": []}), "Networking: its 0 SKUs have no price"),
    ],
)
def test_where_the_catalogue_fails_nothing_is_written(
    prices: Command, tmp_path: Path, catalogue: Catalogue, words: str
) -> None:
    ran = refreshed(prices, tmp_path, catalogue, "--timeout", "0.5")
    assert (ran.returncode, ran.stdout) == (5, "")
    assert words in ran.stderr
    assert "\x1b" not in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]


@pytest.mark.usefixtures("only_these_items")
def test_a_busy_catalogue_is_asked_again(prices: Command, tmp_path: Path) -> None:
    busy = [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE]
    ran = refreshed(prices, tmp_path, Catalogue(skus=skus(), failures=busy), "--timeout", "4")
    assert ran.returncode == 0
    assert ran.stderr.count("trying again") == 2


@pytest.mark.usefixtures("only_these_items")
def test_the_key_may_come_from_the_environment(
    prices: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPOTRAIL_API_KEY", "made-up")
    catalogue = Catalogue(skus=skus())
    ran = refreshed(prices, tmp_path, catalogue)
    assert set(catalogue.keys) == {"made-up"}
    assert "made-up" not in ran.stdout + ran.stderr + (tmp_path / "new.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--output", "new.txt"), ("new.txt", "ends in .csv")),
        (("--output", "-"), ("ends in .csv",)),
        (("--output", "no/such/new.csv"), ("there is no folder no/such",)),
        (("--endpoint", "example.com:443"), ("example.com:443", "this machine")),
        (("--timeout", "0"), ("--timeout", "0.1")),
        (("--book", "none.csv"), ("none.csv",)),
    ],
)
def test_bad_usage_says_what_to_do(prices: Command, arguments: tuple[str, ...], words: Sequence[str]) -> None:
    ran = prices("refresh", *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Traceback" not in ran.stderr
    for word in words:
        assert word in ran.stderr


def test_help_teaches(prices: Command) -> None:
    assert all(name in prices("--help").stdout for name in ("show", "verify", "refresh", "no network"))
    assert "pip install 'spotrail[live]'" in " ".join(prices("refresh", "--help").stdout.split())
    assert "--location" in prices("show", "--help").stdout
