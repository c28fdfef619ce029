"""Where a command writes: data to standard output or a file, talk to standard error."""

from __future__ import annotations

import codecs
import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

import click
from rich.console import Console
from rich.text import Text

from policies.errors import InputError

PIPED_WIDTH: Final = 100
"""Columns where nobody says how wide the reader is; COLUMNS overrides it."""
QUOTED: Final = 20
"""Lines that are quoted of what somebody else said."""
PLAIN: Final = str.maketrans(
    {
        "─": "-",
        "│": "|",
        "├": "|",
        "└": "`",
        "·": "-",
        "×": "x",
        "…": ".",
        "▲": "!",
        "✗": "x",
        "✓": "v",
        "≥": ">",
        "±": "~",
    }
)
"""What stands for a sign of the table where the encoding of standard output has none (LC_ALL=C)."""
_LENIENT: Final = "spotrail.plain"
"""Name of the codec error handler that writes `PLAIN`."""


def console(stream: IO[str]) -> Console:
    """A console on `stream`: as wide as the terminal, with colour; elsewhere plain text in `PIPED_WIDTH` columns."""
    if stream.isatty():
        return Console(file=stream)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) > 0 else PIPED_WIDTH
    # With a height too, rich does not read COLUMNS itself.
    return Console(file=stream, width=width, height=1, force_terminal=False, color_system=None)


def write_lines(lines: Callable[[int], Iterable[Text]], stream: IO[str]) -> None:
    """Write the lines of a report, made for the width of `stream`, to it: in colour where it is a terminal."""
    page = console(stream)
    if not page.is_terminal:
        stream.writelines(f"{line.plain}\n" for line in lines(page.width))
        return
    # Captured first: rich would end the process itself when the reader of a pipe leaves.
    with page.capture() as table:
        for line in lines(page.width):
            page.print(line, soft_wrap=True, highlight=False)
    stream.write(table.get())


@contextlib.contextmanager
def opened(path: Path | None, option: str = "--output") -> Iterator[IO[str]]:
    """The file `path` for writing; standard output for None and `-`. Raises InputError, which names the option.

    A file appears whole or not at all.
    """
    if path is None or str(path) == "-":
        with _standard_output() as stream:
            yield stream
        return
    try:
        with _in_place(path) if path.exists() and not path.is_file() else _whole(path.resolve()) as stream:
            yield stream
    except (OSError, RuntimeError) as error:  # RuntimeError: links that go round in a circle
        raise InputError(f"{option} {path}: cannot be written: {_reason(error)}") from None


def _in_place(target: Path) -> IO[str]:
    """A device or a pipe is written to: a file put in its place would take it away from everybody else."""
    return target.open("w", encoding="utf-8")


@contextlib.contextmanager
def _whole(target: Path) -> Iterator[IO[str]]:
    part = target.with_name(f".spotrail-{secrets.token_hex(4)}.part")
    try:
        with part.open("x", encoding="utf-8") as stream:
            yield stream
        if target.exists():
            part.chmod(target.stat().st_mode)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def _standard_output() -> Iterator[IO[str]]:
    """Standard output, in whatever encoding it has.

    The reader of a pipe (head, less) may leave early: nothing is wrong, and nothing more is to be written.
    """
    if sys.stdout is None:
        raise InputError("standard output is closed; name a file with --output FILE")
    codecs.register_error(_LENIENT, _plain)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors=_LENIENT)
    try:
        yield sys.stdout
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more when it ends: that must not meet the broken stream again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise InputError(f"standard output: cannot be written: {_reason(error)}") from None


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end].translate(PLAIN)
    return "".join(sign if sign.isascii() else "?" for sign in signs), error.end


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def printable(text: str) -> str:
    """`text` without what would move the cursor or change colours: a part of it may come from anywhere."""
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)


def quote(heading: str, lines: Sequence[str]) -> None:
    """The last of `lines` under a heading on standard error; nothing where there are none."""
    for line in (heading, *(f"  | {line}" for line in lines[-QUOTED:])) if lines else ():
        click.echo(printable(line), err=True)


def talk(*, quiet: bool) -> Callable[[str], None]:
    """What says a line on standard error; nothing where it is to be quiet."""
    return (lambda line: None) if quiet else (lambda line: click.echo(printable(line), err=True))


@contextlib.contextmanager
def progress(words: str, *, quiet: bool) -> Iterator[None]:
    """A spinner with `words` on standard error while the block runs, where somebody watches a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(Text(words)):
        yield


@contextlib.contextmanager
def progress_lines(words: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A spinner with `words` and the last line that the block says; nothing where nobody watches a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda line: None
        return
    with Console(stderr=True).status(Text(words)) as status:
        yield lambda line: status.update(Text(f"{words} · {printable(line)}"))
