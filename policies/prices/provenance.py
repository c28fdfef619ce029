"""Where a price book comes from: the TOML beside it."""

from __future__ import annotations

import datetime
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from policies.prices.terms import BookError

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@final
@dataclass(frozen=True, kw_only=True)
class Source:
    """One source of a book."""

    name: str
    what: str
    """What was taken from it."""
    date: str
    """When it was true or read; `undated` where the source does not say."""
    method: str
    """How the figures became rows."""
    licence: str
    file: str
    """The transcription that the rows were built from."""
    sha256: str
    """Digest of that transcription."""


@final
@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What the TOML says about the book of the same stem."""

    file: str
    as_of: datetime.date
    """The day on which the book was put together."""
    sha256: str
    """Digest of the CSV that it was written for."""
    method: str
    """How the whole was built, and what was left out."""
    sources: tuple[Source, ...]


def read_provenance(path: Path) -> Provenance | None:
    """The provenance in `path`; None where there is no such file, which is fine for a book given by hand.

    Raises BookError, which names the file and the field, for one that is damaged or says too little.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BookError(f"{path.name}: cannot be read as TOML: {error}") from error
    as_of = data.get("as_of")
    if type(as_of) is not datetime.date:
        raise BookError(f"{path.name}: as_of is {as_of!r}; it must be a date such as 2026-11-29")
    sha256 = _field(path, data, "sha256", "")
    if not _DIGEST.fullmatch(sha256):
        raise BookError(f'{path.name}: sha256 is "{sha256}"; it must be the 64 hex digits of the book\'s digest')
    sources = data.get("source", [])
    return Provenance(
        file=path.name,
        as_of=as_of,
        sha256=sha256,
        method=_field(path, data, "method", ""),
        sources=tuple(_source(path, entry, f"source {number}: ") for number, entry in enumerate(sources, start=1)),
    )


def _source(path: Path, entry: dict[str, Any], where: str) -> Source:
    return Source(**{name: _field(path, entry, name, where) for name in Source.__dataclass_fields__})


def _field(path: Path, data: dict[str, Any], name: str, where: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BookError(f"{path.name}: {where}{name} is {value!r}; it must be text that is not empty")
    return value
