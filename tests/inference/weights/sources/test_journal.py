"""The journal: what it says again, and what of a torn one is believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.weights.sources.journal import Journal, parse_journal
from inference.weights.sources.spans import Span

GOOD = b'["a", 0, 10]\n["a", 10, 20]\n["b", 5, 6]\n'


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal") as journal:
        journal.add("b\n\u00e4", Span(5, 6))
        journal.add("a", Span(0, 10))
        journal.add("c", Span(0, 3))
        journal.forget("c")
        journal.add("a", Span(10, 20))
    with Journal(tmp_path / "journal") as journal:
        assert journal.done == {"b\n\u00e4": (Span(5, 6),), "a": (Span(0, 20),)}


@pytest.mark.parametrize(
    "tail",
    [
        b'["a", 20',
        b'["a", 20, 30]',  # whole but for its end: the 30 may be the begin of 300
        b"\0" * 40 + b"\n",
        b'["a", 30, 20]\n',
        b'["a", -1, 20]\n',
        b'["a", 1.5, 20]\n',
        b'["a", 20, 30, 40]\n',
        b'{"a": 1}\n',
        b"\xff\n",
    ],
)
def test_a_torn_end_is_cut_off_and_written_over(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "journal"
    path.write_bytes(GOOD + tail + b'["z", 0, 1]\n')
    with Journal(path) as journal:
        assert journal.done == {"a": (Span(0, 20),), "b": (Span(5, 6),)}
        journal.add("b", Span(6, 7))
    assert path.read_bytes() == GOOD + b'["b", 6, 7]\n'


def test_nothing_says_nothing() -> None:
    assert parse_journal(b"") == ({}, 0)
