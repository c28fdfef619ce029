"""Time series as bytes. Five million points are put together from pieces, without an object for each.

A protobuf message is its fields in any order, so a series is its header, serialised once, followed by its points.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Sequence
from typing import Final

from tests.google_cloud.alignment import Column

_POINTS: Final = b"\x2a"  # TimeSeries.points, field 5
_INTERVAL: Final = b"\x0a"  # Point.interval, field 1
_VALUE: Final = b"\x12"  # Point.value, field 2
_START: Final = b"\x0a"  # TimeInterval.start_time, field 1
_END: Final = b"\x12"  # TimeInterval.end_time, field 2
_SECONDS: Final = b"\x08"  # Timestamp.seconds, field 1
_NANOS: Final = b"\x10"  # Timestamp.nanos, field 2
_INT64: Final = b"\x10"  # TypedValue.int64_value, field 2
_DOUBLE: Final = b"\x19"  # TypedValue.double_value, field 3
_SERIES: Final = b"\x0a"  # ListTimeSeriesResponse.time_series, field 1
_ERROR: Final = b"\x1a"  # ListTimeSeriesResponse.execution_errors, field 3
_TOKEN: Final = b"\x12"  # ListTimeSeriesResponse.next_page_token, field 2


def varint(number: int) -> bytes:
    """Base 128, low end first; of a negative number its two's complement in 64 bits."""
    number &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def nested(tag: bytes, content: bytes) -> bytes:
    """A field that holds a message or text."""
    return tag + varint(len(content)) + content


def page(series: Iterable[bytes], token: str, errors: Iterable[bytes] = ()) -> bytes:
    """A ListTimeSeriesResponse. `errors` are messages google.rpc.Status."""
    parts = [nested(_SERIES, one) for one in series]
    parts += [nested(_ERROR, one) for one in errors]
    if token:
        parts.append(nested(_TOKEN, token.encode()))
    return b"".join(parts)


def points(column: Column, first: int, last: int) -> bytes:
    """The points `[first:last]` of a column, as fields of a TimeSeries."""
    values = column.values[first:last]
    ends = column.ends[first:last]
    if values and values.count(values[0]) == len(values):
        return _all_alike(column, tuple(ends), values[0])
    return b"".join(_point(column, end, value) for end, value in zip(ends, values, strict=True))


def _all_alike(column: Column, ends: tuple[int, ...], value: float) -> bytes:
    encoded = _value(value, column.whole)
    heads = _heads(ends, column.nanos, column.span, len(encoded))
    return encoded.join(heads) + encoded


def _point(column: Column, end: int, value: float) -> bytes:
    encoded = _value(value, column.whole)
    return _head(end, column.nanos, column.span, len(encoded)) + encoded


@functools.lru_cache(maxsize=32)
def _heads(ends: Sequence[int], nanos: int, span: int, size: int) -> list[bytes]:
    return [_head(end, nanos, span, size) for end in ends]


@functools.lru_cache(maxsize=65536)
def _head(end: int, nanos: int, span: int, size: int) -> bytes:
    """A point up to its value, which has `size` bytes."""
    interval = nested(_START, _timestamp(end - span, nanos)) + nested(_END, _timestamp(end, nanos))
    head = nested(_INTERVAL, interval) + _VALUE + varint(size)
    return _POINTS + varint(len(head) + size) + head


def _timestamp(seconds: int, nanos: int) -> bytes:
    return _SECONDS + varint(seconds) + (_NANOS + varint(nanos) if nanos else b"")


@functools.lru_cache(maxsize=65536)
def _value(value: float, whole: bool) -> bytes:
    return _INT64 + varint(int(value)) if whole else _DOUBLE + struct.pack("<d", value)
