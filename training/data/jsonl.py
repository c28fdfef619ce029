"""JSON Lines: one object a line, and lines end at LF alone.

A form feed, U+0085 or U+2028 inside a string is a part of the string, whatever `str.splitlines` makes of it.
"""

from __future__ import annotations

import codecs
import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from training.data.documents import BadLine, DocumentSource, size_of_file, unreadable
from training.errors import TrainingError

LONGEST: Final = 1 << 28
"""Bytes of a line; more are no record but a file without line ends."""
_KINDS: Final = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def jsonl_file(path: Path, field: str) -> DocumentSource:
    """The strings in `field` of the records of a file. Raises TrainingError where there is no such file."""
    return DocumentSource(name=path.name, size=size_of_file(path), read=lambda: read_jsonl(path, field))


def read_jsonl(path: Path, field: str) -> Iterator[str | BadLine]:
    """The string in `field` of every record, in order; a BadLine in its place where a line has none.

    A byte order mark, CR before LF, blank lines and a missing LF at the end are borne.
    """
    try:
        with path.open("rb") as stream:
            number = 0
            while line := stream.readline(LONGEST):
                number += 1
                if len(line) == LONGEST and not line.endswith(b"\n"):
                    raise TrainingError(f"{path}:{number}: the line has no end within {LONGEST >> 20} MiB")
                record = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip(b" \t\r\n")
                if not record:
                    continue
                try:
                    yield _text_of(record, field)
                except ValueError as error:
                    yield BadLine(path=path, number=number, reason=str(error))
    except OSError as error:
        raise unreadable(path, error) from None


def _text_of(record: bytes, field: str) -> str:
    """The string in `field`. Raises ValueError with the reason where there is none."""
    try:
        found = json.loads(record.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} (0x{record[error.start]:02x}) is no UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a list thousands deep
        raise ValueError(f"is no JSON that can be read: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"is no object but {_KINDS[type(found)]}")
    if field not in found:
        close = difflib.get_close_matches(field, found, n=1)
        has = ", ".join(json.dumps(name) for name in list(found)[:8]) or "none"
        meant = f"; did you mean {json.dumps(close[0])}?" if close else ""
        raise ValueError(f"has no field {json.dumps(field)}; it has {has}{meant}")
    text = found[field]
    if not isinstance(text, str):
        raise ValueError(f"the field {json.dumps(field)} is no string but {_KINDS[type(text)]}")
    return text
