"""Copies of the arrays in host memory, chunk by chunk, taken before the next step overwrites them.

The memory is kept from one save to the next: fresh pages cost as much as the copy itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from training.checkpoint.checksums import crc32c, little_endian
from training.checkpoint.grid import Box, cell_box, cells, chunk_shape, overlap, slices, volume
from training.checkpoint.leaves import Leaf, LeafSpec, on_host

_ALIGN: Final = 64
_CHECKSUM: Final = 4
"""Bytes of the crc32c behind every chunk."""


@final
@dataclass(kw_only=True, eq=False)
class StagedChunk:
    """A chunk as it will be written, checksum included, and which parts of it this host has."""

    cell: tuple[int, ...]
    """Its coordinates in the grid."""
    boxes: list[Box]
    """What is valid in it; the rest belongs to other hosts, or lies behind the end of the array."""
    object: npt.NDArray[np.uint8]
    """The bytes of the object."""

    def seal(self) -> int:
        """Put the checksum behind the values; gives it."""
        checksum = crc32c(self.object[:-_CHECKSUM])
        self.object[-_CHECKSUM:] = np.frombuffer(little_endian(checksum), np.uint8)
        return checksum


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class StagedLeaf:
    """An array in its chunks."""

    spec: LeafSpec
    chunk: tuple[int, ...]
    """Their shape."""
    chunks: tuple[StagedChunk, ...]


@final
class Arena:
    """Memory for the copies of one save, kept for the next one."""

    def __init__(self) -> None:
        self._memory: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._used = 0

    @property
    def size(self) -> int:
        """Bytes that it holds on to."""
        return self._memory.size

    def reset(self, size: int) -> None:
        """Have room for so many bytes; what was given out before is void."""
        if self._memory.size < size:
            # Let go first: never two of them at once.
            self._memory = np.empty(0, np.uint8)
            self._memory = np.empty(size, np.uint8)
        self._used = 0

    def take(self, size: int) -> npt.NDArray[np.uint8]:
        """The next stretch of it."""
        start = self._used
        self._used += _rounded(size)
        return self._memory[start : start + size]


def stage(leaves: Sequence[Leaf], arena: Arena) -> tuple[StagedLeaf, ...]:
    """Copy everything into the arena. Nothing of the result is a view of what was given."""
    plans = [_Plan(leaf) for leaf in leaves]
    arena.reset(sum(plan.size for plan in plans))
    return tuple(plan.fill(arena) for plan in plans)


def _rounded(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


class _Plan:
    """Which chunks of an array this host has."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf
        self.dtype = np.dtype(leaf.spec.dtype)
        self.chunk = chunk_shape(leaf.spec.shape, self.dtype.itemsize)
        self.bytes = math.prod(self.chunk) * self.dtype.itemsize + _CHECKSUM
        self.boxes: dict[tuple[int, ...], list[Box]] = {}
        for box, _ in leaf.shards:
            for cell, shared in self._parts(box):
                self.boxes.setdefault(cell, []).append(shared)

    @property
    def size(self) -> int:
        return len(self.boxes) * _rounded(self.bytes)

    def _parts(self, box: Box) -> Iterator[tuple[tuple[int, ...], Box]]:
        for cell in cells(box, self.chunk):
            shared = overlap(box, cell_box(cell, self.chunk, self.leaf.spec.shape))
            if shared is not None:
                yield cell, shared

    def fill(self, arena: Arena) -> StagedLeaf:
        chunks = {
            cell: StagedChunk(cell=cell, boxes=boxes, object=arena.take(self.bytes))
            for cell, boxes in self.boxes.items()
        }
        arrays = {cell: self._array(chunk) for cell, chunk in chunks.items()}
        for box, values in self.leaf.shards:
            source = on_host(values)
            for cell, shared in self._parts(box):
                origin = tuple((at * size, at * size + size) for at, size in zip(cell, self.chunk, strict=True))
                arrays[cell][slices(shared, origin)] = source[slices(shared, box)]
        return StagedLeaf(spec=self.leaf.spec, chunk=self.chunk, chunks=tuple(chunks.values()))

    def _array(self, chunk: StagedChunk) -> npt.NDArray[Any]:
        """The values of a chunk; zero where nothing will be written."""
        values = chunk.object[:-_CHECKSUM]
        if sum(map(volume, chunk.boxes)) < math.prod(self.chunk):
            values[:] = 0
        array: npt.NDArray[Any] = values.view(self.dtype).reshape(self.chunk)
        return array
