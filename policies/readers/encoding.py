"""From the bytes of a file to its text: UTF-8, or UTF-16 with a byte order mark, as PowerShell writes it."""

from __future__ import annotations

import codecs
from typing import Final

from policies.readers.errors import ReadError

_WAY_OUT: Final = "write it as UTF-8 (in PowerShell: | Out-File -Encoding utf8)"
_REFUSED: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32 (little endian)"),
    (codecs.BOM_UTF32_BE, "UTF-32 (big endian)"),
)
_READ: Final = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 (little endian)"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 (big endian)"),
)
_PACKED: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip"))


def decoded(content: bytes, place: str) -> str:
    """The text of `content`, without its byte order mark. Raises ReadError naming the encoding that it has or lacks."""
    for mark, name in _PACKED:
        if content.startswith(mark):
            raise ReadError(f"{place}: this is a {name} file; unpack it first")
    for mark, name in _REFUSED:
        if content.startswith(mark):
            raise ReadError(f"{place}: the text is {name}, which no JSON is; {_WAY_OUT}")
    for mark, codec, name in _READ:
        if content.startswith(mark):
            return _text(content[len(mark) :], codec, name, place)
    if 0 in content[:2]:
        raise ReadError(f"{place}: the text looks like UTF-16 or UTF-32 without a byte order mark; {_WAY_OUT}")
    return _text(content, "utf-8", "UTF-8", place)


def _text(content: bytes, codec: str, name: str, place: str) -> str:
    try:
        return content.decode(codec)
    except UnicodeDecodeError as error:
        raise ReadError(
            f"{place}: byte {error.start:,} is no {name}: the text has another encoding, or was cut; {_WAY_OUT}"
        ) from None
