"""`spotrail prices`: the price book, its age, and its refresh from the Cloud Billing Catalog."""

from __future__ import annotations

import datetime
import enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import click

from scripts import options, output

if TYPE_CHECKING:
    from rich.table import Table

    from policies.exit_codes import ExitCode
    from policies.prices.book import PriceBook

HELP: Final = {"help_option_names": ["-h", "--help"]}


@final
class Format(enum.Enum):
    """How prices are written."""

    TABLE = "table"
    JSON = "json"


MISSING: Final = 4
"""So many missing prices are named."""
MODELS: Final = ("on-demand", "spot", "cud-1y", "cud-3y")
"""As policies.prices.terms has them, which is imported only when a command runs."""

book_option = click.option(
    "--prices",
    "--book",
    "book_file",
    type=options.Readable(most=64),
    metavar="BOOK.csv",
    show_default="the one in the package",
    help="The price book; --prices is its name in the other commands.",
)


@click.group(name="prices", context_settings=HELP)
def command() -> None:
    """Show the price book, check its age, refresh it from the Cloud Billing Catalog.

    The book is in the package: show and verify need no network. Only refresh asks Google.
    """


@command.command(name="show", context_settings=HELP)
@click.argument("item", metavar="[ITEM]", default="*")
@click.option("--location", "-l", metavar="PLACE", help="What holds there: of the zone, else its region, else global.")
@click.option("--model", "-m", type=click.Choice(MODELS, case_sensitive=False), help="Bought in this way only.")
@click.option(
    "--format",
    "form",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TABLE,
    show_default=True,
    help="A table for people, or strict JSON (spotrail.prices/1).",
)
@book_option
@options.as_of
@options.output
def show(
    item: str,
    location: str | None,
    model: str | None,
    form: Format,
    book_file: Path | None,
    as_of: datetime.date,
    output_file: Path | None,
) -> ExitCode:
    """Show the prices of ITEM, a name or a glob; all without it. Exits 4 where nothing asked for has a price.

    \b
    Examples:
      spotrail prices show 'tpu.*' --location us-east5-b
      spotrail prices show disk.hyperdisk-ml.throughput --format json
    """
    # Imported here, so that help and mistyped options answer at once.
    from policies.exit_codes import ExitCode
    from policies.prices.book import PriceModel
    from policies.prices.selection import select_prices
    from policies.prices.tables import price_json, price_table

    book, _ = _book(book_file)
    found = select_prices(book, item, location, PriceModel(model) if model else None)
    if form is Format.JSON:
        with output.opened(output_file) as stream:
            stream.write(price_json(book, found, as_of))
    elif found.found:
        _print(price_table(found.found, as_of), output_file)
    for one in found.missing[:MISSING]:
        click.echo(output.printable(one.reason), err=True)
    if len(found.missing) > MISSING:
        click.echo(f"and {len(found.missing) - MISSING} more without a price there", err=True)
    return ExitCode.FINE if found.found else ExitCode.UNDECIDED


@command.command(name="verify", context_settings=HELP)
@book_option
@options.as_of
@options.output
def verify(book_file: Path | None, as_of: datetime.date, output_file: Path | None) -> ExitCode:
    """Check the age of the book, item by item: fresh, ageing, stale or undated.

    Exits 4 where a price is stale or undated or from the future, or nothing says where the book comes from.
    A spot price is ageing after 30 days and stale after 45, any other after 150 and 180.
    """
    from policies.exit_codes import ExitCode
    from policies.prices.checkup import check_book_age
    from policies.prices.tables import age_table

    book, path = _book(book_file)
    found = check_book_age(book, path, as_of)
    bad = sum(not item.trusted for item in found.items)
    said = (
        f"{book.name}: {len(book.rows)} prices, {len(found.items)} items and models, "
        f"{bad} of them not to be trusted on {as_of}"
    )
    _print(age_table(found), output_file, *(f"doubt: {doubt}" for doubt in found.doubts), said)
    return ExitCode.FINE if found.trusted else ExitCode.UNDECIDED


