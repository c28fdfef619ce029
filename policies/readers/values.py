"""From the JSON of a file to the values of the graph: secrets, unknowns, outputs, assets and numbers.

A secret is SECRET in all its forms. One exception: where the user had Pulumi write secrets in the clear
(`--show-secrets`), a whole number counts, for a price needs it; text in the clear stays SECRET, so nothing prints it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from sys import intern
from typing import Final, final

from policies.readers.document import LARGEST, Json
from policies.readers.signatures import (
    OUTPUT_SIGNATURE,
    RESOURCE_SIGNATURE,
    SECRET_SIGNATURE,
    SECRET_TEXT,
    SIGNATURE,
    is_unknown,
)
from policies.resources import SECRET, UNKNOWN, Opaque, ResourceOptions, Value, dotted

QUANTITIES: Final = frozenset(
    {
        "count",
        "diskSizeGb",
        "initialNodeCount",
        "localSsdCount",
        "nodeCount",
        "poolProvisionedCapacityGb",
        "poolProvisionedIops",
        "poolProvisionedThroughput",
        "provisionedIops",
        "provisionedThroughput",
        "retentionDurationSeconds",
        "size",
        "sizeGb",
        "targetSize",
        "taskCount",
    }
)
"""Inputs of Google's resources that bill by their amount; each is a whole number."""
MOST: Final = 10**12 - 1
"""The largest quantity; beyond it a number is a mistake."""
DEEPEST: Final = 64
"""Levels of a value; what is deeper is no input of a cloud."""
_NUMERIC: Final = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")
_DIGITS: Final = re.compile(r"0|[1-9][0-9]{0,11}")
_POOLED: Final = 1 << 16
"""Distinct texts that are kept once; zones, types and URNs of parents repeat thousands of times."""
KEPT: Final = 1 << 13
"""Distinct mappings without anything nested, such as labels, and distinct options of resources that are kept once."""


