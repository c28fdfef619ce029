"""What an engine is made of: sizes that are checked, and a model that is made ready."""

from __future__ import annotations

from typing import Final

from jax.typing import DTypeLike

from inference.engine.compiled_programs import LEAST_BUCKET
from training.model.language_model import LanguageModel, unrolled
from training.model.precision import cast_for_compute

LONGEST: Final = 2**31 - 2**16
"""Positions are int32, and the last piece of a prompt may be padded beyond its end."""


def for_decoding(model: LanguageModel, dtype: DTypeLike | None) -> LanguageModel:
    """The model with every layer an array of its own, in the dtype of the engine; itself where it is so already."""
    model = model if model.config.repeats == 1 else unrolled(model)
    return model if dtype is None else cast_for_compute(model, dtype)


def check_sizes(slots: int, context: int, grid: int) -> None:
    """Raises ValueError for sizes that make no engine."""
    if slots < 1:
        raise ValueError(f"slots: {slots} answer nobody; there is at least 1")
    if not 1 <= context <= LONGEST:
        raise ValueError(f"context: is {context}; it is 1 to {LONGEST}, since positions are int32")
    if grid < LEAST_BUCKET or grid % LEAST_BUCKET:
        raise ValueError(f"grid: is {grid}; it is a multiple of {LEAST_BUCKET}")
