"""Bodies that are no JSON object, and types of content that are none of ours."""

from __future__ import annotations

import contextlib

import pytest

from inference.protocol.errors import LONGEST_ECHO, ApiError
from inference.protocol.json_body import check_content_type, parse_body
from tests.inference.protocol.answering import refusal


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "The body is no valid JSON"),
        (b"not json", "The body is no valid JSON"),
        (b'{"a": NaN}', "The body is no valid JSON"),
        (b'{"a": Infinity}', "The body is no valid JSON"),
        (b'{"a": -Infinity}', "The body is no valid JSON"),
        (b'{"a": 1e999}', "The body is no valid JSON"),
        (b'{"a": 1} x', "The body is no valid JSON"),
        (b'{"a": 1, "a": 2}', 'the key "a" is there twice'),
        (b'{"b": [{"a": 1, "c": {}, "a": 1}]}', 'the key "a" is there twice'),
        (b'{"a": "\\ud800"}', "The body is no valid JSON"),
        (b'{"a": "\xff"}', "The body is no valid JSON"),
        ('{"a": 1}'.encode("utf-16"), "The body is no valid JSON"),
        (b'\xef\xbb\xbf{"a": 1}', "The body is no valid JSON"),
        (b'{"a": ' + b"9" * 400 + b"}", "The body is no valid JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "The body is no valid JSON"),
        (b'{"a": ' + b"[" * 2000 + b"]" * 2000 + b"}", "The body is no valid JSON"),
        (b'{"a": ' + b"[" * 100_000, "The body is no valid JSON"),
        (b"[]", "The body is a list of 0; it is a JSON object"),
        (b'"text"', 'The body is "text"; it is a JSON object'),
        (b"null", "The body is null; it is a JSON object"),
        (b"3", "The body is 3; it is a JSON object"),
    ],
)
def test_what_is_no_object_is_a_bad_request(body: bytes, said: str) -> None:
    error = refusal(lambda: parse_body(body))
    assert (error.status, error.type, error.param, error.code) == (400, "invalid_request_error", None, "invalid_json")
    assert error.message.startswith(said) or said in error.message
    assert len(error.body()) < 4 * LONGEST_ECHO


@pytest.mark.parametrize("depth", [10, 300, 900, 990, 1000, 1023, 1024, 1030])
def test_the_depth_that_the_readers_differ_in_is_a_bad_request_too(depth: int) -> None:
    body = b'{"a": ' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
    if depth <= 300:
        assert parse_body(body)["a"]["a"]
    elif depth > 1023:
        assert refusal(lambda: parse_body(body)).code == "invalid_json"
    else:  # as deep as the stack of the caller lets it be
        with contextlib.suppress(ApiError):
            parse_body(body)


def test_whole_numbers_stay_whole() -> None:
    assert parse_body(b'{"a": 123456789012345678901234567890}') == {"a": 123456789012345678901234567890}


def test_an_error_of_a_large_body_is_small() -> None:
    key = b"k" * 1_000_000
    error = refusal(lambda: parse_body(b'{"' + key + b'": 1, "' + key + b'": 2}'))
    assert len(error.body()) < 4 * LONGEST_ECHO


def test_a_prompt_of_a_million_ids_is_read() -> None:
    assert parse_body(b'{"prompt": [' + b"12345," * 999_999 + b"1]}")["prompt"][-2:] == [12345, 1]


@pytest.mark.parametrize(
    "value", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"; v=1']
)
def test_json_is_taken(value: str) -> None:
    check_content_type(value)


@pytest.mark.parametrize(
    "value", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"]
)
def test_anything_else_is_a_bad_request(value: str | None) -> None:
    error = refusal(lambda: check_content_type(value))
    assert (error.status, error.code) == (400, "unsupported_content_type")
    assert "send `application/json`" in error.message
