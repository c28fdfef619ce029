"""From the JSON of a file to the values of the graph: secrets, unknowns, outputs, assets and numbers.

A secret is SECRET in all its forms. One exception: where the user had Pulumi write secrets in the clear
(`--show-secrets`), a whole number counts, for a price needs it; text in the clear stays SECRET, so nothing prints it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
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
from policies.resources import SECRET, UNKNOWN, Value, dotted

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
        self._pool: dict[str, str] = {}
        self.revealed = False
        """Whether a secret number in the clear was taken."""

    def text(self, found: str) -> str:
        """`found` itself, or an equal text that was seen before; half a surrogate pair becomes U+FFFD."""
        kept = self._pool.get(found)
        if kept is not None:
            return kept
        whole = found if found.isascii() else found.encode("utf-8", "replace").decode("utf-8")
        if len(self._pool) < _POOLED:
            self._pool[found] = whole
        return whole

    def mapping(self, found: Mapping[str, Json], *, quantities: bool = False) -> dict[str, Value]:
        """Each member decoded; those without a value are left out.

        With `quantities`, members of that name must be whole numbers of 0 to MOST. Raises InvalidValueError.
        """
        return self._mapping(found, self._counted if quantities else self._value, 0)

    def _mapping(
        self, found: Mapping[str, Json], member: Callable[[str, Json, int], Value], depth: int
    ) -> dict[str, Value]:
        if depth > DEEPEST:
            raise InvalidValueError(f"nested deeper than {DEEPEST} levels")
        values: dict[str, Value] = {}
        for key, value in found.items():
            if value is None:
                continue
            try:
                values[key if key.isascii() else self.text(key)] = member(key, value, depth)
            except InvalidValueError as fault:
                raise fault.below(key) from None
        return values

    def _counted(self, key: str, found: Json, depth: int) -> Value:
        value = self._decode(found, self._counted, depth)
        if key in QUANTITIES:
            _check_quantity(value)
        return value

    def _value(self, key: str, found: Json, depth: int) -> Value:
        return self._decode(found, self._value, depth)

    def _decode(self, found: Json, member: Callable[[str, Json, int], Value], depth: int) -> Value:
        if isinstance(found, str):
            return SECRET if found == SECRET_TEXT else UNKNOWN if is_unknown(found) else self.text(found)
        if found is None or isinstance(found, bool | Decimal):
            return found
        if isinstance(found, int):
            if abs(found) > LARGEST:
                raise InvalidValueError("a number beyond all doubles; it must be finite")
            return found
        if isinstance(found, dict):
            if SIGNATURE in found:
                return self._signed(found, member, depth)
            return self._mapping(found, member, depth + 1)
        if isinstance(found, list):
            return self._items(found, member, depth + 1)
        raise InvalidValueError(f"{found.text[:40]}; a number must be finite")

    def _items(self, found: list[Json], member: Callable[[str, Json, int], Value], depth: int) -> tuple[Value, ...]:
        if depth > DEEPEST:
            raise InvalidValueError(f"nested deeper than {DEEPEST} levels")
        values: list[Value] = []
        for index, item in enumerate(found):
            try:
                values.append(self._decode(item, member, depth))
            except InvalidValueError as fault:
                raise fault.below(index) from None
        return tuple(values)

    def _signed(self, found: dict[str, Json], member: Callable[[str, Json, int], Value], depth: int) -> Value:
        kind = found[SIGNATURE]
        if kind == SECRET_SIGNATURE:
            return self._secret(found)
        if kind == OUTPUT_SIGNATURE and found.get("secret"):
            return SECRET
        if kind == OUTPUT_SIGNATURE:
            return self._decode(found["value"], member, depth + 1) if "value" in found else UNKNOWN
        if kind == RESOURCE_SIGNATURE:
            return self._decode(found.get("id", found.get("urn")), member, depth + 1) or UNKNOWN
        # An asset or an archive: the mapping of what it is made from.
        return self._mapping({key: value for key, value in found.items() if key != SIGNATURE}, member, depth + 1)

    def _secret(self, found: Mapping[str, Json]) -> Value:
        """SECRET, or the whole number whose JSON stands in the clear. A text of digits is JSON with quotes: SECRET."""
        plaintext = found.get("plaintext")
        if not isinstance(plaintext, str) or not _DIGITS.fullmatch(plaintext):
            return SECRET
        self.revealed = True
        return int(plaintext)


def _check_quantity(value: Value) -> None:
    if isinstance(value, str) and _NUMERIC.fullmatch(value) and not _DIGITS.fullmatch(value):
        raise InvalidValueError(f'"{value[:40]}"; it must be a whole number of at least 0 and at most {MOST:,}')
    if isinstance(value, int | Decimal) and not (isinstance(value, int) and 0 <= value <= MOST):
        shown = f"{value:f}" if isinstance(value, Decimal) else f"{value:,}"
        raise InvalidValueError(f"{shown[:40]}; it must be a whole number of at least 0 and at most {MOST:,}")
