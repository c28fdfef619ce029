"""Small models, one for each mixer and one for a mixture of them, that the tests of the model share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import jax

from training.mixers.based import BasedConfig
from training.mixers.lightning import LightningConfig
from training.mixers.linear import LinearConfig
from training.mixers.registry import MixerConfig
from training.mixers.retention import RetentionConfig
from training.mixers.softmax import SoftmaxConfig
from training.mixers.ssd import SsdConfig
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel

VOCABULARY: Final = 61

SOFTMAX: Final = SoftmaxConfig(n_heads=2, n_kv_heads=1, block=4)
WINDOW: Final = SoftmaxConfig(n_heads=2, window=3, block=4)
BASED: Final = BasedConfig(n_heads=2, d_feature=4, chunk=4)
LINEAR: Final = LinearConfig(n_heads=2, chunk=4)
LIGHTNING: Final = LightningConfig(n_heads=2, chunk=4)
RETENTION: Final = RetentionConfig(n_heads=2, chunk=4)
SSD: Final = SsdConfig(d_head=8, d_state=8, chunk=4)

PATTERNS: Final[Mapping[str, tuple[MixerConfig, ...]]] = {
    "softmax": (SOFTMAX,),
    "linear": (LINEAR,),
    "lightning": (LIGHTNING,),
    "retention": (RETENTION,),
    "ssd": (SSD,),
    "based and window": (BASED, WINDOW),
}
"""Every mixer. Chunks and blocks are shorter than the rows of the tests, and do not divide them."""
EVERY_MIXER: Final[tuple[MixerConfig, ...]] = (SOFTMAX, WINDOW, LINEAR, BASED, LIGHTNING, RETENTION, SSD)

quick_jit: Final = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
"""Compiles in half the time and runs slower: these programs run a few times on a few numbers."""


def tiny(*mixers: MixerConfig, **changes: Any) -> ModelConfig:
    """A model with the pattern twice over its depth."""
    sizes = {"vocab_size": VOCABULARY, "d_model": 16, "n_layers": 2 * len(mixers), "d_feed_forward": 24}
    return ModelConfig(mixers=mixers, **{**sizes, **changes})


def fresh(config: ModelConfig) -> LanguageModel:
    """The model of that config under key 0."""
    model: LanguageModel = quick_jit(LanguageModel.init, static_argnums=0)(config, jax.random.key(0))
    return model
