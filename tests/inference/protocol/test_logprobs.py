"""Log-probabilities: of tokens that are no text by themselves, that a stop string cuts, that cannot be."""

from __future__ import annotations

import math

import orjson
import pytest

from inference.protocol.logprobs import chat_logprobs, completion_logprobs
from inference.text.answer import TextOptions, TokenText
from inference.text.stops import StopStrings
from inference.text.vocabulary import Vocabulary
from tests.inference.text.pieces import NO_STOPS, bytes_of, text_of, tokenizer_of, told, vocabulary_of

PIECES = [b"a", b"\xed\x95", b"\x9c", b" b"]


def test_a_character_of_two_tokens_in_both_shapes() -> None:
    vocabulary, ids = vocabulary_of(PIECES)
    deltas = told(vocabulary, ids, TextOptions(stops=NO_STOPS, tokens=True))
    tokens = [token for delta in deltas for token in delta.tokens]
    names = ["a", r"bytes:\xed\x95", r"bytes:\x9c", " b"]
    completion = completion_logprobs(tokens, vocabulary)
    assert completion["tokens"] == names
    assert completion["text_offset"] == [0, 1, 1, 2]
    content = chat_logprobs(tokens, vocabulary)["content"]
    assert [entry["token"] for entry in content] == names
    assert bytes(byte for entry in content for byte in entry["bytes"]).decode() == text_of(deltas) == "a한 b"


@pytest.mark.parametrize(("stop", "names"), [("한", ["a"]), (" ", ["a", r"bytes:\xed\x95", r"bytes:\x9c"]), ("a", [])])
def test_what_a_stop_string_cuts_off_has_none(stop: str, names: list[str]) -> None:
    vocabulary, ids = vocabulary_of(PIECES)
    deltas = told(vocabulary, ids, TextOptions(stops=StopStrings(strings=(stop,)), tokens=True))
    tokens = [token for delta in deltas for token in delta.tokens]
    assert completion_logprobs(tokens, vocabulary)["tokens"] == names
    assert bytes_of(deltas).decode() == text_of(deltas)


def test_a_token_that_is_cut_is_named_by_what_is_left() -> None:
    vocabulary, ids = vocabulary_of([b"one. Two"])
    deltas = told(vocabulary, ids, TextOptions(stops=StopStrings(strings=(".",)), tokens=True))
    (entry,) = chat_logprobs(deltas[-1].tokens, vocabulary)["content"]
    assert (entry["token"], entry["bytes"], entry["logprob"]) == ("one", list(b"one"), -ids[0])


def test_a_special_token_has_a_name_and_no_bytes() -> None:
    vocabulary, _ = vocabulary_of([])
    token = TokenText(token=2, piece=b"", offset=0, logprob=-1.0, top=((3, -0.5),))
    (entry,) = chat_logprobs([token], vocabulary)["content"]
    assert (entry["token"], entry["bytes"]) == ("<|user|>", [])
    assert entry["top_logprobs"] == [{"token": "<|assistant|>", "bytes": [], "logprob": -0.5}]
    (entry,) = chat_logprobs([token], vocabulary, skip_special=False)["content"]
    assert bytes(entry["top_logprobs"][0]["bytes"]) == b"<|assistant|>"


@pytest.mark.parametrize(
    ("logprob", "told_as"), [(-math.inf, -9999.0), (math.nan, -9999.0), (-1e5, -9999.0), (-3.5, -3.5), (0.0, 0.0)]
)
def test_what_is_no_number_in_json_is_told_as_one(logprob: float, told_as: float) -> None:
    vocabulary, ids = vocabulary_of([b"a"])
    token = TokenText(token=ids[0], piece=b"a", offset=0, logprob=logprob, top=((ids[0], logprob),))
    sent = orjson.loads(orjson.dumps([chat_logprobs([token], vocabulary), completion_logprobs([token], vocabulary)]))
    assert sent[0]["content"][0]["logprob"] == sent[0]["content"][0]["top_logprobs"][0]["logprob"] == told_as
    assert sent[1]["token_logprobs"] == [told_as]
    assert sent[1]["top_logprobs"] == [{"a": told_as}]


def test_the_token_itself_is_among_the_likeliest_once() -> None:
    vocabulary, ids = vocabulary_of([b"a", b"b", b"c"])
    top = ((ids[0], -0.1), (ids[1], -2.5))
    among = TokenText(token=ids[1], piece=b"b", offset=0, logprob=-2.5, top=top)
    beside = TokenText(token=ids[2], piece=b"c", offset=1, logprob=-4.0, top=top)
    first = TokenText(token=ids[2], piece=b"c", offset=1, logprob=None, top=())
    assert completion_logprobs([among, beside, first], vocabulary)["top_logprobs"] == [
        {"a": -0.1, "b": -2.5},
        {"a": -0.1, "b": -2.5, "c": -4.0},
        None,
    ]


def test_of_tokens_that_look_alike_the_likelier_is_told() -> None:
    vocabulary = Vocabulary(tokenizer_of([]), 300)  # those that only the model has are nameless
    token = TokenText(token=291, piece=b"", offset=0, logprob=-1.5, top=((290, -0.5), (291, -1.5)))
    assert completion_logprobs([token], vocabulary)["top_logprobs"] == [{"": -0.5}]
