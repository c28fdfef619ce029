"""Arrays as zarr 3 has them, `bytes` and `crc32c` for codecs.

A chunk is then its values in little endian with four bytes behind them, which is written from where it was staged, with
no copy in between. tensorstore reads it: it puts chunks together to whatever box a mesh asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
import tensorstore as ts

from training.checkpoint.grid import Box
from training.checkpoint.leaves import LeafSpec

METADATA: Final = "zarr.json"
"""The object that describes an array."""


def metadata(spec: LeafSpec, chunk: Sequence[int]) -> dict[str, Any]:
    """What `zarr.json` says."""
    dtype = np.dtype(spec.dtype)
    encoding = {"configuration": {"endian": "little"}} if dtype.itemsize > 1 else {}
    fill: Any = False if spec.dtype == "bool" else [0.0, 0.0] if dtype.kind == "c" else 0
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(spec.shape),
        "data_type": spec.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        # One folder for all chunks: with "/" each axis would be a folder more to make and to sync.
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "codecs": [{"name": "bytes", **encoding}, {"name": "crc32c"}],
        "fill_value": fill,
    }


def chunk_name(cell: Sequence[int]) -> str:
    """The object of a chunk, beside `zarr.json`."""
    return ".".join(["c", *map(str, cell)])


@final
class ArrayReader:
    """One array out of objects that are in memory already, so that what was verified is what is read."""

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        """`objects`: `zarr.json` and the chunks that will be read, by their names beside each other."""
        # Each chunk is decoded once, however many boxes touch it.
        context = ts.Context({"cache_pool": {"total_bytes_limit": 2 * sum(map(len, objects.values()))}})
        place = ts.KvStore.open({"driver": "memory"}, context=context).result()
        for name, content in objects.items():
            place.write(name, content).result()
        spec = {"driver": "zarr3", "kvstore": {"driver": "memory"}, "recheck_cached_data": False}
        self._array = ts.open(spec, context=context).result()

    def read(self, box: Box) -> npt.NDArray[Any]:
        """The values of a box. Raises ValueError where a checksum does not fit."""
        index = tuple(slice(start, stop) for start, stop in box)
        values: npt.NDArray[Any] = self._array[index].read().result()
        return values
