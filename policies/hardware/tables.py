"""Reading the tables: CSV beside the modules, each row with its `source` and the `date` on which that was read."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TypeAlias

Row: TypeAlias = Mapping[str, str]


@cache
def rows(name: str) -> tuple[Row, ...]:
    """The rows of the table `name` (such as `zones`), in the order of the file."""
    with Path(__file__).with_name(f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file, strict=True))


@cache
def provenance(name: str) -> str:
    """`table of 2026-11, policies/hardware/zones.csv`: what a message says about the table that it rests on."""
    newest = max(row["date"] for row in rows(name))
    return f"table of {newest[:7]}, policies/hardware/{name}.csv"


def whole(text: str) -> int | None:
    """A whole number; None for an empty cell, which means that the fact is not known or does not apply."""
    return int(text) if text else None


def exact(text: str) -> Decimal | None:
    """A decimal number; None for an empty cell."""
    return Decimal(text) if text else None
