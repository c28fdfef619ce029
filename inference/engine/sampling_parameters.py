"""How a token is chosen, for one answer. Checked here for ranges, so that nothing behind it checks again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, final

MOST_LOGPROBS: Final = 20
"""Alternatives of a token whose log-probabilities can be asked for."""


@final
@dataclass(frozen=True, kw_only=True)
class SamplingParameters:
    """What the logits go through: bias and penalties, temperature, then top-k, top-p and min-p.

    The order and the meaning of each are those of vLLM. Raises ValueError, which begins with the name of the field.
    """

    temperature: float = 1.0
    """0 takes the likeliest token; at most 2."""
    top_k: int = 0
    """Only so many of the likeliest tokens; 0 for all."""
    top_p: float = 1.0
    """Only the likeliest tokens whose probabilities together reach this, over 0 and at most 1."""
    min_p: float = 0.0
    """Only tokens at least so probable, relative to the likeliest; 0 to 1."""
    presence_penalty: float = 0.0
    """Taken from the logit of a token that was generated already; -2 to 2."""
    frequency_penalty: float = 0.0
    """Taken from the logit of a token for every time that it was generated; -2 to 2."""
    repetition_penalty: float = 1.0
    """Divides a positive logit, multiplies a negative one, of a token of prompt or answer; over 0, 1 for none."""
    logit_bias: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    """Added to the logit of a token; -100 to 100."""
    seed: int = 0
    """The draw at a place is a pure function of seed, `draw` and the place; 0 to 2^63 - 1."""
    draw: int = 0
    """Which of the answers to one request this is: each draws by itself."""
    logprobs: int | None = None
    """Alternatives whose log-probabilities come with each token, 0 to 20; None: no log-probabilities at all."""

    def __post_init__(self) -> None:
        _within("temperature", self.temperature, 0, 2)
        _within("top_p", self.top_p, 0, 1)
        if self.top_p == 0:
            raise ValueError("top_p: is 0, which leaves no token; it is over 0 and at most 1")
        _within("min_p", self.min_p, 0, 1)
        _within("presence_penalty", self.presence_penalty, -2, 2)
        _within("frequency_penalty", self.frequency_penalty, -2, 2)
        _within("repetition_penalty", self.repetition_penalty, 0, 10)
        if self.repetition_penalty == 0:
            raise ValueError("repetition_penalty: is 0; it is over 0 and at most 10, 1 for none")
        _within("top_k", self.top_k, 0, math.inf)
        _within("seed", self.seed, 0, 2**63 - 1)
        _within("draw", self.draw, 0, 2**31 - 1)
        if self.logprobs is not None:
            _within("logprobs", self.logprobs, 0, MOST_LOGPROBS)
        for token, bias in self.logit_bias.items():
            _within(f"logit_bias[{token}]", bias, -100, 100)

    @property
    def greedy(self) -> bool:
        """Whether nothing is drawn."""
        return self.temperature == 0


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:  # not a number is in no range
        upper = f" to {most:g}" if most < math.inf else " or more"
        raise ValueError(f"{name}: is {value:g}; it is {least:g}{upper}")
