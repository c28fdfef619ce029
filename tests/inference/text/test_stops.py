"""Stop strings, against a search that reads the whole text again for every byte."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.text.stops import StopMatcher, StopStrings

LETTERS = st.text("abé", max_size=12) | st.text("ab", max_size=20)
STRINGS = st.lists(
    st.text("abé", min_size=1, max_size=5) | st.text("ab", min_size=4, max_size=8), min_size=1, max_size=4
)


def found_by_reading_again(text: bytes, strings: list[str]) -> tuple[int, int] | None:
    """The match that ends first, of several the longest."""
    encoded = [string.encode() for string in strings]
    for end in range(1, len(text) + 1):
        ending = [len(string) for string in encoded if text[:end].endswith(string)]
        if ending:
            return end - max(ending), end
    return None


def found_in_pieces(pieces: list[bytes], strings: list[str]) -> tuple[int, int] | None:
    matcher = StopMatcher(StopStrings(strings=tuple(strings)))
    read = 0
    for piece in pieces:
        read += len(piece)
        match = matcher.push(piece)
        if match is not None:
            return read - match.start, read - match.end
    return None


@given(text=LETTERS, strings=STRINGS, cuts=st.lists(st.integers(0, 30)))
def test_what_is_found_does_not_depend_on_the_pieces(text: str, strings: list[str], cuts: list[int]) -> None:
    data = text.encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[first:last] for first, last in pairwise(places)]
    assert found_in_pieces(pieces, strings) == found_by_reading_again(data, strings)


@given(text=LETTERS, strings=STRINGS)
def test_as_much_is_held_as_may_begin_a_stop_string_and_no_more(text: str, strings: list[str]) -> None:
    data = text.encode()
    matcher = StopMatcher(StopStrings(strings=tuple(strings)))
    if matcher.push(data) is not None:
        return
    beginnings = {string.encode()[:length] for string in strings for length in range(1, len(string.encode()))}
    assert matcher.held == max((len(start) for start in beginnings if data.endswith(start)), default=0)


def test_a_string_that_only_repeats_takes_linear_time() -> None:
    matcher = StopMatcher(StopStrings(strings=("a" * 1000 + "b",)))
    assert matcher.push(b"a" * 50_000) is None  # a search anew at every byte would read fifty million
    assert matcher.held == 1000


def test_a_beginning_inside_a_beginning_is_not_lost() -> None:
    assert found_in_pieces([b"aabaa", b"aabaaac"], ["aabaaac"]) == (5, 12)
    assert found_in_pieces([b"aabaaabaaac"], ["aabaaac"]) == (4, 11)


def test_an_empty_string_is_refused() -> None:
    with pytest.raises(ValueError, match="an empty string is in every text"):
        StopStrings(strings=("a", ""))
