"""Types that cost nothing, each with the reason. Source: free_types.csv, from Google's price pages as of 2026-11."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import final


@final
@dataclass(frozen=True, kw_only=True)
class FreeType:
    """One row of the table."""

    pattern: str
    """A type token or a glob over tokens."""
    kind: str
    """What a reader calls one of them, in the singular: `IAM binding`."""
    reason: str
    """Why it costs nothing, or where its money stands."""


@cache
def free_types() -> tuple[FreeType, ...]:
    """All rows, in the order in which they are tried."""
    with Path(__file__).with_name("free_types.csv").open(encoding="utf-8", newline="") as file:
        return tuple(FreeType(**row) for row in csv.DictReader(file, strict=True))


@cache
def free_type(token: str) -> FreeType | None:
    """The first row that matches the type token, or None where the type may bill."""
    return next((row for row in free_types() if fnmatchcase(token, row.pattern)), None)