@command.command(name="refresh", context_settings=HELP)
@book_option
@click.option(
    "--output",
    "-o",
    "output_file",
    type=options.Writable(),
    metavar="FILE.csv",
    show_default="<today>.csv in the folder you are in",
    help="Write the new book there, and where it comes from beside it as FILE.toml.",
)
@click.option("--endpoint", metavar="HOST:PORT", help="A catalogue served on this machine, without encryption.")
@click.option(
    "--api-key",
    envvar="SPOTRAIL_API_KEY",
    metavar="KEY",
    help="Instead of application default credentials; better given as SPOTRAIL_API_KEY, which no process list shows.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=3600),
    default=120.0,
    show_default=True,
    help="Seconds after which a call that is told to wait (429, 503) is given up.",
)
@options.quiet
def refresh(
    book_file: Path | None,
    output_file: Path | None,
    endpoint: str | None,
    api_key: str | None,
    timeout: float,
    quiet: bool,
) -> ExitCode:
    """Make a newer book from the Cloud Billing Catalog. What changes is printed before it is written.

    An item whose SKU is missing or not clear keeps its old price, and the command exits 4. Where the API or the
    credentials fail it exits 5, and nothing is written. Needs: pip install 'spotrail[live]'.
    """
    from policies.exit_codes import ExitCode
    from policies.prices.catalog_client import Access, CatalogError, read_catalogue
    from policies.prices.patterns import patterns
    from policies.prices.publishing import refreshed_files
    from policies.prices.refresh import RefreshError, check_currency
    from policies.prices.refresh import refresh as refreshed_from
    from policies.prices.tables import difference_summary, difference_table, kept_lines

    now = datetime.datetime.now(tz=datetime.UTC)
    target = _target(output_file, now.date())
    book, path = _book(book_file)
    check_currency(book)
    services = tuple(dict.fromkeys(pattern.service for pattern in patterns()))
    access = Access(endpoint=endpoint, api_key=api_key, first_wait_s=min(1.0, timeout / 8), deadline_s=timeout)
    try:
        catalogue = read_catalogue(services, access, output.talk(quiet=quiet))
        found = refreshed_from(book, catalogue, patterns(), now)
    except (CatalogError, RefreshError) as error:
        click.echo(f"error: {output.printable(str(error))}", err=True)
        return ExitCode.CLOUD_FAILED
    files = refreshed_files(target.name, book, path, found, catalogue, now.date())
    _print(difference_table(found), None, *kept_lines(found), difference_summary(found))
    # The book first: until the new TOML is there, the loader refuses the pair rather than trust half of it.
    for place, text in ((target, files.csv), (target.with_suffix(".toml"), files.toml)):
        with output.opened(place) as stream:
            stream.write(text)
    click.echo(f"wrote {target} and {target.with_suffix('.toml')}", err=True)
    return ExitCode.UNDECIDED if found.kept else ExitCode.FINE


def _book(path: Path | None) -> tuple[PriceBook, Path]:
    from policies.prices.book import load_book, shipped_book, shipped_path

    return (load_book(path), path) if path else (shipped_book(), shipped_path())


def _target(given: Path | None, day: datetime.date) -> Path:
    target = given or Path(f"{day}.csv")
    if target.suffix != ".csv":
        raise click.BadParameter(
            f"'{target}' is no name of a book; it ends in .csv, and a .toml is written beside it", param_hint="--output"
        )
    return target


def _print(table: Table, output_file: Path | None, *lines: str) -> None:
    with output.opened(output_file) as stream:
        page = output.console(stream)
        # Captured first: rich would end the process itself when the reader of a pipe leaves.
        with page.capture() as captured:
            page.print(table)
        stream.write(captured.get())
        stream.writelines(f"{output.printable(line)}\n" for line in lines)
