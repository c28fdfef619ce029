"""The tokens that answers took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inference.protocol.order import Order
from inference.text.answer import End


def usage_of(order: Order, ends: Sequence[End]) -> Mapping[str, Any]:
    """Of a whole request: every prompt counts once, however many answers it has, and every answer.

    Of a prompt, so many tokens came from a kept state as did for each of its answers.
    """
    firsts = range(0, len(ends), order.choices)
    prompt = sum(ends[first].prompt_tokens for first in firsts)
    cached = sum(min(end.cached_tokens for end in ends[first : first + order.choices]) for first in firsts)
    return _usage(prompt, sum(end.generated_tokens for end in ends), cached)


def usage_so_far(order: Order, index: int, generated: int) -> Mapping[str, Any]:
    """Of one answer, while it is being made."""
    return _usage(len(order.generations[index].prompt), generated, None)


def _usage(prompt: int, completion: int, cached: int | None) -> Mapping[str, Any]:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        **details,
    }
