"""JSON Lines: records end at LF alone, and every bad line is named with its number and its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.data.documents import BadLine
from training.data.jsonl import jsonl_file, read_jsonl
from training.errors import TrainingError

SIGNS = (
    b'\xef\xbb\xbf{"text":"a\xe2\x80\xa8b\xc2\x85c"}\r\n'
    b'{"text":"x\\ny"}\n'
    b"\n"
    b"    \n"
    b'{"text":""}\n'
    b'{"text":"\xe3\x80\x80 \xf0\x9f\x91\x8b"}\n'
    b'{"text":"last, no newline"}'
)
BAD = b'{"text":"ok"}\n{"text":"cut\n{"text":1}\n{"txt":"no field"}\n{"text":"\xff\xfe"}\n["text"]\n'


def written(folder: Path, content: bytes) -> Path:
    path = folder / "data.jsonl"
    path.write_bytes(content)
    return path


def test_a_record_ends_at_a_line_feed_and_nowhere_else(tmp_path: Path) -> None:
    assert list(read_jsonl(written(tmp_path, SIGNS), "text")) == [
        "a\u2028b\x85c",
        "x\ny",
        "",
        "\u3000 \U0001f44b",
        "last, no newline",
    ]


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_what_python_takes_for_a_line_end_is_text(tmp_path: Path, sign: str) -> None:
    assert len(f"a{sign}b".splitlines()) == 2
    escaped = sign if sign > "\x20" else f"\\u{ord(sign):04x}"
    content = f'{{"text": "a{escaped}b"}}\n'.encode()
    assert list(read_jsonl(written(tmp_path, content), "text")) == [f"a{sign}b"]


def test_bad_lines_are_named_with_their_reasons(tmp_path: Path) -> None:
    path = written(tmp_path, BAD)
    first, *bad = read_jsonl(path, "text")
    assert first == "ok"
    assert [str(line) for line in bad] == [
        f"{path}:2: is no JSON: Unterminated string starting at (column 9)",
        f'{path}:3: the field "text" is no string but a number',
        f'{path}:4: has no field "text"; it has "txt"; did you mean "txt"?',
        f"{path}:5: byte 10 (0xff) is no UTF-8",
        f"{path}:6: is no object but a list",
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"null", "is no object but null"),
        (b"true", "is no object but true or false"),
        (b"1.5", "is no object but a number"),
        (b"{}", 'has no field "text"; it has none'),
        (b'{"text": null}', 'the field "text" is no string but null'),
        (b'{"text": ["a"]}', 'the field "text" is no string but a list'),
        (b'{"text": {"a": 1}}', 'the field "text" is no string but an object'),
        (b'{"text": "a"} {"text": "b"}', r"is no JSON: Extra data \(column 15\)"),
        (b"[" * 100_000, "is no JSON that can be read"),
        (b'{"n": ' + b"9" * 5000 + b"}", "is no JSON that can be read"),
        (b'{"text": "a\tb"}', "is no JSON: Invalid control character"),
        (b"\x0c", "is no JSON: Expecting value"),
    ],
)
def test_reasons(tmp_path: Path, line: bytes, reason: str) -> None:
    (bad,) = read_jsonl(written(tmp_path, line), "text")
    assert isinstance(bad, BadLine)
    assert bad.number == 1
    with pytest.raises(ValueError, match=reason):
        raise ValueError(bad.reason)


def test_a_source_can_be_read_twice(tmp_path: Path) -> None:
    source = jsonl_file(written(tmp_path, SIGNS), "text")
    assert list(source.read()) == list(source.read())
    assert source.name == "data.jsonl"
    assert source.size == len(SIGNS)


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.data.jsonl.LONGEST", 1 << 20)
    path = written(tmp_path, b'{"text": "ok"}\n"' + b"x" * (1 << 21))
    with pytest.raises(TrainingError, match=r"data\.jsonl:2: the line has no end within 1 MiB"):
        list(read_jsonl(path, "text"))


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("none.jsonl", "there is no such file"),
        ("", "is a folder; name the files in it"),
        ("/dev/null", "is no file but"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path: Path, place: str, reason: str) -> None:
    with pytest.raises(TrainingError, match=reason):
        jsonl_file(tmp_path / place, "text")
