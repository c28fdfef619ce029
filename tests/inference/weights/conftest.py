"""For the tests of weights: eight CPU devices, a small model, and its export as `training` writes it."""

from __future__ import annotations

import os

# The devices are counted when JAX is first used.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference.weights.reading_style import ReadingStyle
from training.export import write_export
from training.mixers.linear import LinearConfig
from training.mixers.ssd import SsdConfig
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel
from training.model.tokenizer import Tokenizer, train_tokenizer


@pytest.fixture(scope="session")
def small_style() -> ReadingStyle:
    """So small that every tensor of the small model is read in many reads, by several workers."""
    return ReadingStyle(workers=3, read_bytes=200, stretch_bytes=700, in_flight_bytes=4000)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """With few tokens."""
    return train_tokenizer(["to be or not to be, that is the question"] * 3, 300)


@pytest.fixture(scope="session")
def model() -> LanguageModel:
    """Two mixers, each in a stack of two layers, in fp32."""
    config = ModelConfig(
        vocab_size=304,
        d_model=16,
        n_layers=4,
        d_feed_forward=24,
        mixers=(LinearConfig(n_heads=2), SsdConfig(d_head=8, d_state=4)),
    )
    generator = np.random.default_rng(3)
    shapes = eqx.filter_eval_shape(LanguageModel.init, config, jax.random.key(0))
    made: LanguageModel = jax.tree.map(lambda leaf: jnp.asarray(generator.normal(size=leaf.shape), leaf.dtype), shapes)
    return made


@pytest.fixture(scope="session")
def export(model: LanguageModel, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their export; it is read only."""
    return write_export(model, tokenizer.to_json(), tmp_path_factory.mktemp("export") / "model").folder
