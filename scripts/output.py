"""Where a command writes: data to standard output or a file, talk to standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from rich.console import Console

from policies.errors import InputError

PIPED_WIDTH: Final = 100
"""Columns where nobody says how wide the reader is; COLUMNS overrides it."""


def console(stream: IO[str]) -> Console:
    """A console on `stream`: as wide as the terminal, with colour; elsewhere plain text in `PIPED_WIDTH` columns."""
    if stream.isatty():
        return Console(file=stream)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() and int(columns) > 0 else PIPED_WIDTH
    return Console(file=stream, width=width, force_terminal=False, color_system=None)


@contextlib.contextmanager
def opened(path: Path | None) -> Iterator[IO[str]]:
    """The file `path` for writing, or standard output. A file appears whole or not at all. Raises InputError."""
    if path is None:
        with _until_nobody_reads():
            yield sys.stdout
            sys.stdout.flush()
        return
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as stream:
            yield stream
        part.replace(path)
    except OSError as error:
        raise InputError(f"--output {path}: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def _until_nobody_reads() -> Iterator[None]:
    """The reader of a pipe (head, less) may leave early: nothing is wrong, and nothing more is to be written."""
    try:
        yield
    except BrokenPipeError:
        # The interpreter flushes once more when it ends: that must not meet the closed pipe again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def progress(words: str, *, quiet: bool) -> Iterator[None]:
    """A spinner with `words` on standard error while the block runs, where somebody watches a terminal."""
    talk = Console(stderr=True)
    if quiet or not talk.is_terminal:
        yield
        return
    with talk.status(words):
        yield
