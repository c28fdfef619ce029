"""The table of fields: all that clients send has a row, and a row is what happens."""

from __future__ import annotations

from functools import partial
from typing import Any, get_type_hints

import pytest
from openai.types import completion_create_params
from openai.types.chat import completion_create_params as chat_params

from inference.protocol.field_rows import FIELDS, field_table
from inference.protocol.fields import Decision, Endpoint, Field, JsonType, check_fields
from tests.inference.protocol.answering import chat, completion, refusal

CHAT, COMPLETIONS = Endpoint.CHAT, Endpoint.COMPLETIONS
VLLM = [
    *("top_k", "min_p", "repetition_penalty", "min_tokens", "stop_token_ids", "ignore_eos", "skip_special_tokens"),
    *("include_stop_str_in_output", "truncate_prompt_tokens", "prompt_logprobs", "allowed_token_ids", "bad_words"),
    *("priority", "request_id", "session_id", "cache_salt", "return_token_ids"),
]
VLLM_CHAT = ["add_generation_prompt", "continue_final_message", "chat_template", "chat_template_kwargs"]
READ = {CHAT: chat, COMPLETIONS: completion}
WRONG: dict[JsonType, list[Any]] = {
    JsonType.STRING: [3, ["a"], {}, True],
    JsonType.BOOLEAN: ["true", 0, 1, []],
    JsonType.INTEGER: ["5", 1.5, 1.0, True, [1]],
    JsonType.NUMBER: ["0", False, [0.5], "NaN"],
    JsonType.LIST: ["a", 3, {}],
    JsonType.OBJECT: ["a", 3, [], True],
    JsonType.STRING_OR_LIST: [3, {}, True],
    JsonType.STRING_OR_OBJECT: [3, [], True],
}
ROWS = [(endpoint, row) for endpoint in (CHAT, COMPLETIONS) for row in FIELDS[endpoint]]
NAMES = [f"{endpoint.name.lower()}-{row.name}" for endpoint, row in ROWS]
SAMPLES: dict[JsonType, Any] = {
    JsonType.STRING: "a",
    JsonType.BOOLEAN: True,
    JsonType.INTEGER: 7,
    JsonType.NUMBER: 0.5,
    JsonType.LIST: [{"type": "x"}],
    JsonType.OBJECT: {"type": "x"},
    JsonType.STRING_OR_LIST: "a",
    JsonType.STRING_OR_OBJECT: {"type": "x"},
    JsonType.ANY: "a",
}


def names(endpoint: Endpoint) -> set[str]:
    return {row.name for row in FIELDS[endpoint]}


def test_every_field_of_the_client_of_openai_has_a_row() -> None:
    hints = get_type_hints(chat_params.CompletionCreateParamsStreaming)
    assert len(hints) > 30
    assert set(hints) <= names(CHAT)
    hints = get_type_hints(completion_create_params.CompletionCreateParamsStreaming)
    assert len(hints) > 15
    assert set(hints) <= names(COMPLETIONS)


def test_so_have_those_that_users_of_vllm_rely_on() -> None:
    assert set(VLLM) <= names(CHAT) & names(COMPLETIONS)
    assert set(VLLM_CHAT) <= names(CHAT)


@pytest.mark.parametrize("endpoint", Endpoint)
def test_no_field_has_two_rows(endpoint: Endpoint) -> None:
    assert len(FIELDS[endpoint]) == len(names(endpoint))


@pytest.mark.parametrize(("endpoint", "row"), ROWS, ids=NAMES)
def test_a_wrong_type_is_refused_by_name(endpoint: Endpoint, row: Field) -> None:
    for value in WRONG.get(row.type, []):
        error = refusal(partial(READ[endpoint], {row.name: value}))
        assert (error.status, error.param, error.type) == (400, row.name, "invalid_request_error")
        assert error.message.startswith(f"{row.name}: is ")


@pytest.mark.parametrize(("endpoint", "row"), ROWS, ids=NAMES)
def test_null_is_as_if_it_was_not_sent(endpoint: Endpoint, row: Field) -> None:
    if row.name in ("prompt", "messages"):
        assert refusal(lambda: READ[endpoint]({row.name: None})).code == "missing_required_parameter"
    else:
        assert READ[endpoint]({row.name: None}) == READ[endpoint]({})


@pytest.mark.parametrize(("endpoint", "row"), ROWS, ids=NAMES)
def test_a_row_is_what_happens(endpoint: Endpoint, row: Field) -> None:
    body = {row.name: SAMPLES[row.type]}
    if row.decision is Decision.REFUSED:
        error = refusal(lambda: READ[endpoint](body))
        assert (error.status, error.param, error.code) == (400, row.name, "unsupported_parameter")
        assert "is not supported: " in error.message
        for value in row.harmless:
            assert READ[endpoint]({row.name: value}) == READ[endpoint]({})
    elif row.decision is Decision.IGNORED:
        assert READ[endpoint](body) == READ[endpoint]({})


@pytest.mark.parametrize(
    ("sent", "hint"),
    [("max_token", "did you mean max_tokens"), ("foo", "see the table of fields"), ("x" * 10**6, "see the table")],
)
def test_a_field_that_is_none_is_refused_with_the_closest(sent: str, hint: str) -> None:
    error = refusal(lambda: completion({sent: 1}))
    assert (error.status, error.code) == (400, "unknown_parameter")
    assert hint in error.message
    assert len(error.body()) < 1000


def test_the_page_has_a_line_for_every_row() -> None:
    lines = field_table().splitlines()
    assert sum(line.startswith("| `") for line in lines) == sum(map(len, FIELDS.values()))
    assert [line for line in lines if line.startswith("###")] == [f"### `POST {e.value}`" for e in Endpoint]
    assert all(line.count("|") == 5 for line in lines if line.startswith("|"))
    assert "| `temperature` | a number from 0 to 2 | supported | default 1; 0 takes the likeliest token |" in lines
    assert '| `suffix` | a string | refused | the model reads forward only ("" is taken) |' in lines


def test_true_is_no_number_even_where_it_would_be_harmless() -> None:
    row = Field(name="n", type=JsonType.ANY, decision=Decision.REFUSED, note="no", harmless=(1,))
    assert check_fields([row], {"n": 1}) == {"n": 1}
    assert refusal(lambda: check_fields([row], {"n": True})).param == "n"
