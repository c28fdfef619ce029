"""Strict JSON, read in one pass: long lists are converted element by element, so that they are never held as JSON.

Numbers stay exact: whole ones are int, others Decimal, `1.2e+06` is 1200000. What is no finite number becomes a
`NotFinite`, which `values` refuses with the name of the resource. A member that stands twice is refused: two readers
of such a file may see two different stacks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias, final

from policies.readers.errors import ReadError

Json: TypeAlias = "bool | int | Decimal | NotFinite | str | list[Json] | dict[str, Json] | None"
Path: TypeAlias = "tuple[str, ...]"
Convert: TypeAlias = Callable[[Any, str], object]
"""Makes something of one element of a list; the second argument says where it stands: `steps[3]`."""

LARGEST: Final = 10**308
"""Beyond it a number is infinite to Pulumi, which counts in doubles."""
_EXPONENT: Final = 308
_SPACES: Final = " \t\n\r"
_SPACE: Final = re.compile(f"[{_SPACES}]*")


@final
@dataclass(frozen=True)
class NotFinite:
    """A number that no double can be, as it was written."""

    text: str


class _TwiceError(ValueError):
    pass


@final
class Parser:
    """Reads the JSON documents of one text.

    `elements` has the lists that are converted, by their path. Every method raises ReadError, which names the place.
    """

    def __init__(self, text: str, place: str, elements: Mapping[Path, Convert]) -> None:
        self._text = text
        self._place = place
        self._elements = elements
        self._inner = {path[:depth] for path in elements for depth in range(len(path))}
        self._decoder = json.JSONDecoder(
            parse_float=_number, parse_constant=NotFinite, object_pairs_hook=_members, strict=True
        )
        self.at = _after_space(text, 0)

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self._text)

    @property
    def next_character(self) -> str:
        """What the next document begins with; empty at the end."""
        return self._text[self.at : self.at + 1]

    def position(self, at: int | None = None) -> str:
        """`line 3, column 14` of `at`, which is where the parser stands unless given."""
        where = self.at if at is None else at
        line_start = self._text.rfind("\n", 0, where) + 1
        return f"line {self._text.count(chr(10), 0, where) + 1:,}, column {where - line_start + 1:,}"

    def document(self) -> dict[str, object]:
        """The next document, which must be an object; a converted list holds what was made of its elements."""
        if self.next_character != "{":
            raise self._fault("no JSON object begins here")
        members, at = self._object(self.at, ())
        self.at = _after_space(self._text, at)
        return members

    def documents(self) -> Iterator[dict[str, object]]:
        """All documents that follow one another from here, until something else comes or the text ends."""
        while self.next_character == "{":
            yield self.document()

    def _object(self, at: int, path: Path) -> tuple[dict[str, object], int]:
        members: dict[str, object] = {}
        at = self._skip(at + 1)
        if self._text[at : at + 1] == "}":
            return members, at + 1
        while True:
            start = at
            key, at = self._key(at)
            if key in members:
                raise self._fault(f'the member "{key}" stands twice in one object', start)
            members[key], at = self._value(at, (*path, key))
            at = self._skip(at)
            if self._text[at : at + 1] == "}":
                return members, at + 1
            at = self._skip(self._expect(",", at))

    def _key(self, at: int) -> tuple[str, int]:
        self._expect('"', at)
        key, at = self._plain(at, "a member")
        return str(key), self._skip(self._expect(":", self._skip(at)))

    def _value(self, at: int, path: Path) -> tuple[object, int]:
        first = self._text[at : at + 1]
        if first == "[" and path in self._elements:
            return self._list(at, path)
        if first == "{" and path in self._inner:
            return self._object(at, path)
        return self._plain(at, ".".join(path))

    def _list(self, at: int, path: Path) -> tuple[list[object], int]:
        convert, name = self._elements[path], ".".join(path)
        found: list[object] = []
        at = self._skip(at + 1)
        if self._text[at : at + 1] == "]":
            return found, at + 1
        while True:
            place = f"{name}[{len(found)}]"
            element, at = self._plain(at, place)
            found.append(convert(element, f"{self._place}: {place}"))
            at = self._skip(at)
            if self._text[at : at + 1] == "]":
                return found, at + 1
            at = self._skip(self._expect(",", at))

    def _plain(self, at: int, name: str) -> tuple[Json, int]:
        try:
            return self._decoder.raw_decode(self._text, at)
        except _TwiceError as error:
            raise ReadError(f"{self._place}: {name}: {error}") from None
        except RecursionError:
            raise self._fault(f"{name} is nested too deep", at) from None
        except ValueError as error:
            raise self._broken(error, at) from None

    def _skip(self, at: int) -> int:
        return _after_space(self._text, at)

    def _expect(self, character: str, at: int) -> int:
        if self._text[at : at + 1] != character:
            raise self._fault(f"the JSON is broken: {character} is missing", at)
        return at + 1

    def _broken(self, error: ValueError, at: int) -> ReadError:
        if isinstance(error, json.JSONDecodeError):
            words = error.msg.removesuffix(" at").removesuffix(" starting")
            return self._fault(f"the JSON is broken: {words[:1].lower()}{words[1:]}", error.pos)
        return self._fault("a number here has more than 4,300 digits", at)

    def _fault(self, rule: str, at: int | None = None) -> ReadError:
        where = self.at if at is None else at
        ends = where >= len(self._text) or "unterminated string" in rule
        cut = "; the text ends there: it was cut" if ends else ""
        return ReadError(f"{self._place}: {self.position(where)}: {rule}{cut}")


def _after_space(text: str, at: int) -> int:
    if text[at : at + 1] not in _SPACES:  # as between most members
        return at
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _TwiceError(f'the member "{twice}" stands twice in one object')
    return members


def _number(text: str) -> int | Decimal | NotFinite:
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent with more digits than a Decimal has room for
        return NotFinite(text)
    if exact and abs(exact.adjusted()) > _EXPONENT:
        return NotFinite(text)
    return int(exact) if exact == exact.to_integral_value() else exact
