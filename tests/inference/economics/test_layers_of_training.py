"""The arithmetic of sizes against the arrays that the model really makes: no byte and no parameter differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from inference.economics.model_sizes import MIXERS, Sizes, read_sizes
from training.mixers.based import BasedConfig
from training.mixers.lightning import LightningConfig
from training.mixers.linear import LinearConfig
from training.mixers.registry import MIXERS as OF_TRAINING
from training.mixers.registry import MixerConfig
from training.mixers.retention import RetentionConfig
from training.mixers.softmax import SoftmaxConfig
from training.mixers.ssd import SsdConfig
from training.model.config import ModelConfig
from training.model.config_file import to_json_text
from training.model.decoding import init_state
from training.model.language_model import LanguageModel
from training.model.precision import cast_for_compute

CONTEXT = 48
PATTERNS: dict[str, tuple[MixerConfig, ...]] = {
    "ssd": (SsdConfig(),),
    "ssd, grouped, without taps": (SsdConfig(expand=4, d_head=32, d_state=24, n_groups=2, taps=0),),
    "linear": (LinearConfig(n_heads=4),),
    "based": (BasedConfig(n_heads=4, d_feature=8),),
    "based without taps": (BasedConfig(n_heads=2, taps=0),),
    "lightning": (LightningConfig(n_heads=4, d_head=24),),
    "retention": (RetentionConfig(n_heads=4, value_factor=3),),
    "MHA": (SoftmaxConfig(n_heads=4),),
    "GQA": (SoftmaxConfig(n_heads=4, n_kv_heads=2, d_head=20),),
    "a window": (SoftmaxConfig(n_heads=2, window=16),),
    "a window that is never full": (SoftmaxConfig(n_heads=2, window=4096),),
    "hybrid": (SsdConfig(), LinearConfig(n_heads=2), SoftmaxConfig(n_heads=4, n_kv_heads=1), BasedConfig(n_heads=4)),
}


@pytest.fixture(params=PATTERNS, scope="module")
def config(request: pytest.FixtureRequest) -> ModelConfig:
    return ModelConfig(
        vocab_size=96,
        d_model=64,
        n_layers=4,
        mixers=PATTERNS[request.param],
        d_feed_forward=80,
        tie_embeddings=request.param != "hybrid",
    )


@pytest.fixture(scope="module")
def sizes(config: ModelConfig, tmp_path_factory: pytest.TempPathFactory) -> Sizes:
    """Read from the config.json that an export has."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "config.json").write_text(config.to_json(), encoding="utf-8")
    return read_sizes(folder)


@pytest.fixture(scope="module")
def model(config: ModelConfig) -> Any:
    return eqx.filter_eval_shape(LanguageModel.init, config, jax.random.key(0))


def bytes_of(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def test_a_sequence_holds_what_init_state_makes(sizes: Sizes, model: Any) -> None:
    served = eqx.filter_eval_shape(lambda each: cast_for_compute(each, jnp.bfloat16), model)
    for batch in (1, 3):
        state = eqx.filter_eval_shape(lambda each, rows: init_state(each, rows, context=CONTEXT), served, batch)
        assert bytes_of(state.mixers) == batch * sum(layer.held(CONTEXT) for layer in sizes.layers)


def test_every_parameter_is_counted(sizes: Sizes, model: Any, config: ModelConfig) -> None:
    assert sizes.parameters == sum(leaf.size for leaf in jax.tree.leaves(model))
    rows = 0 if config.tie_embeddings else config.vocab_size * config.d_model
    assert sizes.active_parameters == sizes.parameters - rows


def test_in_fp32_keys_and_tails_are_as_wide(config: ModelConfig, model: Any, tmp_path: Path) -> None:
    words = "weights_dtype: float32\ncache_dtype: float32\n"
    text = "\n".join(line for line in config.to_json().splitlines()[1:-1] if '"schema"' not in line)
    (tmp_path / "model.yaml").write_text(f"{{{text},\n{words.strip().replace(chr(10), ', ')}}}", encoding="utf-8")
    found = read_sizes(tmp_path / "model.yaml")
    state = eqx.filter_eval_shape(lambda each: init_state(each, 1, context=CONTEXT), model)
    assert bytes_of(state.mixers) == sum(layer.held(CONTEXT) for layer in found.layers)


def test_every_mixer_of_training_is_known_by_all_its_fields() -> None:
    for name, kind in OF_TRAINING.items():
        fields = {field for field in to_json_fields(kind) if field != "type"}
        assert fields == set(MIXERS[name][0])
    assert set(MIXERS) - set(OF_TRAINING) == {"delta", "mla"}


def to_json_fields(kind: type[MixerConfig]) -> set[str]:
    return set(kind.__dataclass_fields__)


def test_the_text_of_a_config_is_read_whole(config: ModelConfig, sizes: Sizes) -> None:
    assert to_json_text(config) == config.to_json()
    assert (len(sizes.layers), sizes.d_model) == (config.n_layers, config.d_model)
