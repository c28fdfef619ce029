"""Sizes as people write and read them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from inference.economics.figures import bytes_text, count, seconds_text, short, size, tokens, tokens_text
from policies.errors import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("4k", 4096), ("128K", 131_072), ("1m", 1_048_576), ("1000000", 1_000_000), ("1.5k", 1536)],
)
def test_numbers_of_tokens(text: str, value: int) -> None:
    assert tokens(text) == value


@pytest.mark.parametrize("text", ["", "0", "-1", "k", "4kk", "4 kib", "1.3", "0.1k", "nan", "1e99", "٤k", "1_000"])
def test_what_is_no_number_of_tokens(text: str) -> None:
    with pytest.raises(InputError, match=r"is no number of tokens; write 4096, 4k"):
        tokens(text)


@pytest.mark.parametrize(("text", "value"), [("1.3B", 1_300_000_000), ("1.3e9", 1_300_000_000), ("64", 64)])
def test_counts(text: str, value: int) -> None:
    assert count(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("140GiB", 140 * 2**30), ("1.5 TiB", 3 * 2**39), ("16GB", 16_000_000_000), ("1KiB", 1024), ("0.0015KiB", 2)],
)
def test_sizes(text: str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("140", r"'140' is no size; write a number and KB, MB"),
        ("140gib", r"Did you mean 140GiB\?"),
        ("-1GiB", r"is no size"),
        ("9999999TiB", r"is no size"),
        ("nanGiB", r"is no size"),
    ],
)
def test_what_is_no_size(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        size(text)


@pytest.mark.parametrize(
    ("value", "text"), [(4096, "4k"), (131_072, "128k"), (1_048_576, "1M"), (1000, "1,000"), (1025, "1,025")]
)
def test_tokens_are_shown_by_their_unit(value: int, text: str) -> None:
    assert tokens_text(value) == text
    assert tokens(text.replace(",", "")) == value


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (1023, "1,023 B"), (26_050_560, "24.8 MiB"), (48 * 2**30, "48.0 GiB")]
)
def test_bytes_are_shown_in_the_largest_unit(value: int, text: str) -> None:
    assert bytes_text(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (Fraction(972, 100_000), "9.72 ms"),
        (Fraction(5), "5.00 s"),
        (Fraction(583, 10), "58 s"),
        (Fraction(160), "2 min 40 s"),
        (Fraction(3900), "1 h 05 min"),
    ],
)
def test_times_are_shown_as_people_say_them(seconds: Fraction, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(424, 10_000), "0.0424"),
        (Fraction(17_686_494, 1000), "17,686"),
        (Fraction(1, 3), "0.333"),
    ],
)
def test_three_figures(value: Fraction, text: str) -> None:
    assert short(value) == text
