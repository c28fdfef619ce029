"""`/tokenize`, `/detokenize` and the list of models."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types import Model

from inference.errors import ServingError
from inference.protocol.models import model_body, models_body
from inference.protocol.served_model import ServedModel
from inference.protocol.texts import detokenize, tokenize
from tests.inference.protocol.answering import HELLO, MODEL, byte_ids, chat, refusal
from tests.inference.protocol.shapes import extras
from tests.inference.text.pieces import tokenizer_of


def sent(body: Any) -> bytes:
    return json.dumps(body).encode()


def test_a_text_has_its_tokens_and_never_a_special_one() -> None:
    answer = json.loads(tokenize(sent({"model": "tiny", "prompt": "a<|user|>"}), MODEL))
    assert answer == {"count": 9, "max_model_len": 64, "tokens": byte_ids("a<|user|>")}


def test_a_conversation_has_those_that_an_answer_goes_on_from() -> None:
    answer = json.loads(tokenize(sent({"messages": HELLO}), MODEL))
    assert answer["tokens"] == list(chat({}).generations[0].prompt)


def test_tokens_come_as_strings_too() -> None:
    answer = json.loads(tokenize(sent({"messages": HELLO, "return_token_strs": True}), MODEL))
    assert answer["token_strs"] == ["<|user|>", *"hello", "<|end_of_turn|>", "<|assistant|>"]


def test_a_text_may_be_longer_than_the_context() -> None:
    assert json.loads(tokenize(sent({"prompt": "x" * 1000}), MODEL))["count"] == 1000


def test_tokens_are_a_text_again() -> None:
    assert json.loads(detokenize(sent({"tokens": [2, *byte_ids("é"), 4]}), MODEL)) == {
        "prompt": "<|user|>é<|end_of_turn|>"
    }
    assert json.loads(detokenize(sent({"tokens": []}), MODEL)) == {"prompt": ""}


@pytest.mark.parametrize(
    ("read", "body", "param"),
    [
        (tokenize, {}, "prompt"),
        (tokenize, {"prompt": "a", "messages": HELLO}, "prompt"),
        (tokenize, {"prompt": ["a"]}, "prompt"),
        (tokenize, {"messages": []}, "messages"),
        (tokenize, {"prompt": "a", "foo": 1}, "foo"),
        (detokenize, {}, "tokens"),
        (detokenize, {"tokens": [261]}, "tokens"),
        (detokenize, {"tokens": "a"}, "tokens"),
        (detokenize, {"tokens": [1], "model": "other"}, "model"),
    ],
)
def test_what_is_wrong_is_told_by_name(read: Any, body: dict[str, Any], param: str) -> None:
    error = refusal(lambda: read(sent(body), MODEL))
    assert error.param == param
    assert error.status == (404 if param == "model" else 400)


def test_the_model_is_listed_with_its_context() -> None:
    listed = json.loads(models_body(MODEL))
    assert (listed["object"], len(listed["data"])) == ("list", 1)
    card = json.loads(model_body("tiny", MODEL))
    assert listed["data"] == [card]
    read = Model.model_validate(card, strict=True)
    assert (read.id, read.created, card["max_model_len"]) == ("tiny", 1_600_000_000, 64)
    assert set(extras(read)) == {"root", "parent", "max_model_len"}
    assert refusal(lambda: model_body("gpt-5", MODEL)).status == 404


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"context": 1}, "^context is 1"),
        ({"most_answers": 0}, "^most_answers is 0"),
        ({"name": ""}, "^the model has no name"),
        ({"vocab_size": 200}, "^tokenizer.json: has 261 tokens"),
    ],
)
def test_a_model_that_cannot_be_served(wrong: dict[str, Any], said: str) -> None:
    right: dict[str, Any] = {
        "name": "m",
        "tokenizer": tokenizer_of([]),
        "context": 8,
        "vocab_size": 261,
        "created": 0,
        "fingerprint": "f",
        "most_answers": 1,
    }
    with pytest.raises(ServingError, match=said):
        ServedModel(**{**right, **wrong})
