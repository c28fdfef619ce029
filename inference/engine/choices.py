"""From what a device gives for its rows to the choices of slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from inference.engine.abstract_engine import Choice
from inference.engine.sampling import Chosen
from inference.engine.slots import Slot


def choices_of(chosen: Chosen, tokens: Sequence[int], rows: Sequence[tuple[int, Slot]]) -> dict[int, Choice]:
    """The choice of each slot, with the row that has it. What no row asked for stays on the device."""
    if all(slot.parameters.logprobs is None for _, slot in rows):
        return {slot.number: Choice(token=tokens[row]) for row, slot in rows}
    logprobs, top, top_logprobs = jax.device_get(chosen[1:])
    return {
        slot.number: Choice(token=tokens[row])
        if slot.parameters.logprobs is None
        else _scored(tokens[row], logprobs[row], top[row], top_logprobs[row], slot.parameters.logprobs)
        for row, slot in rows
    }


def scores_of(slot: Slot, piece: range, scored: Any) -> tuple[Choice, ...]:
    """The tokens of a piece with their log-probabilities."""
    logprobs, top, top_logprobs = jax.device_get(scored)
    several = slot.parameters.logprobs or 0
    return tuple(
        _scored(int(slot.prompt[place]), logprobs[at], top[at], top_logprobs[at], several)
        for at, place in enumerate(piece)
        if place > 0
    )


def _scored(token: int, logprob: Any, top: np.ndarray, top_logprobs: np.ndarray, several: int) -> Choice:
    likeliest = zip(top[:several].tolist(), top_logprobs[:several].tolist(), strict=True)
    return Choice(token=token, logprob=float(logprob), top=tuple(likeliest))
