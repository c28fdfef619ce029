"""Log-probabilities in the two shapes of the API.

JSON has no infinity: what is below -9999.0, and what is no number, is told as -9999.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from inference.text.answer import TokenText
from inference.text.vocabulary import Vocabulary

LEAST: Final = -9999.0
"""What stands for a token that cannot be; as in the API of OpenAI."""


def chat_logprobs(
    tokens: Sequence[TokenText], vocabulary: Vocabulary, *, skip_special: bool = True
) -> Mapping[str, Any]:
    """One entry a token; the `bytes` of all, joined, are the text."""
    pieces = vocabulary.pieces(skip_special=skip_special)
    return {"content": [_chat_entry(token, vocabulary, pieces) for token in tokens], "refusal": None}


def completion_logprobs(tokens: Sequence[TokenText], vocabulary: Vocabulary) -> Mapping[str, Any]:
    """Four lists of one length. `top_logprobs` has the token itself too, where it is none of the likeliest."""
    return {
        "text_offset": [token.offset for token in tokens],
        "token_logprobs": [_finite(token.logprob) for token in tokens],
        "tokens": [vocabulary.name(token.token, token.piece) for token in tokens],
        "top_logprobs": [_top(token, vocabulary) for token in tokens],
    }


def _chat_entry(token: TokenText, vocabulary: Vocabulary, pieces: Sequence[bytes]) -> Mapping[str, Any]:
    return {
        "token": vocabulary.name(token.token, token.piece),
        "bytes": list(token.piece),
        "logprob": _finite(token.logprob),
        "top_logprobs": [
            {"token": vocabulary.name(other), "bytes": list(pieces[other]), "logprob": _finite(logprob)}
            for other, logprob in token.top
        ],
    }


def _top(token: TokenText, vocabulary: Vocabulary) -> Mapping[str, float | None] | None:
    if token.logprob is None:
        return None
    return _named([*token.top, (token.token, token.logprob)], vocabulary)


def _named(top: Iterable[tuple[int, float]], vocabulary: Vocabulary) -> Mapping[str, float | None]:
    """By name; of two tokens that look alike, the likelier."""
    found: dict[str, float | None] = {}
    for token, logprob in top:
        found.setdefault(vocabulary.name(token), _finite(logprob))
    return found


def _finite(logprob: float | None) -> float | None:
    if logprob is None:
        return None
    return logprob if logprob > LEAST else LEAST
