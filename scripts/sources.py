"""Where the resources of a command come from: a file, standard input, or the program of an environment."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, final

from policies.changes import Reading
from policies.errors import InputError
from policies.readers.stack_name import StackName, require
from scripts import output
from scripts.options import STDIN

BIGGEST_ESTIMATE: Final = 64 << 20
"""Bytes."""


@final
@dataclass(frozen=True, kw_only=True)
class Source:
    """What was read, and what to call it."""

    reading: Reading
    place: str
    """The file, `-`, or the stack file of the environment: where a report says that a finding is."""
    log: Sequence[str] = ()
    """What the program said."""


def is_file(name: str) -> bool:
    """Whether `name` is meant as a file: it is one, it is `-`, or it is written like one (`./dev`, `state.json`)."""
    path = Path(name)
    return name == STDIN or (path.exists() and not path.is_dir()) or "/" in name or bool(path.suffix)


def read_file(name: str, wanted: StackName | None = None) -> Source:
    """A preview or a state from the file `name`, or from standard input for `-`. Raises InputError."""
    from policies.readers.source import open_source

    _refuse_no_name(name)
    return Source(reading=open_source(name, standard_input() if name == STDIN else None, wanted), place=name)


def _refuse_no_name(name: str) -> None:
    """An empty name is what a variable of a script leaves that nobody has set."""
    if not name.strip():
        raise InputError(f'"{name}" names nothing; name a file, or - for standard input')


def read_any(name: str, project_dir: Path, wanted: StackName | None = None, *, quiet: bool) -> Source:
    """As `read_file`; what is not meant as a file is an environment, whose program runs offline. Raises InputError."""
    _refuse_no_name(name)
    if is_file(name):
        return read_file(name, wanted)
    # Imported here: a file needs neither the engine nor Pulumi.
    from infra.engine.project import load_project
    from infra.planning import reading_of
    from infra.preview import find_project, preview

    try:
        folder = find_project(project_dir)
        project = load_project(folder)
        file = project.stack_file(name)
    except InputError as error:
        raise InputError(f"{name}: no such file, and no environment either: {error}") from None
    require(wanted, project.name, name, name)
    with output.progress(f"running the program of {name}", quiet=quiet):
        seen = preview(name, folder)
    return Source(reading=reading_of(seen), place=os.path.relpath(file), log=seen.log)


def read_estimate_or(name: str, project_dir: Path, wanted: StackName | None = None, *, quiet: bool) -> bytes | Source:
    """The text of an estimate of ours, or else what `read_any` reads. Raises InputError."""
    from policies.estimate.document import is_estimate
    from policies.readers.source import open_source

    if name == STDIN:
        text = standard_input().read()
        if is_estimate(text):
            return text
        return Source(reading=open_source(STDIN, io.BytesIO(text), wanted), place=STDIN)
    text = _small(Path(name))
    return text if is_estimate(text) else read_any(name, project_dir, wanted, quiet=quiet)


def _small(path: Path) -> bytes:
    """The content of a file that may be an estimate; empty for what is none: a larger file, a device, none at all."""
    with contextlib.suppress(OSError):
        if path.is_file() and path.stat().st_size <= BIGGEST_ESTIMATE:
            return path.read_bytes()
    return b""


def standard_input() -> BinaryIO:
    """The bytes of standard input. Raises InputError where it is closed."""
    if sys.stdin is None:
        raise InputError("standard input is closed; name a file")
    return sys.stdin.buffer
