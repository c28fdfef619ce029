"""Packing: every token of every document in one piece, every piece in one row, the same rows for the same documents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.data.packing import PACKINGS, Packing, PackingKind, best_fit, concat_split

KINDS = tuple(PackingKind)


def rows_of(packing: Packing) -> list[list[tuple[int, int]]]:
    """Of every row, its pieces as (start in the stream, tokens)."""
    pieces = list(zip(packing.starts.tolist(), packing.lengths.tolist(), strict=True))
    firsts = packing.first_pieces.tolist()
    return [pieces[first:end] for first, end in pairwise(firsts)]


def packed(kind: PackingKind, lengths: Sequence[int], width: int) -> list[list[tuple[int, int]]]:
    return rows_of(PACKINGS[kind](np.array(lengths, np.int64), width))


def test_concat_split_by_hand() -> None:
    assert packed(PackingKind.CONCAT_SPLIT, [3, 4, 5], 5) == [[(0, 3), (3, 2)], [(5, 2), (7, 3)], [(10, 2)]]
    assert packed(PackingKind.CONCAT_SPLIT, [5, 5], 5) == [[(0, 5)], [(5, 5)]]
    assert packed(PackingKind.CONCAT_SPLIT, [1], 5) == [[(0, 1)]]


def test_best_fit_by_hand() -> None:
    # Longest first: 8 is cut into 6 and 2; then 4, 3, 3; 2 and 2 where the least room is left. A row keeps their order.
    assert packed(PackingKind.BEST_FIT, [3, 8, 4, 3, 2], 6) == [
        [(3, 6)],
        [(9, 2), (11, 4)],
        [(0, 3), (15, 3)],
        [(18, 2)],
    ]


def test_best_fit_takes_the_fullest_row_that_has_room_and_of_equal_rows_the_older() -> None:
    assert packed(PackingKind.BEST_FIT, [7, 6, 6, 4, 3], 10) == [
        [(0, 7), (23, 3)],
        [(7, 6), (19, 4)],
        [(13, 6)],
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_gives_no_rows(kind: PackingKind) -> None:
    assert packed(kind, [], 5) == []


@pytest.mark.parametrize("kind", KINDS)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=30), width=st.integers(2, 17))
def test_tokens_are_conserved(kind: PackingKind, lengths: list[int], width: int) -> None:
    rows = packed(kind, lengths, width)
    ends = np.cumsum(lengths).tolist()
    documents = list(zip([0, *ends[:-1]], ends, strict=True))
    covered = np.zeros(ends[-1], np.int64)
    for row in rows:
        assert 0 < sum(length for _, length in row) <= width
        for start, length in row:
            assert length > 0
            # A piece lies in one document: no segment has tokens of two.
            assert any(first <= start and start + length <= end for first, end in documents)
            covered[start : start + length] += 1
    assert np.array_equal(covered, np.ones(ends[-1]))


@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=30))
def test_best_fit_cuts_no_document_that_fits(lengths: list[int]) -> None:
    pieces = sorted(piece for row in packed(PackingKind.BEST_FIT, lengths, 12) for piece in row)
    assert [length for _, length in pieces] == lengths


def test_padding_is_little_and_the_rows_are_the_same_again() -> None:
    lengths = np.random.default_rng(0).lognormal(5, 1, 3000).astype(np.int64) + 1
    for pack, most in ((concat_split, 257 / lengths.sum()), (best_fit, 0.01)):
        one, other = pack(lengths, 257), pack(lengths, 257)
        assert 1 - lengths.sum() / (one.rows * 257) < most
        for field in ("starts", "lengths", "first_pieces"):
            assert np.array_equal(getattr(one, field), getattr(other, field))


def test_offsets_have_64_bits() -> None:
    lengths = np.array([3, 2**31, 2**31, 5], np.int64)
    for pack in (concat_split, best_fit):
        packing = pack(lengths, 2**20)
        assert packing.starts.dtype == np.int64
        assert packing.starts.max() > 2**32 - 2**20
        assert int(packing.lengths.sum()) == 2**32 + 8
