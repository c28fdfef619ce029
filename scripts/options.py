"""Options that several commands share, with one meaning each."""

from __future__ import annotations

import datetime
import enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import click

if TYPE_CHECKING:
    from policies.readers.stack_name import StackName

STDIN: Final = "-"
"""What stands for standard input where a file is named."""
UNITS: Final = {"h": datetime.timedelta(hours=1), "d": datetime.timedelta(days=1)}
"""Of a span, by the letter behind its number."""


@final
class Day(click.ParamType[datetime.date]):
    """A calendar day in ISO form."""

    name = "YYYY-MM-DD"

    def convert(
        self, value: str | datetime.date, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime.date:
        if isinstance(value, datetime.date):
            return value
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a day; write it as 2026-11-29", param, ctx)


@final
class Span(click.ParamType[datetime.timedelta]):
    """A length of time: 7d, 36h."""

    name = "SPAN"

    def convert(
        self, value: str | datetime.timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime.timedelta:
        if isinstance(value, datetime.timedelta):
            return value
        number, unit = value[:-1], value[-1:]
        if unit not in UNITS or not (number.isascii() and number.isdecimal() and len(number) <= 4):
            self.fail(f"{value!r} is no length of time; write it as 7d or 36h", param, ctx)
        return int(number) * UNITS[unit]


@final
class Stack(click.ParamType["StackName"]):
    """The name of a stack."""

    name = "name"

    def convert(self, value: str | StackName, param: click.Parameter | None, ctx: click.Context | None) -> StackName:
        from policies.errors import InputError
        from policies.readers.stack_name import parse_stack_name

        if not isinstance(value, str):
            return value
        try:
            return parse_stack_name(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


@final
class Readable(click.ParamType[Path]):
    """A file to read: no device, which may never end, and none of more than `most` MiB."""

    name = "file"

    def __init__(self, most: int) -> None:
        self._most = most
        self._file = click.Path(exists=True, dir_okay=False, readable=True)

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        self._file.convert(value, param, ctx)
        path = Path(value)
        if path.is_char_device() or path.is_block_device():
            self.fail(f"'{path}' is a device; name a file", param, ctx)
        mebibytes = path.stat().st_size / 2**20
        if mebibytes > self._most:
            self.fail(f"'{path}' has {mebibytes:.1f} MiB; the most is {self._most} MiB", param, ctx)
        return path


@final
class Writable(click.ParamType[Path]):
    """A file to write, in a folder that exists; `-` is standard output, as without the option."""

    name = "file"

    def __init__(self) -> None:
        self._file = click.Path(dir_okay=False, writable=True, allow_dash=True)

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if not path.name or str(value).endswith("/"):
            self.fail(f"'{value}' names no file", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"'{path}': there is no folder {path.parent}; make it first", param, ctx)
        self._file.convert(value, param, ctx)
        return path


@final
class DataFormat(enum.Enum):
    """How an estimate is written."""

    TABLE = "table"
    JSON = "json"


data_format = click.option(
    "--format",
    "form",
    type=click.Choice(DataFormat, case_sensitive=False),
    default=DataFormat.TABLE,
    show_default=True,
    help="A table for people, or strict JSON (spotrail.estimate/1).",
)
prices = click.option(
    "--prices",
    type=Readable(most=64),
    metavar="BOOK.csv",
    help="Price book to use instead of the one in the package.",
)
usage = click.option(
    "--usage",
    type=Readable(most=1),
    metavar="FILE.yaml",
    help="What is used: hours a day, GiB, churn ... by resource name. Defaults are printed.",
)
as_of = click.option(
    "--as-of",
    type=Day(),
    default=lambda: datetime.datetime.now(tz=datetime.UTC).date(),
    show_default="today",
    help="The day from which the age of prices and waivers is counted.",
)
output = click.option(
    "--output",
    "-o",
    "output_file",
    type=Writable(),
    metavar="FILE",
    help="Write the report there instead of to standard output (-).",
)
stack = click.option(
    "--stack",
    "-s",
    "wanted",
    type=Stack(),
    metavar="NAME",
    help="The stack that is meant (dev, or organization/project/dev): what is of another one is refused; where a file "
    "holds several, one after the other, this one is read.",
)
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
project = click.option(
    "--project-dir",
    "-C",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    show_default="the folder you are in, or the nearest above it with a Pulumi.yaml",
    help="Where the Pulumi project is.",
)
strict = click.option(
    "--strict", is_flag=True, help="Exit 3 on a finding of severity error, 4 on a total that is incomplete or stale."
)
allow_stale = click.option("--allow-stale", is_flag=True, help="With --strict: old and undated prices are good enough.")
