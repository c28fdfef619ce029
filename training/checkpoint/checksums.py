"""crc32c of arrays, without a copy and without keeping other threads waiting."""

from __future__ import annotations

from typing import Final

import google_crc32c
import numpy as np
import numpy.typing as npt

_SLICE: Final = 1 << 20
"""Bytes at a time: the library holds the interpreter's lock, and a training step must not wait for it."""


def crc32c(content: npt.NDArray[np.uint8]) -> int:
    """Of a flat array of bytes."""
    total = 0
    for start in range(0, content.size, _SLICE):
        total = google_crc32c.extend(total, content[start : start + _SLICE])
    return total


def little_endian(checksum: int) -> bytes:
    """As the crc32c codec of zarr writes it behind a chunk."""
    return checksum.to_bytes(4, "little")
