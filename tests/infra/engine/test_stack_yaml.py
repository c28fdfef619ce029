"""YAML must mean what it means to Pulumi's CLI, which reads it with Go's yaml.v3 (YAML 1.2 with some of 1.1)."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest

from infra.engine.errors import ProjectError
from infra.engine.stack_yaml import Yaml, load_yaml

# The right side is what yaml.v3 decodes into an interface{}: resolve.go and decode.go of go-yaml.
SCALARS: list[tuple[str, Yaml]] = [
    ("8", 8),
    ("-8", -8),
    ("+8", 8),
    ("1_000", 1000),
    ("0x1F", 31),
    ("0o17", 15),
    ("017", 15),
    ("0b101", 5),
    ("0", 0),
    ("18446744073709551615", 18446744073709551615),
    ("18446744073709551616", 18446744073709551616.0),
    ("1.50", 1.5),
    ("1e3", 1000.0),
    (".5", 0.5),
    ("true", True),
    ("False", False),
    ("yes", "yes"),
    ("on", "on"),
    ("no", "no"),
    ("1:30", "1:30"),
    ("~", None),
    ("null", None),
    ("", None),
    ("2026-12-15", "2026-12-15T00:00:00Z"),
    ("2026-2-3", "2026-02-03T00:00:00Z"),
    ("2026-13-15", "2026-13-15"),
    ('"2026-12-15"', "2026-12-15"),
    ('"8"', "8"),
    ("'true'", "true"),
    ("7d", "7d"),
    ("v6e-8", "v6e-8"),
    ("us-central1-b", "us-central1-b"),
    ("Ärger 東京", "Ärger 東京"),
    (".inf", math.inf),
]


@pytest.mark.parametrize(("text", "value"), SCALARS, ids=[text or "nothing" for text, _ in SCALARS])
def test_scalars(tmp_path: Path, text: str, value: Yaml) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(f"key: {text}\n", encoding="utf-8")
    document = load_yaml(file)
    assert document == {"key": value}
    assert isinstance(document, dict)
    assert type(document["key"]) is type(value)


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefghij")
)
"""Ten lines that stand for a billion values."""


def test_structures_anchors_and_merges(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(
        "base: &base {shape: v6e-8, count: 1}\nother: &other {count: 2, zone: a}\n"
        "one: {<<: *base, count: 3}\ntwo:\n  <<: [*base, *other]\nlist: [1, {a: [b]}, *base]\n"
    )
    assert load_yaml(file) == {
        "base": {"shape": "v6e-8", "count": 1},
        "other": {"count": 2, "zone": "a"},
        "one": {"shape": "v6e-8", "count": 3},
        "two": {"shape": "v6e-8", "count": 1, "zone": "a"},
        "list": [1, {"a": ["b"]}, {"shape": "v6e-8", "count": 1}],
    }


def test_an_empty_file_and_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("# nothing\n")
    assert load_yaml(file) is None
    file.write_bytes(b"\xef\xbb\xbfkey: 1\n")
    assert load_yaml(file) == {"key": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb: [\n", r"file\.yaml:3: not valid YAML: "),
        (b"a: 1\nb: 2\na: 3\n", r'file\.yaml:3: not valid YAML: the key "a" stands twice'),
        (b"a: {b: 1, b: 2}\n", r'file\.yaml:1: not valid YAML: the key "b" stands twice'),
        (b"a: *nothing\n", r"file\.yaml:1: not valid YAML: found undefined alias 'nothing'"),
        (b"[a]: 1\n", r"file\.yaml:1: not valid YAML: a key must be text"),
        (b"a: 1\n<<: 3\n", r"file\.yaml:2: not valid YAML: << takes a mapping or a list of mappings"),
        (b"<<: [3, {a: 1}]\n", r"file\.yaml:1: not valid YAML: << takes a mapping"),
        (b"a: &a {b: *a}\n", r"file\.yaml: .* nested too deeply, or one stands in itself"),
        (b"a: &a {<<: *a}\n", r"file\.yaml: .* nested too deeply, or one stands in itself"),
        (b"[" * 5000, r"file\.yaml: .* nested too deeply"),
        (LAUGHS.encode(), r"file\.yaml:[0-9]+: not valid YAML: more than 100,000 values, those of aliases included"),
        (b"#" * (2**20 + 1), r"file\.yaml: has more than 1 MiB"),
        (b"a: \xff\n", r"file\.yaml: byte 3 is not UTF-8; save the file as UTF-8"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "file.yaml"
    file.write_bytes(content)
    with pytest.raises(ProjectError, match=message):
        load_yaml(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"file\.yaml: cannot be read: No such file or directory"):
        load_yaml(tmp_path / "file.yaml")
