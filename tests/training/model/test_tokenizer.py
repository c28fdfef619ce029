"""The tokenizer: text comes back as it was, whatever it holds, and nobody can write a reserved token."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Model
from tokenizers import decoders, models, normalizers, pre_tokenizers

from training.errors import TrainingError
from training.model.tokenizer import (
    LONGEST,
    RESERVED,
    SMALLEST,
    Tokenizer,
    load_tokenizer,
    parse_tokenizer,
    scalar_text,
    train_tokenizer,
)

TRAIN = """
from pydoc_data.topics import topics
from training.model.tokenizer import train_tokenizer
print(train_tokenizer(topics.values(), 600).digest)
"""


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(topics.values(), 600)


@given(text=st.text(st.characters(exclude_categories=("Cs",))))
def test_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("character", ["^", "a", " ", "\n", "é", "\U0001f44b"])
def test_a_million_equal_characters_come_back(tokenizer: Tokenizer, character: str) -> None:
    text = character * 1_000_000
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    # No merge reaches over more than a bounded run, so that the time is linear.
    assert len(ids) >= len(text) / LONGEST


@pytest.mark.parametrize("character", ["^", "a", " ", "é"])
def test_no_token_is_longer_than_a_run_may_be(character: str) -> None:
    tokenizer = train_tokenizer([f"x {character * 5000} y"] * 3, 500)
    pieces = [tokenizer.decode([token]) for token in tokenizer.encode(f"x {character * 5000} y")]
    # With the space that a word may have before it.
    assert LONGEST // 2 <= max(map(len, pieces)) <= LONGEST + 1


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r'"\ud800"', "�"),
        (r'"\udc00"', "�"),
        (r'"a\ud800b"', "a�b"),
        (r'"\udc4b\ud83d"', "��"),
        (r'"\ud83d\udc4b"', "\U0001f44b"),
        (r'"a\u0000b"', "a\x00b"),
    ],
)
def test_surrogates(tokenizer: Tokenizer, written: str, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(json.loads(written))) == text


def test_the_halves_of_a_pair_that_were_read_apart_are_one_character(tokenizer: Tokenizer) -> None:
    assert scalar_text("\ud83d" + "\udc4b") == "\U0001f44b"


def test_text_cannot_bring_about_a_reserved_token(tokenizer: Tokenizer) -> None:
    for marker in RESERVED:
        ids = tokenizer.encode(f"x{marker}y {marker}")
        assert not set(ids) & set(tokenizer.reserved.values())
        assert tokenizer.decode(ids) == f"x{marker}y {marker}"
    assert tokenizer.decode([tokenizer.end]) == RESERVED[0]


def test_reserved_tokens_come_first_and_bytes_are_all_there(tokenizer: Tokenizer) -> None:
    assert list(tokenizer.reserved.values()) == [0, 1, 2, 3, 4]
    assert tokenizer.vocab_size == 600
    assert train_tokenizer([], SMALLEST).vocab_size == SMALLEST
    assert len(train_tokenizer([], SMALLEST).encode("ü\x00")) == 3


def test_texts_together_are_as_each_alone(tokenizer: Tokenizer) -> None:
    texts = ["", " a", "some words, and more", "\ud800", "x" * 1000]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


def test_training_is_deterministic_over_processes(tokenizer: Tokenizer) -> None:
    done = subprocess.run([sys.executable, "-c", TRAIN], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == tokenizer.digest


def test_a_saved_tokenizer_is_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(tokenizer.to_json())
    again = load_tokenizer(path)
    assert again.digest == tokenizer.digest
    assert again.encode("some <|user|> text") == tokenizer.encode("some <|user|> text")


def byte_level(**parts: object) -> Model:
    """A tokenizer of somebody else, of bytes alone."""
    model = Model(
        models.BPE({sign: number for number, sign in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, [])
    )
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    for name, part in parts.items():
        setattr(model, name, part)
    return model


def test_a_given_tokenizer_gets_the_reserved_tokens_that_it_lacks() -> None:
    model = byte_level()
    model.enable_truncation(3)
    model.enable_padding(length=7)
    tokenizer = parse_tokenizer(model.to_str().encode(), "theirs.json")
    assert sorted(tokenizer.reserved.values()) == [256, 257, 258, 259, 260]
    assert tokenizer.vocab_size == 261
    assert len(tokenizer.encode("four")) == 4


@pytest.mark.parametrize(
    "parts",
    [
        {"normalizer": normalizers.Lowercase()},
        {"normalizer": normalizers.NFC()},
        {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)},
        {"decoder": decoders.Fuse()},
    ],
)
def test_a_given_tokenizer_that_loses_text_is_refused(parts: dict[str, object]) -> None:
    with pytest.raises(TrainingError, match=r"theirs\.json: loses text: .* comes back as .* byte-level"):
        parse_tokenizer(byte_level(**parts).to_str().encode(), "theirs.json")


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"model": {"type": "BPE"}}', b"[" * 100_000])
def test_a_file_that_is_no_tokenizer_is_refused(content: bytes) -> None:
    with pytest.raises(TrainingError, match=r"x\.json: is no tokenizer of the tokenizers library"):
        parse_tokenizer(content, "x.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"none\.json: the tokenizer cannot be read: No such file"):
        load_tokenizer(tmp_path / "none.json")


@pytest.mark.parametrize("size", [-1, 0, SMALLEST - 1, 2**20 + 1])
def test_sizes_out_of_range_are_refused(size: int) -> None:
    with pytest.raises(TrainingError, match=rf"vocab_size is {size}; .* takes 261 .* to 1048576"):
        train_tokenizer(["text"], size)
