"""The bytes of tokens, against the decoder of the tokenizers library."""

from __future__ import annotations

from pydoc_data.topics import topics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models
from tokenizers import Tokenizer as Model

from inference.errors import ServingError
from inference.text.vocabulary import Vocabulary
from tests.inference.text.pieces import tokenizer_of, vocabulary_of
from training.model.tokenizer import RESERVED, Tokenizer, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(topics.values(), 600)


@given(data=st.data())
def test_the_bytes_of_any_tokens_joined_are_what_the_library_decodes(tokenizer: Tokenizer, data: st.DataObject) -> None:
    pieces = Vocabulary(tokenizer, tokenizer.vocab_size).pieces(skip_special=False)
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)))
    assert b"".join(pieces[token] for token in ids).decode("utf-8", "replace") == tokenizer.decode(ids)


def test_all_bytes_are_there_and_the_longest_is_measured() -> None:
    vocabulary, ids = vocabulary_of([bytes([byte]) for byte in range(256)] + [b"\xed\x95", b"longest"])
    assert [vocabulary.pieces(skip_special=True)[token] for token in ids[:256]] == [bytes([b]) for b in range(256)]
    assert vocabulary.longest == 7


def test_special_tokens_stand_for_nothing_unless_they_are_asked_for() -> None:
    vocabulary, _ = vocabulary_of([])
    assert vocabulary.special == {0, 1, 2, 3, 4}
    assert [vocabulary.pieces(skip_special=True)[token] for token in range(5)] == [b""] * 5
    assert [vocabulary.pieces(skip_special=False)[token].decode() for token in range(5)] == list(RESERVED)


def test_a_special_token_of_another_tokenizer_is_one_here_too() -> None:
    model = Model.from_str(tokenizer_of([]).to_json().decode())
    model.add_special_tokens(["<|padding｜>"])
    model.add_tokens([AddedToken("a plain one", normalized=False)])
    tokenizer = Tokenizer(model)
    vocabulary = Vocabulary(tokenizer, tokenizer.vocab_size)
    assert vocabulary.special == {0, 1, 2, 3, 4, 261}
    assert (vocabulary.name(261), vocabulary.pieces(skip_special=True)[261]) == ("<|padding｜>", b"")
    assert vocabulary.pieces(skip_special=True)[262] == b"a plain one"


@pytest.mark.parametrize(
    ("piece", "name"),
    [(b"ab", "ab"), (b"\xed\x95", r"bytes:\xed\x95"), ("한".encode(), "한"), (b" \xff", r"bytes:\x20\xff")],
)
def test_a_token_that_is_no_text_is_named_by_its_bytes(piece: bytes, name: str) -> None:
    vocabulary, ids = vocabulary_of([piece])
    assert vocabulary.name(ids[0]) == name


def test_a_part_of_a_token_is_named_as_such() -> None:
    vocabulary, ids = vocabulary_of([b"abc"])
    assert vocabulary.name(ids[0], b"a") == "a"


def test_the_model_may_have_more_tokens_than_the_tokenizer() -> None:
    vocabulary = Vocabulary(tokenizer_of([]), 300)
    assert (vocabulary.size, vocabulary.pieces(skip_special=False)[299], vocabulary.name(299)) == (300, b"", "")


def test_and_not_fewer() -> None:
    with pytest.raises(
        ServingError, match=r"^tokenizer.json: has 261 tokens, and the model 260; both are of one export"
    ):
        Vocabulary(tokenizer_of([]), 260)


def test_a_tokenizer_that_is_not_byte_level_is_refused() -> None:
    model = Model(models.BPE(vocab={"a": 0}, merges=[], unk_token="a"))
    model.decoder = decoders.Metaspace()
    with pytest.raises(ServingError, match=r"is BPE with the decoder Metaspace; what is served here is byte-level BPE"):
        Vocabulary(Tokenizer(model), 10)
