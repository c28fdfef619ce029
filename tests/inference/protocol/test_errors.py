"""Every error: its status, the four fields, and nothing of what was sent beyond a bound."""

from __future__ import annotations

import json

import pytest

from inference.protocol import errors
from inference.protocol.errors import LONGEST_ECHO, ApiError

ALL = {
    "invalid": (errors.invalid("n", "is 0; it is 1 or more"), 400, None),
    "context": (errors.context_exceeded("prompt", 70_000, 65_536), 400, "context_length_exceeded"),
    "model": (errors.model_not_found("gpt-5", "tiny"), 404, "model_not_found"),
    "key": (errors.invalid_api_key(), 401, "invalid_api_key"),
    "route": (errors.no_such_route("GET", "/v2"), 404, "unknown_url"),
    "method": (errors.method_not_allowed("GET", "/v1/completions", "POST"), 405, "method_not_allowed"),
    "large": (errors.body_too_large(1 << 20), 413, "body_too_large"),
    "full": (errors.queue_full(2), 429, "rate_limit_exceeded"),
    "loading": (errors.not_ready(3), 503, "not_ready"),
    "draining": (errors.draining(4), 503, "draining"),
    "cut": (errors.cut_off(5), 503, "cut_off"),
    "failed": (errors.failed(), 500, "engine_failed"),
}


@pytest.mark.parametrize("name", ALL)
def test_an_error_has_a_status_and_four_fields(name: str) -> None:
    error, status, code = ALL[name]
    fields = json.loads(error.body())["error"]
    assert list(fields) == ["message", "type", "param", "code"]
    assert (error.status, fields["code"]) == (status, code)
    assert isinstance(fields["message"], str)
    assert isinstance(fields["type"], str)
    assert (error.headers.get("Retry-After") is not None) == (status in (429, 503))


def test_a_prompt_that_is_too_long_is_told_both_counts() -> None:
    message = ALL["context"][0].message
    assert "70,000" in message
    assert "maximum context length is 65,536 tokens" in message


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "null"), (True, "true"), ("a", '"a"'), ([1, 2], "a list of 2"), ({"a": 1}, "an object"), (1.5, "1.5")],
)
def test_a_value_is_shown_as_json_has_it(value: object, shown: str) -> None:
    assert errors.echo(value) == shown


@pytest.mark.parametrize("value", ["x" * 10**6, 10**4000, ["x" * 10**6], {"x" * 10**6: 1}])
def test_no_value_is_shown_beyond_the_bound(value: object) -> None:
    assert len(errors.echo(value)) <= LONGEST_ECHO


def test_the_name_of_a_field_is_bounded_too() -> None:
    error = errors.invalid("x" * 10**6, "is no field")
    assert len(error.message) < 2 * LONGEST_ECHO
    assert error.param is not None
    assert len(error.param) <= LONGEST_ECHO


def test_an_error_is_raised_and_caught_as_one() -> None:
    with pytest.raises(ApiError, match="The queue is full"):
        raise errors.queue_full(1)
