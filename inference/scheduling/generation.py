"""One answer, as the scheduler takes it and as its listener hears of it."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from inference.engine.abstract_engine import Choice
from inference.engine.sampling_parameters import SamplingParameters


@final
@dataclass(frozen=True, kw_only=True)
class Generation:
    """An answer that is asked for. A request for `n` answers to `m` prompts is n x m of them."""

    request_id: str
    """Of the request, for logs; several answers may share it."""
    prompt: tuple[int, ...]
    """At least one token."""
    parameters: SamplingParameters
    """How tokens are chosen."""
    max_tokens: int
    """The answer ends behind so many; 0 reads and scores the prompt only."""
    stop_tokens: frozenset[int] = frozenset()
    """The answer ends with any of these, which is counted."""
    min_tokens: int = 0
    """No stop token ends the answer before so many."""
    score_prompt: bool = False
    """Whether the listener hears the log-probabilities of the prompt; such a prompt is read whole, cached or not."""
    tenant: str = ""
    """Who asks: tenants take turns, and share no cached state."""
    cache_salt: str = ""
    """Answers with different salts share no cached state."""
    turn_ends: tuple[int, ...] = ()
    """Places in the prompt behind which another prompt may well go on differently: the ends of turns, rising."""


@final
class Reason(enum.Enum):
    """Why an answer ended."""

    STOP = "stop"
    """A stop token, or the listener had enough."""
    LENGTH = "length"
    """`max_tokens`, or the context is full."""
    CANCELLED = "cancelled"
    """Whoever asked is gone."""
    CUT_OFF = "cut_off"
    """The server ends before the answer does."""
    FAILED = "failed"
    """The engine failed."""


@final
@dataclass(frozen=True, kw_only=True)
class Timings:
    """When what happened, by the clock of the scheduler in seconds; None for what never did."""

    submitted: float
    """It was handed in."""
    admitted: float | None
    """It got a slot."""
    first_token: float | None
    """Its first token was chosen."""
    ended: float
    """It was over."""


@final
@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of an answer."""

    reason: Reason
    """Why."""
    cached_tokens: int
    """Of the prompt, that came from a kept state."""
    generated_tokens: int
    """Chosen, the one that stopped it included."""
    timings: Timings
    """When."""


class AbstractListener(ABC):
    """Who hears of an answer, on the thread of the scheduler: what it does must be short and must not raise."""

    @abstractmethod
    def scored(self, scores: tuple[Choice, ...]) -> None:
        """The next tokens of the prompt, with their log-probabilities; only where they were asked for."""

    @abstractmethod
    def token(self, choice: Choice) -> bool:
        """The next token. True: the answer is complete, and no more is wanted."""

    @abstractmethod
    def ended(self, ended: Ended) -> None:
        """The last that is heard, exactly once, whatever happened."""
