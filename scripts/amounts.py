"""Amounts on the command line: exact decimals, sizes, and lists of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Final, final

import click

CEILING: Final = 10**9
PLACES: Final = 9
"""Decimal places of an amount."""


@final
class Amount(click.ParamType[Decimal]):
    """An exact number above 0, or from 0 on."""

    name = "number"

    def __init__(self, *, zero: bool = False, most: int = CEILING) -> None:
        self._zero = zero
        self._most = most

    def convert(self, value: str | Decimal, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        if isinstance(value, Decimal):
            return value
        try:
            found = Decimal(value) if value.isascii() and "_" not in value else Decimal("NaN")
        except InvalidOperation:
            found = Decimal("NaN")
        exponent = found.as_tuple().exponent
        if not isinstance(exponent, int) or exponent < -PLACES or abs(found.adjusted()) > 2 * PLACES:
            self.fail(f"{value!r} is no number with at most {PLACES} decimal places", param, ctx)
        if found > self._most or found < 0 or (found == 0 and not self._zero):
            self.fail(f"{value!r}: it is {'from' if self._zero else 'above'} 0 to {self._most:,}", param, ctx)
        return found


@final
class Size(click.ParamType[int]):
    """Bytes, written with their unit: 140GiB."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from inference.economics.figures import size
        from policies.errors import InputError

        if isinstance(value, int):
            return value
        try:
            return size(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


def parsed(text: str, read: Callable[[str], int], option: str, most: int) -> tuple[int, ...]:
    """The numbers of a list with commas, each once, in their order; `option` is what a message names."""
    from policies.errors import InputError

    parts = [part.strip() for part in text.split(",")]
    if len(parts) > most:
        raise click.BadParameter(f"{len(parts)} are more than {most}", param_hint=option)
    try:
        return tuple(dict.fromkeys(read(part) for part in parts))
    except InputError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
