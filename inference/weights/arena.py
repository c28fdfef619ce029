"""Host memory for tensors: one array each, aligned so that JAX on a CPU takes it over as it is.

On a CPU `jax.device_put` copies an array unless it begins at a multiple of 64 bytes. One that does becomes the device's
own array: it must never be written to again, which is why what is handed on is read-only.

Large arrays have pages of their own, and are left at the page size that the system gives by itself. numpy asks for huge
pages, which a machine whose memory is full of cached files (those that are being read) has to make room for, page by
page, at a multiple of the time of the reading itself.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ALIGNMENT: Final = 64
"""Bytes: what XLA asks of a buffer on a CPU, and a line of the cache."""
LARGE: Final = 1 << 20
"""Bytes from which on an array has pages of its own."""


def aligned_empty(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array that begins at a multiple of 64 bytes. Its memory is not touched, and costs nothing until it is."""
    size = math.prod(shape) * dtype.itemsize
    return _aligned_bytes(size).view(dtype).reshape(shape)


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The memory of a contiguous array, as bytes that can be written to."""
    return array.reshape(-1).view(np.uint8).data


def _aligned_bytes(size: int) -> NDArray[np.uint8]:
    if size >= LARGE:
        return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    whole = np.empty(size + ALIGNMENT, np.uint8)
    begin = -whole.ctypes.data % ALIGNMENT
    return whole[begin : begin + size]
