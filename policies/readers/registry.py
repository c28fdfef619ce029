"""Which readers there are: every module of this package that has a `READER`."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import final

import policies.readers
from policies.changes import Reading
from policies.readers.document import Json, Path
from policies.readers.notes import Notes
from policies.readers.values import Values


@final
@dataclass(frozen=True, kw_only=True)
class Source:
    """A file whose first document has been read."""

    place: str
    """What messages call it: its path, or `standard input`."""
    first: Mapping[str, object]
    """The first document; lists that a reader has a converter for hold what it made."""
    following: Iterator[Mapping[str, object]]
    """The documents after it, read as they are asked for; what nobody asks for is text after the JSON."""
    values: Values
    notes: Notes
    """What becomes the notes of the reading."""


@final
@dataclass(frozen=True, kw_only=True)
class Reader:
    """One kind of document."""

    title: str
    """How a user gets it: `pulumi stack export`."""
    claims: Callable[[Mapping[str, object]], bool]
    """Whether a first document is of that kind."""
    read: Callable[[Source], Reading]
    """Makes the reading, whose notes are filled in afterwards. Raises ReadError."""
    elements: Mapping[Path, Callable[[Json, str, Values], object]] = field(default_factory=dict)
    """The lists whose elements are converted as they are read, by their path in the document."""


@cache
def readers() -> tuple[Reader, ...]:
    """Every reader, in the order of the module names."""
    modules = (
        import_module(f"policies.readers.{info.name}") for info in pkgutil.iter_modules(policies.readers.__path__)
    )
    found = (getattr(module, "READER", None) for module in modules)
    return tuple(reader for reader in found if isinstance(reader, Reader))
