"""Which pieces of which documents stand together in a row: decided once, when data is prepared.

A row holds `width` tokens. A document that does not fit is cut; its pieces are segments of their own. Every token of
every document is in exactly one piece, and what is left of a row at its end is padding.
"""

from __future__ import annotations

import enum
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

import numpy as np

from training.data.permutation import Numbers


@final
class PackingKind(enum.Enum):
    """How documents are put into rows."""

    CONCAT_SPLIT = "concat-split"
    """One after the other, cut where a row is full: no padding but in the last row; for long documents."""
    BEST_FIT = "best-fit"
    """Whole, the longest first, each into the fullest row that still takes it: only what is longer than a row is cut; a
    little padding."""


@final
@dataclass(frozen=True, kw_only=True)
class Packing:
    """Pieces in the order of their rows."""

    starts: Numbers
    """Of each piece, where it begins in the stream of all documents one after the other."""
    lengths: Numbers
    """Of each piece, tokens; none is 0."""
    first_pieces: Numbers
    """Row r has the pieces first_pieces[r] to first_pieces[r + 1] - 1."""

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.first_pieces) - 1


def concat_split(lengths: Numbers, width: int) -> Packing:
    """Documents one after the other, cut at every `width` tokens. `lengths`: tokens of each document."""
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.union1d(ends[lengths > 0], np.arange(width, total, width, dtype=np.int64))
    starts = np.concatenate([np.zeros(min(total, 1), np.int64), cuts[:-1]])
    rows = -(-total // width)
    return Packing(
        starts=starts,
        lengths=cuts - starts,
        first_pieces=np.searchsorted(starts, np.arange(rows + 1, dtype=np.int64) * width),
    )


def best_fit(lengths: Numbers, width: int) -> Packing:
    """Pieces of at most `width` tokens, the longest first, each where the least room is left after it.

    Of equal pieces the earlier comes first, of equal rows the older: the same input gives the same rows.
    """
    starts, sizes = _pieces(lengths, width)
    order = np.argsort(-sizes, kind="stable")
    rows = np.empty(len(order), np.int64)
    rows[order] = _place(sizes[order].tolist(), width)
    by_row = np.argsort(rows, kind="stable")
    count = int(rows.max()) + 1 if len(rows) else 0
    return Packing(
        starts=starts[by_row],
        lengths=sizes[by_row],
        first_pieces=np.searchsorted(rows[by_row], np.arange(count + 1, dtype=np.int64)),
    )


PACKINGS: Final[Mapping[PackingKind, Callable[[Numbers, int], Packing]]] = MappingProxyType(
    {PackingKind.CONCAT_SPLIT: concat_split, PackingKind.BEST_FIT: best_fit}
)


def _pieces(lengths: Numbers, width: int) -> tuple[Numbers, Numbers]:
    """Start and length of every piece: each document cut into full rows and what remains."""
    counts = -(-lengths // width)
    documents = np.repeat(np.arange(len(lengths), dtype=np.int64), counts)
    nth = np.arange(len(documents), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = np.cumsum(lengths, dtype=np.int64) - lengths
    return begins[documents] + nth * width, np.minimum(width, lengths[documents] - nth * width)


def _place(sizes: list[int], width: int) -> list[int]:
    """The row of each piece. Rows are kept by the room that they have; a bit mask finds the smallest that suffices."""
    rows_with: defaultdict[int, deque[int]] = defaultdict(deque)
    rooms = 0
    placed = []
    count = 0
    for size in sizes:
        fitting = rooms >> size
        if fitting:
            room = size + (fitting & -fitting).bit_length() - 1
            row = rows_with[room].popleft()
            if not rows_with[room]:
                rooms &= ~(1 << room)
        else:
            room, row, count = width, count, count + 1
        placed.append(row)
        left = room - size
        if left:
            rows_with[left].append(row)
            rooms |= 1 << left
    return placed
