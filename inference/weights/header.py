"""The header of a safetensors file: what tensors it has, and where. Pure: no file is opened here.

The text of the format leaves open what some writers do, and readers differ. This one refuses whatever could be meant in
two ways, and takes nothing that the library of the format refuses:

- the header is one JSON object in UTF-8, no name twice, with white space around it at most (also before it);
- `__metadata__`, where it stands, is text by text; every other entry has `dtype`, `shape`, `data_offsets`, no more;
- sizes and offsets are whole numbers that fit 64 bits, written as such; so does the product of a shape, step by step;
- the tensors cover the data exactly: in the order of their offsets each begins where the last ended, from 0 to the end.

A tensor may be empty, or have no axes. It may begin anywhere: writers align the data to 8 bytes, some not at all.
Names are names, never paths.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, final

from inference.errors import ServingError
from inference.weights.dtypes import DTYPES, StoredDtype
from inference.weights.strict_json import kind_of, parse_json

PREFIX: Final = 8
"""Bytes before the header that say how long it is."""
METADATA: Final = "__metadata__"
LARGEST_HEADER: Final = 100_000_000
"""Bytes of a header, by the format."""
WAY_OUT: Final = "The file is damaged, or its writer is at fault: fetch it again, or write it again"
MOST_TEXT: Final = 1000
"""Characters of a message: names and shapes in a damaged header are of any length."""
_FIELDS: Final = frozenset({"dtype", "shape", "data_offsets"})
_LARGEST: Final = 2**64 - 1


@final
@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """A tensor, as the header has it."""

    name: str
    dtype: StoredDtype
    shape: tuple[int, ...]
    begin: int
    """Its first byte, counted from behind the header."""
    end: int
    """Behind its last."""

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return self.end - self.begin


@final
@dataclass(frozen=True, kw_only=True)
class Header:
    """What a file says that it holds."""

    tensors: Mapping[str, StoredTensor]
    """In the order of their bytes."""
    metadata: Mapping[str, str]
    """What the writer has noted."""


@final
class _FormatError(ValueError):
    """A rule of the format that is broken."""


def parse_header(content: bytes, data_bytes: int, where: str) -> Header:
    """The header of these bytes, with `data_bytes` behind it. Raises ServingError that begins with `where`."""
    try:
        entries = _object_of(content)
        before = PREFIX + len(content)
        metadata = _metadata(entries.pop(METADATA, {}))
        tensors = sorted((_tensor(*entry) for entry in entries.items()), key=lambda t: (t.begin, t.end))
        _check_coverage(tensors, before, data_bytes)
    except _FormatError as error:
        raise ServingError(f"{where}: {str(error)[:MOST_TEXT]}. {WAY_OUT}") from None
    return Header(tensors=MappingProxyType({tensor.name: tensor for tensor in tensors}), metadata=metadata)


def _object_of(content: bytes) -> dict[str, Any]:
    try:
        header = parse_json(content, number=_size)
    except ValueError as error:
        raise _FormatError(f"its header: {error}") from None
    if not isinstance(header, dict):
        raise _FormatError(f"its header is {kind_of(header)}, and must be an object")
    return header


def _size(text: str) -> int:
    if not text.isdigit() or len(text) > len(str(_LARGEST)) or int(text) > _LARGEST:
        raise ValueError(f"{text[:40]} is no size and no offset: they are whole numbers, 0 to 2^64 - 1")
    return int(text)


def _metadata(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise _FormatError(f"{METADATA} is {kind_of(value)}, and must be an object of text")
    for name, each in value.items():
        if not isinstance(each, str):
            raise _FormatError(f"{METADATA}: {name!r} is {kind_of(each)}, and must be text")
    return MappingProxyType(value)


def _tensor(name: str, entry: Any) -> StoredTensor:
    if not isinstance(entry, dict):
        raise _FormatError(f"tensor {name!r} is {kind_of(entry)}, and must be an object")
    if missing := sorted(_FIELDS - set(entry)):
        raise _FormatError(f"tensor {name!r} has no {missing[0]}")
    if extra := sorted(set(entry) - _FIELDS):
        raise _FormatError(f"tensor {name!r} has a field {extra[0]!r}, which the format does not know")
    dtype = _dtype(name, entry["dtype"])
    shape = _sizes(f"the shape of tensor {name!r}", entry["shape"])
    offsets = _sizes(f"data_offsets of tensor {name!r}", entry["data_offsets"])
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _FormatError(
            f"data_offsets of tensor {name!r} are {list(offsets)}, and must be a begin and an end behind it"
        )
    size = _bytes_of(name, dtype, shape)
    if size != offsets[1] - offsets[0]:
        raise _FormatError(
            f"tensor {name!r} of {dtype.name}{list(shape)} takes {size} bytes, and its offsets {list(offsets)} leave "
            f"it {offsets[1] - offsets[0]}"
        )
    return StoredTensor(name=name, dtype=dtype, shape=shape, begin=offsets[0], end=offsets[1])


def _dtype(name: str, given: Any) -> StoredDtype:
    if isinstance(given, str) and given in DTYPES:
        return DTYPES[given]
    if not isinstance(given, str):
        raise _FormatError(f"the dtype of tensor {name!r} is {kind_of(given)}, and must be text")
    close = difflib.get_close_matches(given[:20], DTYPES, n=1)
    hint = f"; did its writer mean {close[0]}?" if close else f"; there are {', '.join(DTYPES)}"
    raise _FormatError(f"the dtype of tensor {name!r} is {given[:40]!r}, which the format does not know{hint}")


def _sizes(what: str, given: Any) -> tuple[int, ...]:
    if not isinstance(given, list):
        raise _FormatError(f"{what} is {kind_of(given)}, and must be a list of whole numbers")
    for each in given:
        if type(each) is not int:  # True is an int to isinstance
            raise _FormatError(f"{what} has {kind_of(each)} in it, and must be a list of whole numbers")
    return tuple(given)


def _bytes_of(name: str, dtype: StoredDtype, shape: tuple[int, ...]) -> int:
    count = 1
    for factor in (*shape, dtype.bits):
        count *= factor
        if count > _LARGEST:
            raise _FormatError(f"tensor {name!r} of {dtype.name}{list(shape)} has more bits than 64 bits can count")
    if count % 8:
        raise _FormatError(f"tensor {name!r} of {dtype.name}{list(shape)} takes {count} bits, which are no whole bytes")
    return count // 8


def _check_coverage(tensors: list[StoredTensor], before: int, data_bytes: int) -> None:
    last, end = "the header", 0
    for tensor in tensors:
        if tensor.begin < end:
            raise _FormatError(
                f"tensor {tensor.name!r} begins at byte {tensor.begin} of the data, inside {last}: they overlap"
            )
        if tensor.begin > end:
            raise _FormatError(
                f"{tensor.begin - end} bytes of the data, before tensor {tensor.name!r}, belong to no tensor"
            )
        last, end = f"tensor {tensor.name!r}", tensor.end
    if end > data_bytes:
        raise _FormatError(
            f"it is truncated: by its header it is of {before + end} bytes, and it has {before + data_bytes} "
            f"({end - data_bytes} are missing, from inside {last} on)"
        )
    if end < data_bytes:
        raise _FormatError(f"{data_bytes - end} bytes at its end, behind {last}, belong to no tensor")
