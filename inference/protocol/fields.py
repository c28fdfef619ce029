"""What a field of a request is: its type, its range, and whether it is supported, ignored or refused.

One row a field says all that is decided about it. The readers take only what has passed here, and the page in the
documentation is written from the same rows.
"""

from __future__ import annotations

import difflib
import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

from inference.protocol.errors import ApiError, echo, invalid, model_not_found


@final
class Endpoint(enum.Enum):
    """Where a field is sent to."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    TOKENIZE = "/tokenize"
    DETOKENIZE = "/detokenize"


@final
class Decision(enum.Enum):
    """What is done with a field."""

    SUPPORTED = "supported"
    """It does what it does elsewhere."""
    IGNORED = "ignored"
    """It is taken, its type is checked, and it changes nothing: an answer without it is as right."""
    REFUSED = "refused"
    """An answer that disregards it would be wrong, so there is none."""


@final
class JsonType(enum.Enum):
    """What stands in a field."""

    STRING = "a string"
    BOOLEAN = "true or false"
    INTEGER = "a whole number"
    NUMBER = "a number"
    LIST = "a list"
    OBJECT = "an object"
    STRING_OR_LIST = "a string or a list"
    STRING_OR_OBJECT = "a string or an object"
    ANY = "anything"

    def holds(self, value: object) -> bool:
        """Whether `value`, as it was parsed, is of this type; true and false are no numbers."""
        return self is JsonType.ANY or type(value) in _PYTHON[self]


_PYTHON: Mapping[JsonType, frozenset[type]] = {
    JsonType.STRING: frozenset({str}),
    JsonType.BOOLEAN: frozenset({bool}),
    JsonType.INTEGER: frozenset({int}),
    JsonType.NUMBER: frozenset({int, float}),
    JsonType.LIST: frozenset({list}),
    JsonType.OBJECT: frozenset({dict}),
    JsonType.STRING_OR_LIST: frozenset({str, list}),
    JsonType.STRING_OR_OBJECT: frozenset({str, dict}),
}


@final
@dataclass(frozen=True, kw_only=True)
class Field:
    """One row."""

    name: str
    """As it is sent."""
    type: JsonType
    """What it may be; `null` always means that it was not sent."""
    decision: Decision
    """What is done with it."""
    note: str
    """What it means here, or why it is not supported."""
    least: float = -math.inf
    """Of a number."""
    most: float = math.inf
    """Of a number."""
    harmless: tuple[object, ...] = ()
    """Values of a refused field that ask for nothing, and are taken."""

    def check(self, value: object) -> None:
        """Refuse a value that is not of the type or not in the range. Raises ApiError (400)."""
        if not self.type.holds(value):
            raise invalid(self.name, f"is {echo(value)}; it is {self.type.value}{self._range()}", code="invalid_type")
        if isinstance(value, int | float) and not self.least <= value <= self.most:
            raise invalid(self.name, f"is {echo(value)}; it is {self.type.value}{self._range()}", code="invalid_value")
        if self.decision is Decision.REFUSED and not any(_same(value, harmless) for harmless in self.harmless):
            raise invalid(self.name, f"is not supported: {self.note}", code="unsupported_parameter")

    def _range(self) -> str:
        match (self.least > -math.inf, self.most < math.inf):
            case (True, True):
                return f" from {_plain(self.least)} to {_plain(self.most)}"
            case (True, False):
                return f", {_plain(self.least)} or more"
        return ""

    def row(self) -> tuple[str, str, str, str]:
        """For the documentation: name, type and range, decision, note."""
        return f"`{self.name}`", self.type.value + self._range(), self.decision.value, self.note


def check_fields(rows: Iterable[Field], sent: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a body that are not null, each as its row has it; the first that is not is refused by name.

    Raises ApiError (400) for it, and for a field that no row is about: it may be a misspelt one that matters.
    """
    known = {row.name: row for row in rows}
    found = {name: value for name, value in sent.items() if value is not None}
    for name, value in found.items():
        row = known.get(name)
        if row is None:
            raise _unknown(name, known)
        row.check(value)
    return found


def check_model(found: Mapping[str, Any], served: str) -> None:
    """Refuse another model than the one that is served; a request without one means that. Raises ApiError (404)."""
    asked = found.get("model", served)
    if asked != served:
        raise model_not_found(asked, served)


def _unknown(name: str, known: Iterable[str]) -> ApiError:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7) if len(name) <= 64 else []
    hint = f"did you mean {close[0]}?" if close else "see the table of fields in the documentation"
    return invalid(name, f"is no field of this endpoint; {hint}", code="unknown_parameter")


def _same(value: object, harmless: object) -> bool:
    return type(value) is type(harmless) and value == harmless


def _plain(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1e6 else f"{number:g}"