@final
class InvalidValueError(ValueError):
    """A value that cannot be; the path grows on its way up to whoever knows the resource."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.path: tuple[str | int, ...] = ()

    def below(self, key: str | int) -> InvalidValueError:
        """The same fault, seen from one level up."""
        self.path = (key, *self.path)
        return self

    def __str__(self) -> str:
        """`size is -1; it must be ...`."""
        return f"{dotted(self.path)} is {self.args[0]}" if self.path else str(self.args[0])


@final
class Values:
    """Decodes JSON, keeping equal texts once."""

    def __init__(self) -> None:
        self._pool: dict[str, str | Opaque] = {}
        self._keys: dict[str, str] = {}
        self._flat: dict[tuple[object, ...], dict[str, Value]] = {}
        self.options: dict[bytes, ResourceOptions] = {}
        """Options of resources, by the members of a record that they are made of."""
        self.revealed = False
        """Whether a secret number in the clear was taken."""

    def name(self, found: str) -> str:
        """`found` itself, or an equal text that was seen before: for what names something, a secret or not."""
        kept = self._pool.get(found)
        if kept is None:
            kept = self._pooled(found)
        return kept if isinstance(kept, str) else _whole(found)

    def mapping(self, found: Mapping[str, Json], *, quantities: bool = False) -> dict[str, Value]:
        """Each member decoded; those without a value are left out.

        With `quantities`, members of that name must be whole numbers of 0 to MOST. Raises InvalidValueError.
        """
        return self._mapping(found, quantities, 0)

    def _mapping(self, found: Mapping[str, Json], quantities: bool, depth: int) -> dict[str, Value]:
        if depth > DEEPEST:
            raise InvalidValueError(f"nested deeper than {DEEPEST} levels")
        values: dict[str, Value] = {}
        for key, value in found.items():
            if value is None:
                continue
            try:
                # Most are texts that came before.
                decoded: Value = self._pool.get(value) if type(value) is str else None
                if decoded is None:
                    decoded = self._decode(value, quantities, depth)
                if quantities and key in QUANTITIES:
                    _check_quantity(decoded)
            except InvalidValueError as fault:
                raise fault.below(key) from None
            values[self._keys.get(key) or self._key(key)] = decoded
        return values

    def _key(self, found: str) -> str:
        kept = intern(found if found.isascii() else _whole(found))
        if len(self._keys) < KEPT:
            self._keys[found] = kept
        return kept

    def _inner_mapping(self, found: dict[str, Json], quantities: bool, depth: int) -> dict[str, Value]:
        """The mapping decoded; of equal ones in which nothing is nested, the first for all."""
        # The types too, for True equals 1.
        key = (quantities, *found.items(), *map(type, found.values()))
        try:
            kept = self._flat.get(key) if depth <= DEEPEST else None
        except TypeError:  # something nested, which has no hash
            return self._mapping(found, quantities, depth)
        if kept is None:
            kept = self._mapping(found, quantities, depth)
            if len(self._flat) < KEPT:
                self._flat[key] = kept
        return kept

    def _decode(self, found: Json, quantities: bool, depth: int) -> Value:
        if isinstance(found, str):
            kept = self._pool.get(found)
            return self._pooled(found) if kept is None else kept
        if found is None or isinstance(found, bool | Decimal):
            return found
        if isinstance(found, int):
            if abs(found) > LARGEST:
                raise InvalidValueError("a number beyond all doubles; it must be finite")
            return found
        if isinstance(found, dict):
            if SIGNATURE in found:
                return self._signed(found, quantities, depth)
            return self._inner_mapping(found, quantities, depth + 1)
        if isinstance(found, list):
            return self._items(found, quantities, depth + 1)
        raise InvalidValueError(f"{found.text[:40]}; a number must be finite")

    def _pooled(self, found: str) -> str | Opaque:
        value = SECRET if found == SECRET_TEXT else UNKNOWN if is_unknown(found) else _whole(found)
        if len(self._pool) < _POOLED:
            self._pool[found] = value
        return value

    def _items(self, found: list[Json], quantities: bool, depth: int) -> tuple[Value, ...]:
        if depth > DEEPEST:
            raise InvalidValueError(f"nested deeper than {DEEPEST} levels")
        values: list[Value] = []
        for index, item in enumerate(found):
            try:
                values.append(self._decode(item, quantities, depth))
            except InvalidValueError as fault:
                raise fault.below(index) from None
        return tuple(values)

    def _signed(self, found: dict[str, Json], quantities: bool, depth: int) -> Value:
        kind = found[SIGNATURE]
        if kind == SECRET_SIGNATURE:
            return self._secret(found)
        if kind == OUTPUT_SIGNATURE and found.get("secret"):
            return SECRET
        if kind == OUTPUT_SIGNATURE:
            return self._decode(found["value"], quantities, depth + 1) if "value" in found else UNKNOWN
        if kind == RESOURCE_SIGNATURE:
            return self._decode(found.get("id", found.get("urn")), quantities, depth + 1) or UNKNOWN
        # An asset or an archive: the mapping of what it is made from.
        return self._mapping({key: value for key, value in found.items() if key != SIGNATURE}, quantities, depth + 1)

    def _secret(self, found: Mapping[str, Json]) -> Value:
        """SECRET, or the whole number whose JSON stands in the clear. A text of digits is JSON with quotes: SECRET."""
        plaintext = found.get("plaintext")
        if not isinstance(plaintext, str) or not _DIGITS.fullmatch(plaintext):
            return SECRET
        self.revealed = True
        return int(plaintext)


def _whole(found: str) -> str:
    """`found`, with U+FFFD for half a surrogate pair, which no output can write."""
    return found if found.isascii() else found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _check_quantity(value: Value) -> None:
    if isinstance(value, str) and _NUMERIC.fullmatch(value) and not _DIGITS.fullmatch(value):
        raise InvalidValueError(f'"{value[:40]}"; it must be a whole number of at least 0 and at most {MOST:,}')
    if isinstance(value, int | Decimal) and not (isinstance(value, int) and 0 <= value <= MOST):
        shown = f"{value:f}" if isinstance(value, Decimal) else f"{value:,}"
        raise InvalidValueError(f"{shown[:40]}; it must be a whole number of at least 0 and at most {MOST:,}")
