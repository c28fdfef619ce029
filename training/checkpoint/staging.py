"""Copies of the arrays in host memory, chunk by chunk, taken before the next step overwrites them.

The memory is kept from one save to the next: fresh pages cost as much as the copy itself.
"""

from __future__ import annotations

import contextlib
import functools
import math
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from training.checkpoint.checksums import crc32c, little_endian
from training.checkpoint.grid import Box, cell_box, cells, chunk_shape, overlap, slices, volume
from training.checkpoint.leaves import Leaf, LeafSpec, on_host
from training.checkpoint.workers import Workers

_ALIGN: Final = mmap.PAGESIZE
"""A disk takes whole pages from memory as they lie."""
_CHECKSUM: Final = 4
"""Bytes of the crc32c behind every chunk."""


@final
@dataclass(kw_only=True, eq=False)
class StagedChunk:
    """A chunk as it will be written, checksum included, and which parts of it this host has."""

    cell: tuple[int, ...]
    """Its coordinates in the grid."""
    boxes: tuple[Box, ...]
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

    def reset(self, size: int) -> None:
        """Have room for so many bytes; what was given out before is void."""
        if self._memory.size < size:
            self._memory = np.empty(0, np.uint8)  # let go first: never two of them at once
            pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                with contextlib.suppress(OSError):  # a kernel without them
                    pages.madvise(mmap.MADV_HUGEPAGE)
            self._memory = np.frombuffer(pages, np.uint8)
        self._used = 0

    def take(self, size: int) -> npt.NDArray[np.uint8]:
        """The next stretch of it."""
        start = self._used
        self._used += _rounded(size)
        return self._memory[start : start + size]


def stage(leaves: Sequence[Leaf], arena: Arena, workers: Workers) -> tuple[StagedLeaf, ...]:
    """Copy everything into the arena. Nothing of the result is a view of what was given."""
    plans = [_plan(leaf.spec, tuple(box for box, _ in leaf.shards)) for leaf in leaves]
    arena.reset(sum(plan.size for plan in plans))
    staged = tuple(plan.staged(leaf.spec, arena) for plan, leaf in zip(plans, leaves, strict=True))
    copies = [functools.partial(plan.copy, leaf, into) for plan, leaf, into in zip(plans, leaves, staged, strict=True)]
    workers.each(lambda copy: copy(), copies)
    return staged


def _rounded(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


class _Move(NamedTuple):
    """A stretch of a shard that is copied into a chunk."""

    shard: int
    source: tuple[slice, ...]
    chunk: int
    target: tuple[slice, ...]


@final
@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What goes where, for all arrays of one shape that lie in the same shards."""

    chunk: tuple[int, ...]
    bytes: int
    """Of the object of a chunk."""
    cells: Mapping[tuple[int, ...], tuple[Box, ...]]
    """The chunks that this host has something of, and what."""
    moves: tuple[_Move, ...]

    @property
    def size(self) -> int:
        return len(self.cells) * _rounded(self.bytes)

    def staged(self, spec: LeafSpec, arena: Arena) -> StagedLeaf:
        """Room for an array, not yet filled."""
        chunks = [
            StagedChunk(cell=cell, boxes=boxes, object=arena.take(self.bytes)) for cell, boxes in self.cells.items()
        ]
        return StagedLeaf(spec=spec, chunk=self.chunk, chunks=tuple(chunks))

    def copy(self, leaf: Leaf, into: StagedLeaf) -> None:
        """Fill the room."""
        arrays = [self._array(chunk, np.dtype(leaf.spec.dtype)) for chunk in into.chunks]
        sources = [on_host(values) for _, values in leaf.shards]
        for move in self.moves:
            arrays[move.chunk][move.target] = sources[move.shard][move.source]

    def _array(self, chunk: StagedChunk, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """The values of a chunk; zero where nothing will be written."""
        values = chunk.object[:-_CHECKSUM]
        if sum(map(volume, chunk.boxes)) < math.prod(self.chunk):
            values[:] = 0
        array: npt.NDArray[Any] = values.view(dtype).reshape(self.chunk)
        return array


@functools.lru_cache(maxsize=4096)
def planned(shape: tuple[int, ...], itemsize: int, shards: tuple[Box, ...]) -> _Plan:
    """The plan; worked out once, since every save of a run asks for the same ones."""
    chunk = chunk_shape(shape, itemsize)
    found: dict[tuple[int, ...], list[Box]] = {}
    moves = []
    for number, box in enumerate(shards):
        for cell in cells(box, chunk):
            shared = overlap(box, cell_box(cell, chunk, shape))
            if shared is None:
                continue
            found.setdefault(cell, []).append(shared)
            origin = tuple((at * size, at * size + size) for at, size in zip(cell, chunk, strict=True))
            moves.append((number, slices(shared, box), cell, slices(shared, origin)))
    order = {cell: at for at, cell in enumerate(found)}
    return _Plan(
        chunk=chunk,
        bytes=math.prod(chunk) * itemsize + _CHECKSUM,
        cells={cell: tuple(boxes) for cell, boxes in found.items()},
        moves=tuple(_Move(shard, source, order[cell], target) for shard, source, cell, target in moves),
    )


def _plan(spec: LeafSpec, shards: tuple[Box, ...]) -> _Plan:
    return planned(spec.shape, np.dtype(spec.dtype).itemsize, shards)
