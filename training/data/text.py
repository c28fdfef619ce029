"""Plain text files: UTF-8, cut into documents where a paragraph ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from training.data.documents import DocumentSource, size_of_file, unreadable
from training.errors import TrainingError

LONGEST: Final = 16_384
"""Characters of a document. A long text is many documents, so that a part of it can be kept for validation."""


def text_file(path: Path) -> DocumentSource:
    """The documents of a plain text file. Raises TrainingError where there is no such file."""
    return DocumentSource(name=path.name, size=size_of_file(path), read=lambda: read_text(path))


def read_text(path: Path) -> Iterator[str]:
    """The text of `path` in pieces that end at a blank line, else at a line end, else after `LONGEST` characters.

    Together they are the text, without a byte order mark and with LF for every line end.
    Raises TrainingError with file:line where a byte is no UTF-8.
    """
    held = ""
    try:
        with path.open(encoding="utf-8-sig", newline=None) as stream:
            while chunk := stream.read(LONGEST):
                held += chunk
                while len(held) > LONGEST:
                    cut = end_of_document(held)
                    yield held[:cut]
                    held = held[cut:]
    except UnicodeDecodeError:
        raise TrainingError(_bad_line(path)) from None
    except OSError as error:
        raise unreadable(path, error) from None
    if held:
        yield held


def end_of_document(text: str) -> int:
    """Where the first document of `text`, which is longer than a document may be, ends."""
    blank = text.rfind("\n\n", 0, LONGEST)
    if blank >= 0:
        return blank + 2
    return text.rfind("\n", 0, LONGEST) + 1 or LONGEST


def _bad_line(path: Path) -> str:
    """What to say of a file that is no UTF-8."""
    with path.open("rb") as stream:
        start = stream.read(2)
        if start in (b"\xff\xfe", b"\xfe\xff"):
            return f"{path}:1: is UTF-16; text must be UTF-8: iconv -f UTF-16 -t UTF-8 {path.name} > utf8.txt"
        stream.seek(0)
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                place = f"byte {error.start + 1} of the line (0x{line[error.start]:02x})"
                return f"{path}:{number}: {place} is no UTF-8, which text must be"
    return f"{path}: is no UTF-8, which text must be"
