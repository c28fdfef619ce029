"""The mixture: exact shares in every block, at any row, and no source favoured in the long run."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from training.data.mixture import (
    BLOCK,
    SCALE,
    Mixture,
    Stage,
    capped_weights,
    exact_shares,
    floor_sum,
    rows_before_block,
    rows_of_block,
    temperature_weights,
)

WEIGHTS: tuple[tuple[float, ...], ...] = (
    (1.0,),
    (0.5, 0.5),
    (0.5, 0.3, 0.2),
    (1 / 3, 1 / 3, 1 / 3),
    (0.7, 0.2999, 0.0001),
    (1e-7, 1, 0),
    tuple(1 / rank for rank in range(1, 41)),
)


def one_stage(weights: Sequence[float]) -> Mixture:
    return Mixture([Stage(first_row=0, shares=exact_shares(weights))])


@pytest.mark.parametrize("weights", WEIGHTS)
def test_counts_are_within_one_of_the_exact_share_in_every_block(weights: tuple[float, ...]) -> None:
    mixture = one_stage(weights)
    exact = np.array(weights) / sum(weights) * BLOCK
    for block in (*range(20), 10**6, 2**31, 2**40):
        sources, _ = mixture.locate(block * BLOCK, BLOCK)
        counts = np.bincount(sources, minlength=len(weights))
        assert counts.sum() == BLOCK
        assert np.abs(counts - exact).max() < 1 + 1e-6


@pytest.mark.parametrize("weights", WEIGHTS)
def test_no_source_is_favoured_in_the_long_run(weights: tuple[float, ...]) -> None:
    shares = exact_shares(weights)
    for blocks in (10, 1000, 10**6, 10**12):
        counts = rows_before_block(shares, blocks)
        assert sum(counts) == blocks * BLOCK
        # What is off grows like the logarithm of the run: some rows of 10^15.
        off = [abs(count - share * blocks * BLOCK // SCALE) for count, share in zip(counts, shares, strict=True)]
        assert max(off) < 2 + math.log2(blocks) / 2


def test_counts_in_closed_form_are_the_sum_of_the_blocks() -> None:
    shares = exact_shares((0.61, 0.2, 0.19))
    sums = [0, 0, 0]
    for block in range(500):
        assert rows_before_block(shares, block) == tuple(sums)
        sums = [before + more for before, more in zip(sums, rows_of_block(shares, block, BLOCK), strict=True)]


def test_every_source_counts_its_rows_without_a_gap() -> None:
    stages = [
        Stage(first_row=0, shares=exact_shares((0.5, 0.3, 0.2))),
        Stage(first_row=3 * BLOCK + 100, shares=exact_shares((0, 0.01, 0.99))),
        Stage(first_row=3 * BLOCK + 107, shares=exact_shares((1, 1, 1))),
    ]
    mixture = Mixture(stages)
    rows = 6 * BLOCK
    sources, numbers = mixture.locate(0, rows)
    for source in range(3):
        assert np.array_equal(numbers[sources == source], np.arange((sources == source).sum()))
    for row in (0, 1, BLOCK, 3 * BLOCK + 100, 3 * BLOCK + 105, 5 * BLOCK + 1, rows):
        assert mixture.counts(row) == tuple(np.bincount(sources[:row], minlength=3))
    for first, count in ((0, 1), (BLOCK - 3, 7), (3 * BLOCK + 98, 40), (2 * BLOCK, 3 * BLOCK)):
        part = mixture.locate(first, count)
        assert np.array_equal(part[0], sources[first : first + count])
        assert np.array_equal(part[1], numbers[first : first + count])


def test_a_stage_has_its_shares_from_its_first_row_to_its_last() -> None:
    first, second = exact_shares((0.9, 0.1)), exact_shares((0.25, 0.75))
    mixture = Mixture([Stage(first_row=0, shares=first), Stage(first_row=1500, shares=second)])
    sources, _ = mixture.locate(0, 1500 + BLOCK)
    assert abs((sources[:1500] == 0).sum() - 1350) <= 1
    assert abs((sources[1500:] == 0).sum() - BLOCK / 4) <= 1


def test_rows_of_a_source_are_spread_over_the_block() -> None:
    sources, _ = one_stage((0.75, 0.25)).locate(0, 8 * BLOCK)
    for first in range(0, len(sources), 64):
        assert abs((sources[first : first + 64] == 1).sum() - 16) <= 2


def test_counters_have_64_bits() -> None:
    row = 2**52 + 12_345
    sources, numbers = one_stage((0.5, 0.25, 0.25)).locate(row, 64)
    assert numbers.dtype == np.int64
    for source, share in enumerate((0.5, 0.25, 0.25)):
        mine = numbers[sources == source]
        assert np.array_equal(np.diff(mine), np.ones(len(mine) - 1))
        assert abs(mine[0] - share * row) < BLOCK


def test_the_order_is_pinned_so_that_a_run_can_go_on_under_a_later_version() -> None:
    sources, numbers = one_stage((0.6, 0.3, 0.1)).locate(10**12 + 7, 12)
    assert sources.tolist() == [0, 0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 0]
    assert (numbers[sources == 0] - 6 * 10**11).tolist() == list(range(5, 13))
    assert (numbers[sources == 1] - 3 * 10**11).tolist() == [2, 3, 4]
    assert numbers[sources == 2].tolist() == [10**11]


def test_a_cut_of_the_run_does_not_change_it() -> None:
    mixture = one_stage((0.5, 0.3, 0.2))
    whole = mixture.locate(10**9, 300)
    parts = [one_stage((0.5, 0.3, 0.2)).locate(10**9 + first, 50) for first in range(0, 300, 50)]
    for index in range(2):
        assert np.array_equal(whole[index], np.concatenate([part[index] for part in parts]))


@pytest.mark.parametrize(
    ("sizes", "temperature", "expected"),
    [
        ((100, 300), 1, (0.25, 0.75)),
        ((100, 10_000), 2, (1 / 11, 10 / 11)),
        ((1, 8, 27), 3, (1 / 6, 2 / 6, 3 / 6)),
        ((5, 5 * 10**15), 1e9, (0.5, 0.5)),
        ((1, 4), 0.5, (1 / 17, 16 / 17)),
    ],
)
def test_temperature(sizes: tuple[int, ...], temperature: float, expected: tuple[float, ...]) -> None:
    assert temperature_weights(sizes, temperature) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("weights", "caps", "rows", "expected"),
    [
        # UniMax: an even share where it lasts, and the rest even over the others.
        ((1, 1, 1), (10, 1000, 1000), 300, (10 / 300, 145 / 300, 145 / 300)),
        # What the first cap sets free fills the second source too.
        ((1, 1, 1), (10, 120, 1000), 300, (10 / 300, 120 / 300, 170 / 300)),
        ((0.8, 0.1, 0.1), (100, 1000, 1000), 200, (0.5, 0.25, 0.25)),
        ((1, 1), (50, 50), 100, (0.5, 0.5)),
        ((1, 0), (50, 50), 40, (1, 0)),
    ],
)
def test_caps_give_what_they_cut_off_to_the_others(
    weights: tuple[float, ...], caps: tuple[float, ...], rows: int, expected: tuple[float, ...]
) -> None:
    assert capped_weights(weights, caps, rows) == pytest.approx(expected)


@pytest.mark.parametrize(("weights", "caps"), [((1, 1), (40, 50)), ((1, 0), (40, 100))])
def test_caps_that_leave_too_few_rows_are_told(weights: tuple[float, ...], caps: tuple[float, ...]) -> None:
    assert capped_weights(weights, caps, 100) is None


def test_shares_are_exact_and_in_proportion() -> None:
    for weights in WEIGHTS:
        shares = exact_shares(weights)
        assert sum(shares) == SCALE
        for share, weight in zip(shares, weights, strict=True):
            assert abs(share - weight / sum(weights) * SCALE) <= 2


def test_floor_sum() -> None:
    drawn = random.Random(0)
    for _ in range(500):
        count, divisor = drawn.randrange(40), drawn.randrange(1, 60)
        slope, offset = drawn.randrange(90), drawn.randrange(90)
        assert floor_sum(count, divisor, slope, offset) == sum((slope * i + offset) // divisor for i in range(count))


def test_the_rotation_rounds_every_source_up_in_turn() -> None:
    shares = exact_shares((1 / 3, 1 / 3, 1 / 3))
    ups = [
        [source for source, count in enumerate(rows_of_block(shares, block, BLOCK)) if count > BLOCK // 3]
        for block in range(30)
    ]
    assert all(len(up) == 1 for up in ups)
    assert {up[0] for up in ups} == {0, 1, 2}
    assert sum(before == after for before, after in pairwise(ups)) < 10
