"""Durations as Go writes them (`1h30m`), which is how a program says how long Pulumi waits for a resource."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

_UNITS: Final[Mapping[str, Decimal]] = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE: Final = re.compile(rf"[+-]?(0|({_PART.pattern})+)", re.ASCII)


def in_seconds(text: str) -> str:
    """`text` as a number of seconds, the way a state keeps it: `90m` is `5400s`. Raises ValueError for no duration."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f'"{text}" is no duration; it is written like 90m, 1h30m or 45s')
    seconds = sum((Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(text)), Decimal(0))
    whole = seconds == seconds.to_integral_value()
    shown = int(seconds) if whole else f"{seconds.normalize():f}"
    return f"{'-' if text.startswith('-') else ''}{shown}s"
