"""Sizes and lengths as people write and read them: `128k` tokens, `140GiB`, `24.8 MiB`, `2 min 40 s`."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Final

from policies.errors import InputError
from policies.money import decimal_of

_TOKENS: Final = {"": 1, "k": 2**10, "m": 2**20}
_COUNTS: Final = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_BYTES: Final = {
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
MOST_TOKENS: Final = 2**40
MOST_BYTES: Final = 2**50
_NUMBER: Final = re.compile(r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,12})?(?:[eE][+]?[0-9]{1,2})?)\s*(?P<unit>[A-Za-z]*)")


def tokens(text: str) -> int:
    """`4k` is 4,096, `1m` is 1,048,576, `1000000` is itself. Raises InputError for what is no number of tokens."""
    found = _parsed(text)
    unit = found and _TOKENS.get(found["unit"].lower())
    value = Fraction(Decimal(found["number"])) * unit if found and unit else Fraction(0)
    if value.denominator != 1 or not 1 <= value <= MOST_TOKENS:
        raise InputError(f"{text!r} is no number of tokens; write 4096, 4k (4,096) or 1m (1,048,576)")
    return int(value)


def count(text: str) -> int:
    """`1.3B` is 1,300,000,000; `1.3e9` too. Raises InputError for what is no whole number of at least 1."""
    found = _parsed(text)
    unit = found and _COUNTS.get(found["unit"].lower())
    value = Fraction(Decimal(found["number"])) * unit if found and unit else Fraction(0)
    if value.denominator != 1 or not 1 <= value <= 10**15:
        raise InputError(f"{text!r} is no count, a whole number of at least 1; write 64, 1.3e9 or 1.3B")
    return int(value)


def size(text: str) -> int:
    """`140GiB` in bytes, whole. Raises InputError for what has no unit, or is none."""
    found = _parsed(text)
    unit = found and _BYTES.get(found["unit"])
    value = Fraction(Decimal(found["number"])) * unit if found and unit else Fraction(0)
    if not 1 <= value <= MOST_BYTES:
        near = next((known for known in _BYTES if found and known.lower() == found["unit"].lower()), None)
        meant = f" Did you mean {found['number']}{near}?" if found and near and unit is None else ""
        raise InputError(f"{text!r} is no size; write a number and {', '.join(_BYTES)}, as 140GiB.{meant}")
    return -(-value.numerator // value.denominator)


def tokens_text(number: int) -> str:
    """`128k`, `1M`, or the number where it is no whole one of them."""
    for unit, name in ((2**20, "M"), (2**10, "k")):
        if number >= unit and number % unit == 0:
            return f"{number // unit:,}{name}"
    return f"{number:,}"


def bytes_text(number: int | Fraction) -> str:
    """`24.8 MiB`: three figures or more, in the largest unit of which there is one."""
    for name in ("TiB", "GiB", "MiB", "KiB"):
        if number >= _BYTES[name]:
            return f"{short(Fraction(number, _BYTES[name]))} {name}"
    return f"{int(number):,} B"


def seconds_text(seconds: Fraction) -> str:
    """`58 s`, `2 min 40 s`, `1 h 05 min`; below a second, milliseconds."""
    if seconds < 1:
        return f"{short(seconds * 1000)} ms"
    whole = round(seconds)
    if whole < 60:
        return f"{short(seconds)} s" if seconds < 10 else f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60:,} h {minutes % 60:02d} min"


def short(value: Fraction) -> str:
    """Three figures, and all of what stands before the point: `0.0424`, `24.8`, `17,687`."""
    if value == 0:
        return "0"
    places = 0
    while places < 9 and abs(value) * 10**places < 100:
        places += 1
    return f"{round(decimal_of(value), places):,f}"


def _parsed(text: str) -> re.Match[str] | None:
    return _NUMBER.fullmatch(text.strip())
