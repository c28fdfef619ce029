"""Strict JSON from a stream, element by element: a record of a large project is never held as text."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, final

from policies.errors import InputError

_CHUNK: Final = 1 << 20
"""Bytes that are read at once."""
_LARGEST: Final = 1 << 28
"""Characters of one element; a week of minute points of one volume has a million and a half."""
_NEAR: Final = 16
"""A fault so near to the end of what was read may be nothing but a number or a word that is cut there."""
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@final
class RecordError(InputError):
    """A record that cannot be read, or that is none: names the file, the place in it, the value and the rule."""


class _MemberError(ValueError):
    pass


@final
class JsonStream:
    """Walks through the one JSON document of a stream. Every method raises RecordError.

    Whoever iterates over `members` or `elements` must take each value, by `value`, `members` or `elements`.
    """

    def __init__(self, stream: BinaryIO, place: str) -> None:
        self._stream = stream
        self._place = place
        self._text = ""
        self._at = 0
        self._lines = 1
        self._column = 1
        self._ended = False
        self._decode: codecs.IncrementalDecoder = codecs.getincrementaldecoder("utf-8")()
        self._strict = json.JSONDecoder(object_pairs_hook=_members, parse_float=_finite, parse_constant=_no_constant)
        self._lenient = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_nothing)
        self._begin()

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def members(self, path: str) -> Iterator[str]:
        """The names of the members of the object that begins here; `path` is what messages call it."""
        self._expect("{", path, "an object")
        seen: set[str] = set()
        while self._next("}", path, first=not seen):
            if self.peek() != '"':
                raise self.fault(path, "the JSON is broken: a member must begin with its name in double quotes")
            name = str(self.value(path))
            if name in seen:
                raise self.fault(path, f'the member "{name[:60]}" stands twice in one object')
            seen.add(name)
            self._expect(":", path, f'a colon after "{name[:60]}"')
            yield name

    def elements(self, path: str) -> Iterator[int]:
        """The numbers of the elements of the list that begins here, from 0."""
        self._expect("[", path, "a list")
        count = 0
        while self._next("]", path, first=count == 0):
            yield count
            count += 1

    def value(self, path: str, *, lenient: bool = False) -> Any:
        """The value that begins here. With `lenient`, NaN and Infinity become None and 1e999 infinite."""
        decoder = self._lenient if lenient else self._strict
        self.peek()
        while True:
            try:
                found, end = decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._may_be_cut(error) and self._more():
                    continue
                raise self._broken(path, error) from None
            except _MemberError as error:
                raise self.fault(path, f"{error}") from None
            except RecursionError:
                raise self.fault(path, "it is nested too deep") from None
            except ValueError:
                raise self.fault(path, "a number here has more than 4,300 digits") from None
            if end == len(self._text) and self._more():
                continue
            text, self._at = self._text[self._at : end], end
            return _mended(found) if "\\ud" in text or "\\uD" in text else found

    def end(self) -> None:
        """Makes sure that nothing follows."""
        if self.peek():
            raise self.fault("", "text stands after the end of the record; give one record at a time")

    def fault(self, path: str, rule: str, at: int | None = None) -> RecordError:
        """The error that says so of `path`, with the line and column where the reader stands."""
        where = self._at if at is None else at
        line, column = self._position(where)
        cut = "; the text ends there: it was cut" if where >= len(self._text) and self._ended else ""
        subject = f"{path}: " if path else ""
        return RecordError(f"{self._place}: {subject}line {line:,}, column {column:,}: {rule}{cut}")

    def _begin(self) -> None:
        head = self._read(4)
        if head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")):
            raise RecordError(f"{self._place}: this is a packed file; unpack it first, as in: gunzip -c FILE | ... -")
        mark, codec = next((pair for pair in _MARKS if head.startswith(pair[0])), (b"", "utf-8"))
        self._decode = codecs.getincrementaldecoder(codec)()
        self._text = self._decoded(head[len(mark) :])

    def _more(self) -> bool:
        """Reads on; what was taken is forgotten. False at the end of the stream."""
        if self._ended:
            return False
        if len(self._text) - self._at > _LARGEST:
            raise self.fault("", f"one value has more than {_LARGEST:,} characters; no record has such a one")
        self._lines, self._column = self._position(self._at)
        # As much again as is there already, so that a large value is not decoded too often.
        size = max(_CHUNK, len(self._text) - self._at)
        self._text, self._at = self._text[self._at :], 0
        while not self._ended:
            read = self._read(size)
            self._ended = not read
            text = self._decoded(read)
            if text:
                self._text += text
                return True
        return False

    def _read(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except OSError as error:
            raise RecordError(f"{self._place}: cannot be read: {error.strerror or error}") from None

    def _decoded(self, read: bytes) -> str:
        try:
            return self._decode.decode(read, final=not read)
        except UnicodeDecodeError:
            line, _ = self._position(len(self._text))
            raise RecordError(
                f"{self._place}: after line {line:,}: bytes that are no UTF-8: the text has another encoding, or was "
                "cut; write it as UTF-8"
            ) from None

    def _position(self, at: int) -> tuple[int, int]:
        newlines = self._text.count("\n", 0, at)
        if not newlines:
            return self._lines, self._column + at
        return self._lines + newlines, at - self._text.rfind("\n", 0, at)

    def _expect(self, character: str, path: str, what: str) -> None:
        found = self.peek()
        if found != character:
            raise self.fault(path, f"{what} must begin here" + (f", not {found!r}" if found else ""))
        self._at += 1

    def _next(self, closing: str, path: str, *, first: bool) -> bool:
        """Whether another member or element begins; takes the comma before it, or the bracket after the last."""
        found = self.peek()
        if found == closing:
            self._at += 1
            return False
        if not first:
            if found != ",":
                raise self.fault(path, f"the JSON is broken: a comma or {closing} must stand here")
            self._at += 1
        return True

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        return error.pos >= len(self._text) - _NEAR or error.msg.startswith(("Unterminated", "Invalid \\u"))

    def _broken(self, path: str, error: json.JSONDecodeError) -> RecordError:
        words = error.msg.removesuffix(" at").removesuffix(" starting")
        at = len(self._text) if error.msg.startswith("Unterminated") and self._ended else error.pos
        return self.fault(path, f"the JSON is broken: {words[:1].lower()}{words[1:]}", at)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _MemberError(f'the member "{twice[:60]}" stands twice in one object')
    return members


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _MemberError(f"{text[:40]} is beyond every number that a computer holds")
    return number


def _no_constant(text: str) -> object:
    raise _MemberError(f"{text} is not JSON; a value that is not known is null")


def _nothing(_: str) -> None:
    return None


def _mended(found: Any) -> Any:
    """`found`, with U+FFFD for half a surrogate pair, which no output can write."""
    whole = json.dumps(found, ensure_ascii=False).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return json.loads(whole)
