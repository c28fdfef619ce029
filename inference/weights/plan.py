"""Which bytes of which file this host reads, and where they go: decided before a byte of a tensor is read.

A target is an array of the model. Its devices need boxes of it; what several need alike is read once. Where each box is
one run of bytes and the dtype stays, the bytes go straight to where they are used; otherwise the target is staged: its
bytes are put together first, and cut and converted then. Bytes that no device of this host needs are not read, except
in gaps so short that a jump would take longer.

Everything here is pure: boxes are numbers, devices are whatever the caller calls them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from inference.weights.reading_style import ReadingStyle
from inference.weights.safetensors import SafetensorsFile
from inference.weights.sharded_index import Placed

SHORTEST_GAP: Final = 256 << 10
"""Bytes that are rather read than jumped over: what a disk of 16 operations a MiB/s reads in the time of 4 jumps."""

Box = tuple[tuple[int, int], ...]
"""A part of an array: begin and end on each axis."""


@final
@dataclass(frozen=True, order=True)
class Range:
    """Bytes, from `begin` to before `end`."""

    begin: int
    end: int

    @property
    def size(self) -> int:
        """How many."""
        return self.end - self.begin


@final
@dataclass(frozen=True, kw_only=True)
class Target:
    """An array of the model, as much of it as this host needs."""

    name: str
    placed: Placed
    """Where it is stored."""
    shape: tuple[int, ...]
    """In the model: that of the file, but for axes of 1 before it."""
    stored: np.dtype[Any]
    """In the file."""
    dtype: np.dtype[Any]
    """In the model."""
    boxes: Mapping[Box, tuple[Hashable, ...]]
    """The parts that are needed, each with the devices that need it."""
    ranges: tuple[Range, ...]
    """The bytes of the tensor that are read, rising, counted from its first."""
    staged: bool
    """Whether they are put together before they are cut and converted."""

    @property
    def size(self) -> int:
        """Bytes that are read."""
        return sum(each.size for each in self.ranges)


@final
@dataclass(frozen=True, kw_only=True)
class Piece:
    """Bytes of a file that have one destination."""

    target: int
    """Number of the target in the plan."""
    part: int
    """Which box of the target; 0 where it is staged."""
    offset: int
    """Of the first byte in that part."""
    begin: int
    """Of the file."""
    end: int


@final
@dataclass(frozen=True, kw_only=True)
class Stretch:
    """What one worker reads forward through, in one file."""

    file: SafetensorsFile
    pieces: tuple[Piece, ...]
    """Rising, and never overlapping."""

    @property
    def size(self) -> int:
        """Bytes that are wanted of it."""
        return sum(piece.end - piece.begin for piece in self.pieces)


def make_target(
    name: str, placed: Placed, shape: tuple[int, ...], dtype: np.dtype[Any], boxes: Mapping[Hashable, Box]
) -> Target:
    """The target whose devices need the given boxes. Raises ValueError for a dtype that is not read."""
    needed: dict[Box, tuple[Hashable, ...]] = {}
    for device, box in boxes.items():
        needed[box] = (*needed.get(box, ()), device)
    stored = placed.tensor.dtype.numpy
    if stored is None:
        raise ValueError(f"is stored as {placed.tensor.dtype.name}, of less than a byte a number, and is not read")
    runs = [box_ranges(shape, stored.itemsize, box) for box in needed]
    straight = all(_is_one_run(each, box, stored.itemsize) for each, box in zip(runs, needed, strict=True))
    staged = stored != dtype or not straight
    gap = SHORTEST_GAP if staged else 0
    ranges = coalesce((run for each in runs for run in each), gap)
    return Target(
        name=name,
        placed=placed,
        shape=shape,
        stored=stored,
        dtype=dtype,
        boxes=needed,
        ranges=ranges,
        staged=staged,
    )


def box_ranges(shape: Sequence[int], itemsize: int, box: Box) -> tuple[Range, ...]:
    """The bytes of a part of a C-ordered array, with the shortest gaps filled where it is not one run.

    Axes are joined from the last on for as long as the gaps are short, so that there are never many ranges.
    """
    if math.prod(end - begin for begin, end in box) == 0:
        return ()
    strides = [itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    sides = list(box)
    last = len(sides) - 1
    while last >= 0 and _joins(sides, shape, strides, last):
        last -= 1
    if last < 0:
        return (Range(0, itemsize * math.prod(shape)),)
    begin, end = sides[last]
    outer = product(*(range(*side) for side in sides[:last]))
    starts = (sum(place * stride for place, stride in zip(places, strides, strict=False)) for places in outer)
    return tuple(Range(start + begin * strides[last], start + end * strides[last]) for start in starts)


def _is_one_run(ranges: Sequence[Range], box: Box, itemsize: int) -> bool:
    return len(ranges) <= 1 and sum(each.size for each in ranges) == itemsize * math.prod(e - b for b, e in box)


def _joins(sides: Sequence[tuple[int, int]], shape: Sequence[int], strides: Sequence[int], axis: int) -> bool:
    """Whether an axis can be taken as a whole: it is needed whole, or gaps between its runs are short."""
    begin, end = sides[axis]
    missing = shape[axis] - (end - begin)
    several = any(high - low > 1 for low, high in sides[:axis])
    return missing == 0 or (several and missing * strides[axis] <= SHORTEST_GAP)


def coalesce(ranges: Iterable[Range], gap: int) -> tuple[Range, ...]:
    """The same bytes as few ranges, rising, with gaps of at most `gap` bytes filled."""
    joined: list[Range] = []
    for each in sorted(ranges):
        if joined and each.begin <= joined[-1].end + gap:
            joined[-1] = Range(joined[-1].begin, max(joined[-1].end, each.end))
        else:
            joined.append(each)
    return tuple(joined)


def make_stretches(targets: Sequence[Target], style: ReadingStyle) -> tuple[Stretch, ...]:
    """What the workers do, in the order in which they take it: through each file from its beginning to its end."""
    files = {target.placed.file.path: target.placed.file for target in targets}
    pieces: dict[Path, list[Piece]] = {path: [] for path in files}
    for number, target in enumerate(targets):
        pieces[target.placed.file.path].extend(_pieces(number, target))
    return tuple(
        Stretch(file=files[path], pieces=tuple(group))
        for path in sorted(files)
        for group in _cut(sorted(pieces[path], key=lambda piece: piece.begin), style.stretch_bytes)
    )


def _pieces(number: int, target: Target) -> Iterator[Piece]:
    first = target.placed.file.data_begin + target.placed.tensor.begin
    if target.staged:
        for each in target.ranges:
            yield Piece(target=number, part=0, offset=each.begin, begin=first + each.begin, end=first + each.end)
        return
    for part, box in enumerate(target.boxes):
        for each in box_ranges(target.shape, target.dtype.itemsize, box):  # one, or none where it is empty
            yield Piece(target=number, part=part, offset=0, begin=first + each.begin, end=first + each.end)


def _cut(pieces: Iterable[Piece], most: int) -> Iterator[list[Piece]]:
    """Pieces in groups that reach over at most `most` bytes of the file; a piece may be cut in two."""
    group: list[Piece] = []
    for piece in pieces:
        rest: Piece | None = piece
        while rest is not None:
            if group and rest.begin - group[0].begin >= most:
                yield group
                group = []
            limit = (group[0].begin if group else rest.begin) + most
            taken, rest = _split(rest, limit)
            group.append(taken)
    if group:
        yield group


def _split(piece: Piece, at: int) -> tuple[Piece, Piece | None]:
    if piece.end <= at:
        return piece, None
    first = Piece(target=piece.target, part=piece.part, offset=piece.offset, begin=piece.begin, end=at)
    offset = piece.offset + at - piece.begin
    return first, Piece(target=piece.target, part=piece.part, offset=offset, begin=at, end=piece.end)
