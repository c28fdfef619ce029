"""The dtypes that a safetensors file can name, and what they are in numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, final

import ml_dtypes
import numpy as np


@final
@dataclass(frozen=True, kw_only=True)
class StoredDtype:
    """A dtype of a file."""

    name: str
    """As the header has it."""
    bits: int
    """Of one number."""
    numpy: np.dtype[Any] | None
    """What it is in memory; None for numbers of less than a byte, whose packing is left to each writer: a header may
    name them, and their tensors are not read."""


_NUMPY: Final[Mapping[str, Any]] = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "I16": np.int16,
    "U16": np.uint16,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I32": np.int32,
    "U32": np.uint32,
    "F32": np.float32,
    "C64": np.complex64,
    "F64": np.float64,
    "I64": np.int64,
    "U64": np.uint64,
}
_PACKED: Final[Mapping[str, int]] = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


def _table() -> dict[str, StoredDtype]:
    table = {name: StoredDtype(name=name, bits=bits, numpy=None) for name, bits in _PACKED.items()}
    for name, kind in _NUMPY.items():
        dtype = np.dtype(kind).newbyteorder("<")
        table[name] = StoredDtype(name=name, bits=8 * dtype.itemsize, numpy=dtype)
    return table


DTYPES: Final[Mapping[str, StoredDtype]] = MappingProxyType(_table())
"""By the name in a header. Numbers are little-endian, as every machine is that JAX runs on."""
