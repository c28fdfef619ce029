"""The table of fields: every one that clients of OpenAI and of vLLM are known to send, and what is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inference.engine.sampling_parameters import MOST_LOGPROBS
from inference.protocol.fields import Decision, Endpoint, Field, JsonType

MOST_CHOICES: Final = 16
"""Answers to one prompt, at most."""
MOST_STOPS: Final = 4
"""Stop strings of a request, at most."""
LONGEST_STOP: Final = 1000
"""Characters of a stop string, at most."""
MOST_COMPLETION_LOGPROBS: Final = 5
"""Alternatives in `/v1/completions`, at most; `/v1/chat/completions` gives up to 20."""
LONGEST_SALT: Final = 1000
"""Characters of a `cache_salt`, at most."""

_YES, _NO, _IGNORED = Decision.SUPPORTED, Decision.REFUSED, Decision.IGNORED
_STRING, _BOOLEAN, _INTEGER, _NUMBER = JsonType.STRING, JsonType.BOOLEAN, JsonType.INTEGER, JsonType.NUMBER
_LIST, _OBJECT, _ANY = JsonType.LIST, JsonType.OBJECT, JsonType.ANY


def _yes(name: str, kind: JsonType, note: str, least: float = float("-inf"), most: float = float("inf")) -> Field:
    return Field(name=name, type=kind, decision=_YES, note=note, least=least, most=most)


def _no(name: str, kind: JsonType, note: str, *harmless: object) -> Field:
    taken = ", ".join(str(value).lower() if isinstance(value, bool) else f"{value}" or '""' for value in harmless)
    note = f"{note} ({taken} is taken)" if harmless else note
    return Field(name=name, type=kind, decision=_NO, note=note, harmless=harmless)


def _ignored(name: str, kind: JsonType, note: str) -> Field:
    return Field(name=name, type=kind, decision=_IGNORED, note=note)


_MODEL: Final = _yes("model", _STRING, "the one that is served, which is also meant where it is absent; else 404")

_GENERATION: Final = (
    _MODEL,
    _yes("temperature", _NUMBER, "default 1; 0 takes the likeliest token", 0, 2),
    _yes("top_p", _NUMBER, "default 1; 0 takes the likeliest token", 0, 1),
    _yes("top_k", _INTEGER, "default 0; 0 and -1 for all tokens", -1),
    _yes("min_p", _NUMBER, "default 0", 0, 1),
    _yes("presence_penalty", _NUMBER, "default 0", -2, 2),
    _yes("frequency_penalty", _NUMBER, "default 0", -2, 2),
    _yes("repetition_penalty", _NUMBER, "default 1, and over 0", 0, 10),
    _yes("logit_bias", _OBJECT, "token ids, as strings, to numbers from -100 to 100"),
    _yes(
        "seed",
        _INTEGER,
        "same seed, same request, same weights: same answer, bit for bit. Counted modulo 2^63. Answer j to a prompt "
        "is drawn the same whatever other prompts the request has",
        -(2**63),
        2**63,
    ),
    _yes("n", _INTEGER, "answers to each prompt, default 1", 1, MOST_CHOICES),
    _yes(
        "stop",
        JsonType.STRING_OR_LIST,
        f"up to {MOST_STOPS} strings of 1 to {LONGEST_STOP} characters; looked for in the answer, not in the prompt",
    ),
    _yes("stop_token_ids", _LIST, "token ids that end the answer too"),
    _yes("ignore_eos", _BOOLEAN, "default false; true: the model's own end tokens do not end the answer"),
    _yes(
        "min_tokens",
        _INTEGER,
        "default 0; nothing ends the answer before so many, at most max_tokens. An end token may be chosen among them, "
        "and is one token more: it cannot be in vLLM",
        0,
    ),
    _yes("include_stop_str_in_output", _BOOLEAN, "default false; true: what ended the answer is part of it"),
    _yes("skip_special_tokens", _BOOLEAN, "default true; false: special tokens are in the text by name"),
    _yes("stream", _BOOLEAN, "default false"),
    _yes("stream_options", _OBJECT, "only with stream: include_usage, continuous_usage_stats"),
    _yes("return_token_ids", _BOOLEAN, "default false; true: prompt_token_ids and token_ids come with the answer"),
    _yes("cache_salt", _STRING, "requests with different salts share no cached state; of one API key only, anyway"),
    _ignored("user", _STRING, "nothing is kept about users"),
    _ignored("priority", _INTEGER, "API keys take turns, and requests of one are served as they come"),
    _ignored("request_id", _STRING, "send the header x-request-id"),
    _ignored("session_id", _STRING, "a request is not bound to a server: the state cache goes by the tokens"),
    _ignored("spaces_between_special_tokens", _BOOLEAN, "nothing is put between tokens"),
    _no("use_beam_search", _BOOLEAN, "answers are drawn, not searched", False),
    _no("length_penalty", _NUMBER, "it is a setting of beam search", 1, 1.0),
    _no("early_stopping", _BOOLEAN, "it is a setting of beam search", False),
    _no("truncate_prompt_tokens", _INTEGER, "a prompt is never cut unsaid; cut it, with /tokenize"),
    _no("prompt_logprobs", _INTEGER, "send echo, logprobs and max_tokens 0 to /v1/completions"),
    _no("allowed_token_ids", _LIST, "give the others a logit_bias of -100"),
    _no("bad_words", _LIST, "give their tokens a logit_bias of -100", []),
    _no("logits_processors", _ANY, "no code is run for a client", []),
    _no("structured_outputs", _ANY, "answers are not held to a grammar"),
    _no("guided_json", _ANY, "answers are not held to a grammar"),
    _no("guided_regex", _ANY, "answers are not held to a grammar"),
    _no("guided_choice", _ANY, "answers are not held to a grammar"),
    _no("guided_grammar", _ANY, "answers are not held to a grammar"),
)

_CHAT: Final = (
    _yes("messages", _LIST, "at least one, of system (or developer), user, assistant; text, or parts that are text"),
    _yes("max_completion_tokens", _INTEGER, "as max_tokens, and wins over it", 0),
    _yes("max_tokens", _INTEGER, "default and most: what the prompt leaves of the context", 0),
    _yes("logprobs", _BOOLEAN, "default false"),
    _yes("top_logprobs", _INTEGER, "default 0; only with logprobs", 0, MOST_LOGPROBS),
    _yes("add_generation_prompt", _BOOLEAN, "default true: the answer is a turn of the assistant"),
    _yes("continue_final_message", _BOOLEAN, "default false; true: the answer goes on from the last message"),
    _yes("response_format", _OBJECT, "only {type: text}; answers are not held to a grammar"),
    _ignored("metadata", _OBJECT, "nothing is stored"),
    _ignored("store", _BOOLEAN, "nothing is stored"),
    _ignored("service_tier", _STRING, "there is one"),
    _ignored("safety_identifier", _STRING, "nothing is kept about users"),
    _ignored("reasoning_effort", _STRING, "the model does not reason apart from its answer"),
    _ignored("verbosity", _STRING, "say it in a message"),
    _ignored("prediction", _OBJECT, "it changes the speed elsewhere, never the answer"),
    _ignored("parallel_tool_calls", _BOOLEAN, "there are no tools"),
    _ignored("prompt_cache_key", _STRING, "cached states are found by the tokens; to keep apart, send cache_salt"),
    _ignored("prompt_cache_options", _OBJECT, "every end of a turn is a place to go on from"),
    _ignored("prompt_cache_retention", _STRING, "states are kept by how much they save"),
    _no("tools", _LIST, "the model calls none", []),
    _no("tool_choice", JsonType.STRING_OR_OBJECT, "the model calls no tools", "none", "auto"),
    _no("functions", _LIST, "the model calls none", []),
    _no("function_call", JsonType.STRING_OR_OBJECT, "the model calls no functions", "none", "auto"),
    _no("modalities", _LIST, "the model writes text", ["text"]),
    _no("audio", _OBJECT, "the model writes text"),
    _no("moderation", _OBJECT, "nothing is moderated"),
    _no("web_search_options", _OBJECT, "nothing is searched"),
    _no("chat_template", _STRING, "turns are composed of token ids, so that no text can begin or end one"),
    _no("chat_template_kwargs", _OBJECT, "turns are composed of token ids", {}),
    _no("documents", _LIST, "put them into a message", []),
    _no("echo", _BOOLEAN, "send the prompt to /v1/completions", False),
)

_COMPLETIONS: Final = (
    _yes(
        "prompt",
        JsonType.STRING_OR_LIST,
        "a string, strings, token ids, or lists of token ids; an empty one is the token that ends a text",
    ),
    _yes("max_tokens", _INTEGER, "default 16, and at most what the prompt leaves of the context; 0 reads only", 0),
    _yes("echo", _BOOLEAN, "default false; true: the prompt comes before the answer, scored where logprobs are asked"),
    _yes("logprobs", _INTEGER, "alternatives of each token; 0: of the token only", 0, MOST_COMPLETION_LOGPROBS),
    _yes("best_of", _INTEGER, "only as n: answers are not ranked", 1, MOST_CHOICES),
    _no("suffix", _STRING, "the model reads forward only", ""),
    _no("response_format", _OBJECT, "answers are not held to a grammar", {"type": "text"}),
    _no("add_special_tokens", _BOOLEAN, "no token is put before a prompt", False),
)

_TOKENIZE: Final = (
    _MODEL,
    _yes("prompt", _STRING, "the text; this or messages"),
    _yes("messages", _LIST, "the conversation; this or prompt"),
    _yes("add_generation_prompt", _BOOLEAN, "default true; with messages"),
    _yes("continue_final_message", _BOOLEAN, "default false; with messages"),
    _yes("return_token_strs", _BOOLEAN, "default false; true: each token as a string too"),
    _ignored("add_special_tokens", _BOOLEAN, "no token is put before a text"),
)

_DETOKENIZE: Final = (_MODEL, _yes("tokens", _LIST, "token ids; special ones are written by name"))

FIELDS: Final[Mapping[Endpoint, tuple[Field, ...]]] = {
    Endpoint.CHAT: (*_CHAT, *_GENERATION),
    Endpoint.COMPLETIONS: (*_COMPLETIONS, *_GENERATION),
    Endpoint.TOKENIZE: _TOKENIZE,
    Endpoint.DETOKENIZE: _DETOKENIZE,
}
"""Every field of each endpoint. One that is not here is refused as unknown."""


def field_table() -> str:
    """The table as Markdown, one section an endpoint."""
    return "\n".join(_section(endpoint, rows) for endpoint, rows in FIELDS.items())


def _section(endpoint: Endpoint, rows: tuple[Field, ...]) -> str:
    lines = [f"### `POST {endpoint.value}`", "", "| Field | Is | | |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(row.row()) + " |" for row in rows]
    return "\n".join([*lines, ""])
