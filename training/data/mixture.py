"""Which source every row of a run comes from: exact proportions, at any row at once.

Rows are counted in blocks of `BLOCK`. In each block a source gets its exact share rounded down or up, never more than
one row off; which sources are rounded up rotates from block to block by the golden ratio, so that none is favoured in
the long run. Within a block the rows of a source are spread evenly. All counts are integers: what happened before block
k is a sum in closed form, and nothing is carried from step to step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final, final

import numpy as np

from training.data.permutation import MOST, Numbers

BLOCK: Final = 1024
"""Rows of a block."""
SCALE: Final = 1 << 48
"""Shares are integers of this sum."""
GOLDEN: Final = int(SCALE * 0.6180339887498949) | 1
"""Odd, and as far from every simple fraction of SCALE as can be."""
HALF: Final = SCALE // 2
"""Where the rotation begins: the first block is rounded to the nearest."""


@final
@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stretch of the run with one set of shares."""

    first_row: int
    """Of the whole run, counted from 0."""
    shares: tuple[int, ...]
    """Of each source, of SCALE."""


def temperature_weights(sizes: Sequence[int], temperature: float) -> tuple[float, ...]:
    """Weights proportional to size^(1/temperature), of sum 1."""
    largest = max(sizes)
    raised = [(size / largest) ** (1 / temperature) for size in sizes]
    return tuple(weight / sum(raised) for weight in raised)


def exact_shares(weights: Sequence[float]) -> tuple[int, ...]:
    """Integers of sum SCALE in the proportions of `weights`: rounded down, the largest remainders up."""
    exact = [Fraction(weight) for weight in weights]
    quotas = [weight * SCALE / sum(exact) for weight in exact]
    shares = [int(quota) for quota in quotas]
    by_remainder = sorted(range(len(shares)), key=lambda index: (shares[index] - quotas[index], index))
    for index in by_remainder[: SCALE - sum(shares)]:
        shares[index] += 1
    return tuple(shares)


def capped_weights(weights: Sequence[float], caps: Sequence[float], rows: int) -> tuple[float, ...] | None:
    """Weights of sum 1 of which none takes more than its cap of `rows`; what is cut off goes to the others.

    With equal weights this is UniMax. None where all caps together are less than `rows`.
    """
    found = [weight / sum(weights) for weight in weights]
    full: set[int] = set()
    while over := {i for i, share in enumerate(found) if i not in full and share * rows > caps[i]}:
        full |= over
        left = rows - sum(caps[i] for i in full)
        open_weight = sum(weight for i, weight in enumerate(weights) if i not in full)
        if left > 0 and not open_weight:
            return None
        for i, weight in enumerate(weights):
            found[i] = caps[i] / rows if i in full else left / rows * weight / open_weight
    return tuple(found)


@final
class Mixture:
    """The source of every row, and how many rows of that source come before it. The last stage has no end."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)
        self._ends = (*(stage.first_row for stage in self._stages[1:]), MOST)
        self._before: list[tuple[int, ...]] = [(0,) * len(self._stages[0].shares)]
        """Of each source, rows before each stage."""
        for number, (stage, after) in enumerate(pairwise(self._stages)):
            self._before.append(self._counts_in_stage(number, after.first_row - stage.first_row))
        self._table = lru_cache(maxsize=8)(self._make_table)

    def locate(self, first: int, count: int) -> tuple[Numbers, Numbers]:
        """The source of each of `count` rows from `first` on, and its own number among the rows of that source."""
        sources, numbers = [], []
        while count:
            stage = sum(end <= first for end in self._ends)
            block, offset = divmod(first - self._stages[stage].first_row, BLOCK)
            table = self._table(stage, block)
            taken = slice(offset, min(offset + count, len(table[0])))
            sources.append(table[0][taken])
            numbers.append(table[1][taken])
            first, count = first + len(sources[-1]), count - len(sources[-1])
        return np.concatenate(sources), np.concatenate(numbers)

    def counts(self, rows: int) -> tuple[int, ...]:
        """Of each source, its rows among the first `rows` of the run."""
        stage = sum(end < rows for end in self._ends)
        return self._counts_in_stage(stage, rows - self._stages[stage].first_row)

    def _counts_in_stage(self, stage: int, rows: int) -> tuple[int, ...]:
        """Of each source, rows before the stage and among its first `rows`."""
        block, offset = divmod(rows, BLOCK)
        shares = self._stages[stage].shares
        before = tuple(map(sum, zip(self._before[stage], rows_before_block(shares, block), strict=True)))
        if not offset:
            return before
        sources = self._make_table(stage, block)[0][:offset]
        inside = np.bincount(sources, minlength=len(shares)).tolist()
        return tuple(map(sum, zip(before, inside, strict=True)))

    def _make_table(self, stage: int, block: int) -> tuple[Numbers, Numbers]:
        """Source and number of every row of a block; the last block of a stage is as long as the stage is."""
        start, shares = self._stages[stage].first_row + block * BLOCK, self._stages[stage].shares
        counts = np.array(rows_of_block(shares, block, min(BLOCK, self._ends[stage] - start)), np.int64)
        before = np.array(self._before[stage], np.int64) + np.array(rows_before_block(shares, block), np.int64)
        sources = np.repeat(np.arange(len(shares), dtype=np.int64), counts)
        nth = np.arange(len(sources), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        # Seats at even distances; where each source begins is another fraction of its distance in every block.
        begins = (np.arange(1, len(shares) + 1) * 0.6180339887498949 + block % BLOCK * 0.7548776662466927) % 1
        order = np.argsort((nth + begins[sources]) / counts[sources], kind="stable")
        return sources[order], (before[sources] + nth)[order]


def rows_of_block(shares: Sequence[int], block: int, size: int) -> tuple[int, ...]:
    """How many of the `size` rows of a block each source gets: its share of them rounded down or up, of sum `size`."""
    turn = (block * GOLDEN + HALF) % SCALE
    whole, ends = _split(shares, size)
    steps = pairwise((end + turn) // SCALE for end in (0, *ends))
    return tuple(base + after - before for base, (before, after) in zip(whole, steps, strict=True))


def rows_before_block(shares: Sequence[int], block: int) -> tuple[int, ...]:
    """Sum of `rows_of_block` over the full blocks before `block`."""
    whole, ends = _split(shares, BLOCK)
    turns = floor_sum(block, SCALE, GOLDEN, HALF)
    sums = pairwise(floor_sum(block, SCALE, GOLDEN, end + HALF) - turns for end in (0, *ends))
    return tuple(block * base + after - before for base, (before, after) in zip(whole, sums, strict=True))


def _split(shares: Sequence[int], size: int) -> tuple[list[int], list[int]]:
    """Whole rows of each share of `size`, and the running sum of the fractions of rows that remain, in SCALEths."""
    return [share * size // SCALE for share in shares], list(accumulate(share * size % SCALE for share in shares))


def floor_sum(count: int, divisor: int, slope: int, offset: int) -> int:
    """Sum of (slope * i + offset) // divisor for i in 0..count-1, in as many rounds as Euclid's algorithm takes."""
    total = 0
    while True:
        total += count * (count - 1) // 2 * (slope // divisor) + count * (offset // divisor)
        slope, offset = slope % divisor, offset % divisor
        last = slope * count + offset
        if last < divisor:
            return total
        # The same lattice points under the line, counted along the other axis.
        count, offset, slope, divisor = last // divisor, last % divisor, divisor, slope
