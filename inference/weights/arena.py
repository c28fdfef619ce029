"""Host memory for tensors: one array each, aligned so that JAX on a CPU takes it over as it is.

On a CPU `jax.device_put` copies an array unless it begins at a multiple of 64 bytes. One that does becomes the device's
own array: it must never be written to again, which is why what is handed on is read-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ALIGNMENT: Final = 64
"""Bytes: what XLA asks of a buffer on a CPU, and a line of the cache."""


def aligned_empty(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array that begins at a multiple of 64 bytes. Its memory is not touched, and costs nothing until it is."""
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    whole = np.empty(count + ALIGNMENT, np.uint8)
    begin = -whole.ctypes.data % ALIGNMENT
    return whole[begin : begin + count].view(dtype).reshape(shape)


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The memory of a contiguous array, as bytes that can be written to."""
    return array.reshape(-1).view(np.uint8).data
