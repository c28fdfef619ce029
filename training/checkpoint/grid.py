"""How an array is cut into chunks: by its shape and dtype alone, so that every mesh writes and reads the same grid.

Chunks are whole in the last axes, so that each lies in one piece in memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Box: TypeAlias = tuple[tuple[int, int], ...]
"""First and one past the last index along each axis."""
CHUNK_BYTES = 16 << 20
"""The most that a chunk has: large enough for the rate of an object store, small enough to be tried again."""


def chunk_shape(shape: Sequence[int], itemsize: int, limit: int | None = None) -> tuple[int, ...]:
    """The shape of a chunk: at least one element, and the pieces of an axis as even as they go."""
    limit = CHUNK_BYTES if limit is None else limit
    chunk = [max(1, size) for size in shape]
    for axis, size in enumerate(chunk):
        rest = itemsize * math.prod(chunk[axis + 1 :])
        if size * rest <= limit:
            break
        rows = max(1, limit // rest)
        chunk[axis] = math.ceil(size / math.ceil(size / rows))
        if rest <= limit:
            break
    return tuple(chunk)


def cells(box: Box, chunk: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The coordinates of the chunks that a box touches; none for an empty one."""
    ranges = [
        range(start // size, math.ceil(stop / size)) if stop > start else range(0)
        for (start, stop), size in zip(box, chunk, strict=True)
    ]
    return itertools.product(*ranges)


def cell_box(cell: Sequence[int], chunk: Sequence[int], shape: Sequence[int]) -> Box:
    """What a chunk holds of an array; at its end less than the chunk has room for."""
    return tuple((at * size, min((at + 1) * size, end)) for at, size, end in zip(cell, chunk, shape, strict=True))


def whole(shape: Sequence[int]) -> Box:
    """All of an array."""
    return tuple((0, size) for size in shape)


def box_of(index: Sequence[slice], shape: Sequence[int]) -> Box:
    """The box of the index of a shard."""
    bounds = (part.indices(size) for part, size in zip(index, shape, strict=True))
    return tuple((start, stop) for start, stop, _ in bounds)


def overlap(one: Box, other: Box) -> Box | None:
    """What two boxes share; None where they share nothing."""
    shared = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return shared if all(start < stop for start, stop in shared) else None


def slices(box: Box, origin: Box) -> tuple[slice, ...]:
    """Where a box lies in an array that begins at the start of `origin`."""
    return tuple(slice(start - base, stop - base) for (start, stop), (base, _) in zip(box, origin, strict=True))


def volume(box: Box) -> int:
    """Elements of a box."""
    return math.prod(stop - start for start, stop in box)
