"""Small engines, and how the tests drive them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import jax
import numpy as np

from inference.engine.abstract_engine import Choice, Snapshot
from inference.engine.engine import Engine
from inference.engine.sampling_parameters import SamplingParameters
from training.mixers.registry import MixerConfig
from training.mixers.softmax import SoftmaxConfig
from training.mixers.ssd import SsdConfig
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel

VOCABULARY: Final = 61
GRID: Final = 128
SHORT_GRID: Final = 64
QUICK: Final = {"xla_backend_optimization_level": "0"}
CONTEXT: Final = 400
SLOTS: Final = 8
PATTERNS: Final[Mapping[str, tuple[MixerConfig, ...]]] = {
    "ssd and window": (SsdConfig(d_head=8, d_state=8, chunk=16), SoftmaxConfig(n_heads=2, window=96, block=32)),
    "softmax": (SoftmaxConfig(n_heads=2, n_kv_heads=1, block=64),),
}
"""The window is no power of two, and shorter than a piece; plain softmax keeps the whole context."""
GREEDY: Final = SamplingParameters(temperature=0, logprobs=3)


def fresh_model(*mixers: MixerConfig, repeats: int = 1, vocabulary: int = VOCABULARY) -> LanguageModel:
    """A small model under key 0."""
    config = ModelConfig(
        vocab_size=vocabulary, d_model=16, n_layers=repeats * len(mixers), d_feed_forward=24, mixers=mixers
    )
    model: LanguageModel = jax.jit(LanguageModel.init, static_argnums=0)(config, jax.random.key(0))
    return model


@cache
def model_over(pattern: str) -> LanguageModel:
    """The model of one of `PATTERNS`, of two layers."""
    return fresh_model(*PATTERNS[pattern], repeats=2 if pattern == "softmax" else 1)


@cache
def quick_engine(pattern: str) -> Engine:
    """The engine of one of `PATTERNS`, with two buckets; compiled in half the time, and slower."""
    return Engine(model_over(pattern), slots=2, context=CONTEXT, grid=GRID, compiler_options=QUICK)


@cache
def true_engine() -> Engine:
    """The engine that tests of bits share: compiled as it is for use, with one bucket."""
    return Engine(model_over("ssd and window"), slots=SLOTS, context=CONTEXT, grid=SHORT_GRID)


def prompt_of(length: int, key: int = 0) -> list[int]:
    """Some tokens: the same for the same key, one the beginning of another."""
    drawn: list[int] = np.random.default_rng(key).integers(0, VOCABULARY, CONTEXT)[:length].tolist()
    return drawn


def read(engine: Engine, slot: int, *, scored: bool = False) -> Choice:
    """Read a prompt to its end; the first token of the answer."""
    while True:
        choice = engine.prefill(slot, scored=scored).choice
        if choice is not None:
            return choice


def answer(
    engine: Engine,
    prompt: Sequence[int],
    parameters: SamplingParameters = GREEDY,
    *,
    slot: int = 1,
    tokens: int = 8,
    start: Snapshot | None = None,
) -> list[Choice]:
    """The answer of a slot that is alone in its calls."""
    engine.admit(slot, parameters, prompt=prompt, start=start)
    choices = [read(engine, slot)]
    choices += [engine.decode([slot])[slot] for _ in range(tokens - 1)]
    engine.release(slot)
    return choices


def ids(choices: Sequence[Choice]) -> list[int]:
    """The tokens alone."""
    return [choice.token for choice in choices]
