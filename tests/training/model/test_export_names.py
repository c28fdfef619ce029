"""Names of arrays in a file, and the way back."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.training.model.patterns import BASED, LIGHTNING, SSD, fresh, tiny
from training.errors import TrainingError
from training.model.export_names import from_tensors, tensor_shapes, to_tensors
from training.model.language_model import LanguageModel
from training.model.precision import cast_for_compute

CONFIG = tiny(LIGHTNING, SSD, tie_embeddings=False)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    """Layers 0 and 2 are Lightning, 1 and 3 are SSD."""
    return fresh(CONFIG)


def test_layers_are_apart_and_numbered_by_depth(model: LanguageModel) -> None:
    tensors = to_tensors(model)
    lightning, ssd = model.blocks
    np.testing.assert_array_equal(tensors["blocks.2.mixer.qkv_proj.weight"], lightning.mixer.qkv_proj.weight[1])
    np.testing.assert_array_equal(tensors["blocks.1.mixer.a_log"], ssd.mixer.a_log[0])
    np.testing.assert_array_equal(
        tensors["blocks.3.feed_forward.down_proj.weight"], ssd.feed_forward.down_proj.weight[1]
    )
    np.testing.assert_array_equal(tensors["blocks.3.mixer.convolutions.0.weight"], ssd.mixer.convolutions[0].weight[1])
    outside = {name for name in tensors if not re.match(r"blocks\.[0-3]\.", name)}
    assert outside == {"embedding.weight", "final_norm.weight", "lm_head.weight"}


def test_the_way_back_is_exact_and_keeps_dtypes(model: LanguageModel) -> None:
    for given in (model, cast_for_compute(model, jnp.bfloat16)):
        tensors = {name: np.asarray(array) for name, array in to_tensors(given).items()}
        again = from_tensors(CONFIG, tensors)
        assert jax.tree.structure(again) == jax.tree.structure(given)
        for mine, other in zip(jax.tree.leaves(again), jax.tree.leaves(given), strict=True):
            assert mine.dtype == other.dtype
            np.testing.assert_array_equal(mine, other)


def test_shapes_are_known_before_there_is_a_model(model: LanguageModel) -> None:
    wanted = {name: (array.shape, array.dtype) for name, array in to_tensors(model).items()}
    assert {name: (each.shape, each.dtype) for name, each in tensor_shapes(CONFIG).items()} == wanted


def test_arrays_of_another_model_are_refused_one_by_one(model: LanguageModel) -> None:
    tensors = dict(to_tensors(model))
    tensors["blocks.0.mixer.qkv.weight"] = tensors.pop("blocks.0.mixer.qkv_proj.weight")
    tensors["final_norm.weight"] = jnp.ones(17)
    with pytest.raises(TrainingError, match=r"^weights: the arrays are not those of the config") as caught:
        from_tensors(CONFIG, tensors, where="weights")
    assert "blocks.0.mixer.qkv_proj.weight is missing" in str(caught.value)
    assert "blocks.0.mixer.qkv.weight is no array of this model; did you mean blocks.0.mixer.qkv_proj.weight?" in str(
        caught.value
    )
    assert "final_norm.weight is (17,), and the config makes it (16,)" in str(caught.value)


def test_another_pattern_has_other_names() -> None:
    assert set(tensor_shapes(tiny(BASED))) != set(tensor_shapes(tiny(SSD)))
