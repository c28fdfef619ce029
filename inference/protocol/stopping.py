"""Where an answer ends, from the fields of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inference.protocol.errors import context_exceeded, echo, invalid
from inference.protocol.field_rows import LONGEST_STOP, MOST_STOPS
from inference.protocol.served_model import ServedModel
from inference.text.stops import StopStrings


def stop_strings(found: Mapping[str, Any]) -> StopStrings:
    """Those that end the answer. Raises ApiError (400)."""
    sent = found.get("stop", [])
    strings = [sent] if isinstance(sent, str) else sent
    if len(strings) > MOST_STOPS:
        raise invalid("stop", f"has {len(strings)} strings; {MOST_STOPS} at most")
    for string in strings:
        if not isinstance(string, str) or not 1 <= len(string) <= LONGEST_STOP:
            raise invalid("stop", f"has {echo(string)}; each is a string of 1 to {LONGEST_STOP} characters")
    return StopStrings(strings=tuple(strings))


def stop_tokens(found: Mapping[str, Any], *, ends: frozenset[int], model: ServedModel) -> frozenset[int]:
    """`ends`, those of the model, unless they are to be ignored, and those that were sent. Raises ApiError (400)."""
    sent = token_ids(found.get("stop_token_ids", []), "stop_token_ids", model)
    return frozenset(sent) | (frozenset() if found.get("ignore_eos", False) else ends)


def token_ids(sent: Sequence[Any], param: str, model: ServedModel) -> tuple[int, ...]:
    """A list of ids. Raises ApiError (400), which names the first that is none."""
    for place, token in enumerate(sent):
        if type(token) is not int or not 0 <= token < model.vocab_size:
            raise invalid(
                param, f"has {echo(token)} at {place}; each is the id of a token, 0 to {model.vocab_size - 1}"
            )
    return tuple(sent)


def max_tokens(asked: int | None, prompt: int, model: ServedModel) -> int:
    """Tokens of an answer at most: what was asked for, and never more than a prompt of so many leaves of the context.

    That is the one rule: a large number is a ceiling and is never refused. None asks for all that there is.
    """
    left = model.context - prompt
    return left if asked is None else min(asked, left)


def min_tokens(found: Mapping[str, Any], asked: int | None) -> int:
    """Tokens before which nothing ends an answer. Raises ApiError (400) where that is over what was asked at most."""
    least: int = found.get("min_tokens", 0)
    if asked is not None and least > asked:
        raise invalid("min_tokens", f"is {echo(least)}, and the answer has at most {echo(asked)}")
    return least


def check_length(param: str, tokens: int, model: ServedModel) -> None:
    """Refuse a prompt that leaves no room for a token. Raises ApiError (400), `context_length_exceeded`."""
    if tokens >= model.context:
        raise context_exceeded(param, tokens, model.context)


def check_text_length(param: str, texts: Sequence[str], model: ServedModel) -> None:
    """Refuse texts that are too long however they are cut into tokens, before the work of cutting. Raises ApiError."""
    tokens = sum(len(text.encode()) for text in texts) // model.vocabulary.longest
    if tokens >= model.context:
        raise context_exceeded(param, tokens, model.context, at_least=True)
