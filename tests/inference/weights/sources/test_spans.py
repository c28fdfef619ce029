"""Ranges of bytes, against sets of numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from inference.weights.sources.spans import Span, cut, merged, missing, total

SIZE = 40
SPANS = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda ends: Span(min(ends), max(ends))))


def numbers(spans: list[Span] | tuple[Span, ...]) -> set[int]:
    return {number for span in spans for number in range(span.start, span.stop)}


@given(SPANS)
def test_merged_are_the_same_bytes_apart_and_in_order(spans: list[Span]) -> None:
    found = merged(spans)
    assert numbers(found) == numbers(spans)
    assert total(found) == len(numbers(spans))
    assert all(before.stop < after.start for before, after in pairwise(found))


@given(SPANS, st.integers(1, SIZE))
def test_what_is_missing_comes_in_parts(spans: list[Span], most: int) -> None:
    lacking = list(cut(missing(merged(spans), SIZE), most))
    assert numbers(lacking) == set(range(SIZE)) - numbers(spans)
    assert total(lacking) == len(numbers(lacking))
    assert all(0 < span.size <= most for span in lacking)


def test_nothing_is_missing_of_nothing() -> None:
    assert missing((), 0) == ()
