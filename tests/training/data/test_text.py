"""Plain text: cut into documents without losing a character, and refused with its place where it is no UTF-8."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.data.text import LONGEST, end_of_document, read_text, text_file
from training.errors import TrainingError


def written(folder: Path, content: bytes) -> Path:
    path = folder / "book.txt"
    path.write_bytes(content)
    return path


def test_a_short_text_is_one_document(tmp_path: Path) -> None:
    assert list(read_text(written(tmp_path, b"One.\n\nTwo.\n"))) == ["One.\n\nTwo.\n"]


def test_a_mark_of_byte_order_goes_and_every_line_ends_with_lf(tmp_path: Path) -> None:
    assert list(read_text(written(tmp_path, b"\xef\xbb\xbfone\r\ntwo\rthree"))) == ["one\ntwo\nthree"]


def test_a_long_text_is_cut_where_a_paragraph_ends_else_a_line_else_anywhere() -> None:
    line = "x" * 99 + "\n"
    assert end_of_document(line * 50 + "\n" + line * 200) == 5001
    assert end_of_document(line * 200) == LONGEST // 100 * 100
    assert end_of_document("x" * 20_000) == LONGEST


@given(
    pieces=st.lists(
        st.sampled_from(["\n", "\n\n", "word ", "x" * 7000, "é" * 9000, "\u2028", "y" * 40_000]), max_size=12
    )
)
def test_no_character_is_lost(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    path = written(tmp_path_factory.mktemp("text"), "".join(pieces).encode())
    found = list(read_text(path))
    assert "".join(found) == "".join(pieces)
    assert all(0 < len(document) <= LONGEST for document in found)


def test_an_empty_file_has_no_documents(tmp_path: Path) -> None:
    assert list(read_text(written(tmp_path, b""))) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"fine\nalso \xe4 umlaut\n", r"book\.txt:2: byte 6 of the line \(0xe4\) is no UTF-8"),
        (b"x" * 70_000 + b"\nnot\xff", r"book\.txt:2: byte 4 of the line \(0xff\) is no UTF-8"),
        (b"cut \xf0\x9f\x91", r"book\.txt:1: byte 5 of the line \(0xf0\) is no UTF-8"),
        ("text".encode("utf-16"), r"book\.txt:1: is UTF-16; text must be UTF-8: iconv"),
    ],
)
def test_what_is_no_utf8_is_named_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        list(read_text(written(tmp_path, content)))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    source = text_file(written(tmp_path, b"text"))
    (tmp_path / "book.txt").unlink()
    with pytest.raises(TrainingError, match=r"book\.txt: cannot be read: No such file"):
        list(source.read())
