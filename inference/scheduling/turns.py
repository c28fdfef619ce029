"""What the scheduler says of itself: one turn, and all of them so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from inference.scheduling.generation import Reason
from inference.state_cache.state_cache import CacheStatistics


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """What one turn did."""

    number: int
    """Counts the turns, from 1."""
    seconds: float
    """That it took, all in all."""
    prefill_seconds: float
    """Of those, reading prompts."""
    decode_seconds: float
    """Of those, in the engine for the next tokens."""
    admitted: int
    """Answers that got a slot."""
    prefilled_tokens: int
    """Tokens of prompts that were read."""
    decoded_tokens: int
    """Tokens that were chosen behind the first of an answer."""
    running: int
    """Answers in slots, at its end."""
    waiting: int
    """Answers without one, at its end."""


@final
@dataclass(kw_only=True, slots=True)
class Totals:
    """What the answers in the slots have come to; one thread counts."""

    ended: Counter[Reason] = field(default_factory=Counter)
    """Answers that are over."""
    prompt_tokens: int = 0
    """Of the prompts that were begun."""
    cached_tokens: int = 0
    """Of those, the ones that came from a kept state."""
    prefilled_tokens: int = 0
    """Of those, the ones that were read."""
    generated_tokens: int = 0
    """Tokens of answers."""
    restores: int = 0
    """Kept states that an answer began from."""
    listener_failures: int = 0
    """Listeners that raised."""

    @property
    def finished(self) -> int:
        """Answers that came to their own end."""
        return self.ended[Reason.STOP] + self.ended[Reason.LENGTH]


@final
@dataclass(frozen=True, kw_only=True)
class Statistics:
    """What the scheduler has done since it was made, and what it holds now."""

    slots: int
    """That the engine has."""
    running: int
    """Answers in slots."""
    reading: int
    """Of those, the ones whose prompt is being read."""
    waiting: int
    """Answers without a slot."""
    turns: int
    """That were taken."""
    prompt_tokens: int
    """Of the prompts that were begun."""
    cached_tokens: int
    """Of those, the ones that came from a kept state."""
    prefilled_tokens: int
    """Of those, the ones that were read."""
    generated_tokens: int
    """Tokens of answers."""
    ended: Mapping[Reason, int]
    """Answers that are over."""
    refused: int
    """Answers that were not taken, for the queue was full."""
    engine_failures: int
    """Times that the engine raised."""
    listener_failures: int
    """Listeners that raised."""
    restores: int
    """Kept states that an answer began from."""
    cache: CacheStatistics | None
    """Of the state cache, where there is one."""
